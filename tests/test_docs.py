"""README is true: its commands and blocks run, and what exists is in it.

Fences of the pages are read like this:
    ```sh            each command runs in a fresh home, with the checkout as the current folder
    ```sh no-run     shown only (a board is needed, a person is needed, it takes long)
    ```python        runs in a fresh home
    ```text, others  shown only"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from exo.core.base.home import Home
from exo.core.base.settings import TABLE
from exo.tools import cli, footprint

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("core", "models", "board", "device", "tools")
PATIENCE = 240.0  # seconds a block may take
# what README has to tell, as words of its headings
PARTS = ("button press", "file tree", "budgets", "tests", "decided against")


@dataclass(frozen=True)
class Block:
    """A fenced block: `where` is page and line, `info` what stands behind the fence."""

    where: str
    info: str
    text: str


def pages() -> dict[str, str]:
    """README.md and the pages of the rooms: {name: text}."""
    found = [ROOT / "README.md"]
    for room in (*ROOMS, "tests"):
        found += sorted(path for path in (ROOT / room).rglob("*.md") if "prompts" not in path.parts)
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in found if path.exists()}


def blocks(name: str, text: str) -> list[Block]:
    """The fenced blocks of a page."""
    found = []
    for match in re.finditer(r"^```([^\n]*)\n(.*?)^```\s*$", text, re.DOTALL | re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(f"{name}:{line}", match.group(1).strip(), match.group(2)))
    return found


BLOCKS = [block for name, text in pages().items() for block in blocks(name, text)]


def tell(block: Block) -> str:
    return block.where


def readme() -> str:
    return pages().get("README.md", "")


def environment(home: Home) -> dict[str, str]:
    """The environment of a block: its own home, the programs of .venv first."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "EXO_HOME": str(home.root)}


def stop(home: Home) -> None:
    """End what a block left running in the background of its home: the supervisor ends its services."""
    for file in sorted(home.state.glob("*.pid"), key=lambda file: file.name != "serve.pid"):
        text, end = file.read_text().strip(), time.monotonic() + 15
        if not text.isdigit():
            continue
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(text), signal.SIGTERM)
        while text == file.read_text().strip() and time.monotonic() < end:
            time.sleep(0.02)


def commands(text: str) -> list[str]:
    """The commands of a block: a line each, a trailing backslash joins, `$ ` and comments fall away."""
    lines = text.replace("\\\n", " ").splitlines()
    words = [line.strip().removeprefix("$ ") for line in lines]
    return [line for line in words if line and not line.startswith("#")]


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.info == "sh"], ids=tell)
def test_commands_run(block: Block, home: Home) -> None:
    try:
        for line in commands(block.text):
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=ROOT,
                env=environment(home),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
            assert done.returncode == 0, f"{block.where}: {line}\n{done.stdout}{done.stderr}"[
                -3000:
            ]
    finally:
        stop(home)


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.info == "python"], ids=tell)
def test_python_blocks_run(block: Block, home: Home) -> None:
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", block.text],
            cwd=home.root,
            env=environment(home),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{block.where}\n{done.stdout}{done.stderr}"[-3000:]
    finally:
        stop(home)


def test_every_fence_says_what_it_is() -> None:
    known = re.compile(r"(sh( no-run)?|python( no-run)?|text|toml|json|sql|)$")
    assert not [f"{b.where}: {b.info}" for b in BLOCKS if not known.match(b.info)]
    assert not [
        b.where for b in BLOCKS if not b.info and re.search(r"^(\$|\./|exo )", b.text, re.M)
    ]


def test_readme_has_its_parts() -> None:
    headings = " ".join(re.findall(r"^#+ (.+)$", readme(), re.MULTILINE)).lower()
    missing = [part for part in PARTS if part not in headings]
    assert not missing, f"README.md has no heading with: {missing}"


def test_readme_shows_the_two_commands_and_a_picture() -> None:
    text = readme()
    assert "./flash.sh run" in text and "./flash.sh test" in text
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    drawn = any(re.search("[\u2580-\u259f\u2801-\u28ff]", block.text) for block in BLOCKS)
    assert drawn or pictures
    assert not [name for name in pictures if not (ROOT / name).is_file()]


def subcommands() -> list[str]:
    """Every `exo` command, with its second words where it has some."""
    found = []
    for name, parser in _choices(cli.parser()).items():
        deeper = _choices(parser)
        found += [f"exo {name} {word}" for word in deeper] or [f"exo {name}"]
    return found


def _choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def test_every_command_is_told() -> None:
    text = "\n".join(pages().values())
    missing = []
    for command in subcommands():
        *head, last = command.split(" ")
        # `exo models list|get NAME|bench` tells three commands
        if not re.search(rf"{re.escape(' '.join(head))} [^\n`]*\b{re.escape(last)}\b", text):
            missing.append(command)
    assert not missing, "not in README.md or a room's page: " + ", ".join(missing)


def test_every_setting_is_told() -> None:
    text = "\n".join(pages().values())
    missing = [row.name for row in TABLE if f"`{row.name}`" not in text]
    assert not missing, "not in README.md or a room's page, in backquotes: " + ", ".join(missing)


def tree() -> dict[str, str]:
    """The file tree of README, {path: phrase}: the block between <!-- tree --> markers, one entry a
    line, `  name  phrase`, folders with a trailing slash, two spaces of indent for each level."""
    match = re.search(r"<!-- tree -->\s*```text\n(.*?)```\s*<!-- /tree -->", readme(), re.DOTALL)
    assert match, "README.md has no ```text block between <!-- tree --> and <!-- /tree -->"
    found: dict[str, str] = {}
    folders: list[str] = []
    for line in match.group(1).splitlines():
        if not line.strip():
            continue
        indent = (len(line) - len(line.lstrip(" "))) // 2
        name, _, phrase = line.strip().partition(" ")
        folders = folders[:indent]
        path = "".join(folders) + name
        found[path] = phrase.strip()
        if name.endswith("/"):
            folders.append(name)
    return found


def modules() -> set[str]:
    """Every file that the tree has to name: modules that are not empty, and the scripts."""
    found = {"flash.sh", ".ci/run", "pyproject.toml"}
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            if path.read_text().strip():
                found.add(path.relative_to(ROOT).as_posix())
    return found


def test_the_tree_names_every_module() -> None:
    missing = sorted(modules() - set(tree()))
    assert not missing, "not in README.md's tree: " + ", ".join(missing)


def test_the_tree_names_nothing_that_is_gone() -> None:
    gone = [path for path in tree() if not (ROOT / path).exists()]
    assert not gone, "in README.md's tree, but not here: " + ", ".join(gone)


def test_every_file_of_the_tree_has_its_phrase() -> None:
    assert not [path for path, phrase in tree().items() if not phrase]


def test_the_budgets_are_current() -> None:
    counts = footprint.count(footprint.formatted(footprint.core_files()))
    shown = footprint.section(readme(), footprint.COUNTED)
    mend = "run `exo footprint --write README.md`"
    assert shown == footprint.table(footprint.counted_rows(counts)), mend


def test_the_measured_budgets_are_there() -> None:
    shown = footprint.section(readme(), footprint.MEASURED)
    mend = "run `exo footprint --measure --write README.md`"
    assert "Measured 20" in shown and "exo-models" in shown, mend


def test_links_lead_somewhere() -> None:
    broken = []
    for name, text in pages().items():
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in link and not (ROOT / name).parent.joinpath(link).exists():
                broken.append(f"{name}: {link}")
    assert not broken, "\n".join(broken)


def test_generated_parts_are_current() -> None:
    from exo.tools.readme import rewrite

    assert rewrite(readme()) == readme(), "run `python -m exo.tools.readme`"
