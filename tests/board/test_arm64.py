"""The product on 64-bit ARM, run by qemu in a small Debian: the packages install from their wheels, `exo
doctor` tells how it stands, the vectors of the record come out bit for bit, the scripted handheld answers.

It wants root, mmdebstrap, qemu-user-static with binfmt_misc, and the network (packages of Debian and PyPI).
EXO_ARM64_KEEP names a folder to keep the root and the wheels in, so that a second run is fast."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EMULATOR = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
KEPT = os.environ.get("EXO_ARM64_KEEP", "")
PACKAGES = "python3,python3-venv,libportaudio2"
# what is not needed there, and spidev, which has no wheel: a board compiles it
LEFT_OUT = ("llama-cpp-python", "spidev", "mypy", "ruff")
PLATFORMS = ("manylinux2014", "manylinux_2_28", "manylinux_2_31", "manylinux_2_34", "linux")
# its own home, /dev and /proc, which go when it ends
CHROOT = (
    'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && mount -t tmpfs tmp "$0/tmp"'
    ' && exec chroot "$0" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 "$@"'
)
SCRIPT = """\
type what time is it?
wait reply 120
expect It is \\d+:\\d\\d
shot time
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.geteuid() != 0, reason="making a root wants root"),
    pytest.mark.skipif(not shutil.which("mmdebstrap"), reason="mmdebstrap is not installed"),
    pytest.mark.skipif(
        os.uname().machine != "aarch64" and not EMULATOR.exists(),
        reason="qemu-aarch64 is not registered (qemu-user-static, binfmt-support)",
    ),
]


class Board:
    """An arm64 root with the project in /exo."""

    def __init__(self, folder: Path) -> None:
        self.root, self.wheels = folder / "root", folder / "wheels"
        if not (self.root / "usr/bin/python3").exists():
            command = ["mmdebstrap", "--architectures=arm64", "--variant=minbase"]
            run([*command, f"--include={PACKAGES}", "bookworm", str(self.root)])
        self.wheels.mkdir(exist_ok=True)

    def run(self, *words: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        """Run words there; prints what they say."""
        command = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "sh",
            "-c",
            CHROOT,
            str(self.root),
            *words,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        print(
            f"$ {' '.join(words)}\n{done.stdout}{done.stderr}(exit {done.returncode})", flush=True
        )
        return done

    def install(self) -> None:
        """Fetch the wheels for its processor and its Python, and install them and the project there."""
        version = self.run("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        rows = project["dependencies"] + sum(project["optional-dependencies"].values(), [])
        wanted = [row.partition(";")[0].strip() for row in rows if not row.startswith(LEFT_OUT)]
        pip = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:"]
        llama = [str(path) for path in (ROOT / "dist/wheels").glob("*_aarch64.whl")]
        platforms = [f"--platform={name}_aarch64" for name in PLATFORMS]
        where = ["--python-version", version.stdout.strip(), "-d", str(self.wheels)]
        pins = ["-c", str(ROOT / "tests/constraints.txt")]
        run([*pip, *platforms, *where, *pins, *wanted, *llama])

        exo = self.root / "exo"
        shutil.rmtree(exo, ignore_errors=True)
        for name in ("core", "models", "board", "device", "tools", "tests"):
            shutil.copytree(ROOT / name, exo / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, exo)
        shutil.copytree(self.wheels, exo / "wheels")
        if not (self.root / "venv/bin/pip").exists():
            assert self.run("python3", "-m", "venv", "/venv").returncode == 0
        install = (
            "/venv/bin/pip",
            "install",
            "-q",
            "--no-index",
            "--no-compile",
            "--disable-pip-version-check",
        )
        here = ("--find-links", "/exo/wheels", "-c", "/exo/tests/constraints.txt")
        names = ["llama-cpp-python"] if llama else []
        assert self.run(*install, *here, *wanted, *names).returncode == 0
        own = ("--no-deps", "--no-build-isolation", "--editable", "/exo")
        assert self.run(*install, *own).returncode == 0


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    folder = Path(KEPT) if KEPT else tmp_path_factory.mktemp("arm64")
    board = Board(folder)
    board.install()
    yield board
    if not KEPT:
        shutil.rmtree(folder, ignore_errors=True)


def test_doctor_tells_how_it_stands(board: Board) -> None:
    done = board.run("/venv/bin/exo", "doctor")
    assert "Traceback" not in done.stderr
    assert "exo" in done.stdout and done.returncode in (0, 1)


def test_every_native_library_loads(board: Board) -> None:
    names = "nacl.signing, onnxruntime, tokenizers, ctranslate2, numpy, PIL.Image, sounddevice, wasmtime"
    if list(board.wheels.glob("llama_cpp_python-*")):
        names += ", llama_cpp"
    code = f"import platform, {names}; print(platform.machine(), 'loaded')"
    assert "aarch64 loaded" in board.run("/venv/bin/python", "-c", code).stdout


def test_a_model_computes_there(board: Board) -> None:
    models = Path(os.environ.get("EXO_MODELS") or Path.home() / ".cache/exo/models")
    gguf = next(iter(sorted(models.glob("smollm2-135m/*.gguf"))), None)
    if gguf is None or not list(board.wheels.glob("llama_cpp_python-*")):
        pytest.skip("no wheel of llama.cpp (./flash.sh wheels), or no model")
    shutil.copy(gguf, board.root / "exo/model.gguf")
    code = (
        "import llama_cpp; m = llama_cpp.Llama('/exo/model.gguf', n_ctx=128, verbose=False);"
        "print(m('The capital of France is', max_tokens=4, temperature=0)['choices'][0]['text'])"
    )
    done = board.run("/venv/bin/python", "-c", code, timeout=1800)
    assert done.returncode == 0 and "Paris" in done.stdout


def test_the_vectors_of_the_record(board: Board) -> None:
    words = ("-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=600")
    tests = "/exo/tests/core/ledger/test_format.py"
    done = board.run("/venv/bin/python", *words, tests, "-k", "vectors", "--rootdir=/exo")
    assert done.returncode == 0 and "2 passed" in done.stdout


def test_the_scripted_handheld_answers(board: Board) -> None:
    (board.root / "exo/press.txt").write_text(SCRIPT)
    words = ("--board", "sim", "--models-fake", "--home", "/var/h", "--script", "/exo/press.txt")
    done = board.run("/venv/bin/exo-device", *words, "--shots", "/exo/shots")
    assert done.returncode == 0
    assert (board.root / "exo/shots/time.png").exists()
    done = board.run("/venv/bin/exo", "ledger", "verify", "--home", "/var/h")
    assert done.returncode == 0
