"""The wheel and the sdist hold everything, and core runs with its two dependencies alone."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOMS = ("core", "models", "board", "device", "tools")
OUTSIDE = ("board/panel/", "board/os/")
OF_THE_PACKAGE = ("pyproject.toml", "README.md", "LICENSE")
LAST_WORDS = 2000  # characters of a failed command that are shown


def run(*words: str | Path, cwd: Path | None = None) -> str:
    """Run a command without the network; its output. Fails with the command's own last words."""
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-LAST_WORDS:]
    return done.stdout


@pytest.fixture(scope="module")
def copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parts of the checkout that make the package: a build litters the folder it runs in."""
    target = tmp_path_factory.mktemp("copy")
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for room in ROOMS:
        shutil.copytree(root / room, target / room, ignore=ignore)
    for name in OF_THE_PACKAGE:
        if (root / name).exists():
            shutil.copy(root / name, target / name)
    return target


@pytest.fixture(scope="module")
def wheel(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "wheel", "-q")
    run(*pip, "--no-index", "--no-deps", "--no-build-isolation", "-w", folder, copy)
    return next(folder.glob("*.whl"))


def wanted(copy: Path) -> set[str]:
    """What has to be in the wheel: every file of the rooms but the words about them, firmware, and what
    flash.sh installs from a checkout."""
    found = set()
    for room in ROOMS:
        for path in (copy / room).rglob("*"):
            name = path.relative_to(copy).as_posix()
            about = path.suffix == ".md" and "prompts" not in path.parts or "pictures" in path.parts
            built = "__pycache__" in path.parts  # something was imported from the copy
            if path.is_file() and not about and not built and not name.startswith(OUTSIDE):
                found.add(name)
    return found


def test_the_wheel_holds_every_file_of_the_rooms(copy: Path, wheel: Path) -> None:
    names = {name.removeprefix("exo/") for name in zipfile.ZipFile(wheel).namelist()}
    assert not wanted(copy) - names
    assert not [name for name in names if name.startswith("tests/") or "panel/" in name]


def test_the_wheel_names_its_licence_and_scripts(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    entry = next(name for name in archive.namelist() if name.endswith("entry_points.txt"))
    scripts = set(re.findall(r"^(\S+) = exo\.", archive.read(entry).decode(), re.MULTILINE))
    assert {"exo", "exod", "exo-models", "exo-device"} <= scripts
    assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())


def test_the_sdist_holds_every_file_of_the_rooms(copy: Path, tmp_path: Path) -> None:
    build = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    run(sys.executable, "-P", "-c", build, tmp_path, cwd=copy)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert not wanted(copy) - names
    assert {"pyproject.toml", "LICENSE"} <= names


def closure(*roots: str) -> set[str]:
    """The distributions that `roots` need, no extras, themselves included."""
    todo, found = list(roots), set()
    while todo:
        name = todo.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # needed by another Python or system only
        found.add(key)
        todo += [re.split(r"[^\w.-]", need)[0] for need in needs if "extra ==" not in need]
    return found


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel, its two dependencies and what those need: its bin folder."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    site = next((folder / "lib").glob("python*/site-packages"))
    for name in closure("PyNaCl", "httpx"):
        distribution = importlib.metadata.distribution(name)
        for top in {path.parts[0] for path in distribution.files or [] if path.parts[0] != ".."}:
            if top != "__pycache__" and not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    pip = (sys.executable, "-P", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "--python", folder / "bin/python", "install", "-q", "--no-index", "--no-deps", wheel)
    return folder / "bin"


@pytest.mark.parametrize(
    "module", ["nacl.signing", "httpx", "exo.core.engine", "exo.core.server.app"]
)
def test_core_runs_with_its_two_dependencies(bare: Path, tmp_path: Path, module: str) -> None:
    run(bare / "python", "-c", f"import {module}", cwd=tmp_path)


def test_the_bare_environment_is_bare(bare: Path, tmp_path: Path) -> None:
    look = "import importlib.util as u; print([n for n in ('numpy', 'PIL', 'llama_cpp') if u.find_spec(n)])"
    assert run(bare / "python", "-c", look, cwd=tmp_path).strip() == "[]"


def test_the_command_explains_itself_there(bare: Path, tmp_path: Path) -> None:
    assert "ask" in run(bare / "exo", "--help", cwd=tmp_path)


def test_the_version_is_one(root: Path) -> None:
    assert re.search(
        r'^version = "\d+\.\d+\.\d+"$', (root / "pyproject.toml").read_text(), re.MULTILINE
    )
