"""./flash.sh install, upgrade and uninstall in another root: every file, and nothing of the home."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNITS = ("exo-gadget", "exod", "exo-models", "exo-device", "exo-console", "exo-wifi", "exo-reset")
# most that `systemd-analyze security` may find: 0 is safe, 10 is open
EXPOSED = {"exod": 1.6, "exo-models": 0.8, "exo-device": 1.8, "exo-console": 1.8, "exo-wifi": 4.5}
EXPOSED["exo-reset"] = 2.5
EXPOSED["exo-gadget"] = 4.0
OURS = ("exod", "exo-models", "exo-device", "exo-console", "python")
PROGRAMS = (*(f"opt/exo/.venv/bin/{name}" for name in OURS), "usr/bin/systemctl")
PROGRAMS = (*PROGRAMS, "usr/bin/systemd-tmpfiles")

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="makes files that belong to others: root alone"),
    pytest.mark.skipif(not shutil.which("systemd-sysusers"), reason="systemd is not installed"),
]


def flash(*words: str) -> str:
    done = subprocess.run(
        [str(ROOT / "flash.sh"), *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(root: Path, below: str = "") -> dict[str, bytes]:
    """Every file and link below a folder, the passwd files of systemd-sysusers apart."""
    found = {}
    for path in sorted((root / below).rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = str(path.readlink()).encode()
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """A root that systemd-analyze can read."""
    (tmp_path / "usr/lib/systemd/system").mkdir(parents=True)
    for unit in Path("/usr/lib/systemd/system").glob("*.target"):
        shutil.copy(unit, tmp_path / "usr/lib/systemd/system")
    return tmp_path


def test_a_dry_run_tells_all_and_does_nothing(card: Path) -> None:
    before = files(card)
    told = flash("install", "--dry-run", "--root", str(card))
    assert files(card) == before and not (card / "data").exists()
    real = flash("install", "--root", str(card))
    actions = [line for line in real.splitlines()[1:-1] if "Creating" not in line]
    assert actions == told.splitlines()[1:-1]
    written = re.findall(r"write (\S+)", told)
    assert len(written) == len(set(written)) > 10
    assert all((card / path.lstrip("/")).is_file() for path in written)


def test_installing_twice_changes_nothing_and_an_upgrade_keeps_the_home(card: Path) -> None:
    flash("install", "--root", str(card))
    home = card / "data/exo"
    assert (home / "state/systemd").exists()
    assert oct(home.stat().st_mode & 0o777) == "0o700"
    passwd = (card / "etc/passwd").read_text()
    assert home.stat().st_uid == int(passwd.split(":")[2]) != 0
    groups = (card / "etc/group").read_text()
    for group in ("gpio", "spi", "i2c", "audio", "input", "dialout"):
        assert re.search(rf"^{group}:.*\bexo$", groups, re.MULTILINE)
    (home / "store").mkdir()
    (home / "store/PACK.md").write_text("mine")
    first = files(card)
    assert "all is as it should be" in flash("install", "--root", str(card))
    assert files(card) == first

    # an older version: a unit that differs, a module that is no more, a copy that was cut short
    unit = card / "etc/systemd/system/exod.service"
    unit.write_text(unit.read_text().replace("WatchdogSec=30", "WatchdogSec=10"))
    (card / "opt/exo/core/gone.py").touch()
    (card / "opt/exo/.installed").unlink()
    told = flash("install", "--root", str(card))
    assert "write /etc/systemd/system/exod.service" in told
    assert "write /etc/systemd/system/exo-models.service" not in told
    assert files(card) == first


def test_an_earlier_place_of_the_home_is_kept(card: Path) -> None:
    flash("install", "--root", str(card))
    shutil.move(card / "data", card / "var-data")
    unit = card / "etc/systemd/system/exod.service"
    unit.write_text(unit.read_text().replace("/data/exo", "/srv/person/exo"))
    told = flash("install", "--root", str(card))
    assert "home /srv/person/exo, models /srv/person/models" in told
    assert not (card / "data").exists()
    assert "EXO_HOME=/srv/person/exo " in unit.read_text()


def test_without_data_everything_lies_under_var_lib(card: Path) -> None:
    (card / "data").write_text("somebody's file")
    told = flash("install", "--dry-run", "--root", str(card))
    assert "home /var/lib/exo/exo" in told


def test_uninstall_leaves_what_it_knows(card: Path) -> None:
    before = files(card)
    flash("install", "--root", str(card))
    (card / "data/exo/store").mkdir()
    (card / "data/exo/store/PACK.md").write_text("mine")
    (card / "data/models/x.gguf").write_text("big")
    installed = files(card)
    told = flash("uninstall", "--dry-run", "--root", str(card))
    assert files(card) == installed
    assert [*flash("uninstall", "--root", str(card)).splitlines()] == told.splitlines()
    left = files(card)
    users = {f"etc/{name}" for name in ("passwd", "group", "shadow", "gshadow", ".pwd.lock")}
    assert left.keys() - before.keys() - users == {"data/exo/store/PACK.md", "data/models/x.gguf"}
    assert flash("uninstall", "--root", str(card)).count("\n") == 1


def test_a_program_that_was_not_copied_is_not_removed(card: Path) -> None:
    (card / "opt/exo").mkdir(parents=True)
    (card / "opt/exo/mine").write_text("mine")
    flash("uninstall", "--root", str(card))
    assert (card / "opt/exo/mine").exists()


def test_wrong_use_is_refused(card: Path) -> None:
    for words in (("install", "--root", "/no/such"), ("install", "--rot"), ("uninstall", "x")):
        done = subprocess.run([str(ROOT / "flash.sh"), *words], capture_output=True, check=False)
        assert done.returncode != 0


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_the_units_are_right_and_closed(card: Path) -> None:
    flash("install", "--root", str(card))
    for name in PROGRAMS:
        program = card / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    units = [*(f"{name}.service" for name in UNITS), "exo-wifi.path", "exo-reset.path"]
    done = subprocess.run(
        ["systemd-analyze", "verify", f"--root={card}", *units],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    for name, most in EXPOSED.items():
        command = ["systemd-analyze", "security", "--no-pager", "--offline=true", f"--root={card}"]
        done = subprocess.run(
            [*command, f"{name}.service"], capture_output=True, text=True, check=True
        )
        found = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
        assert found is not None and float(found[1]) <= most, done.stdout


def test_every_unit_that_speaks_is_watched(card: Path) -> None:
    flash("install", "--root", str(card))
    for name in ("exod", "exo-models", "exo-device"):
        unit = (card / f"etc/systemd/system/{name}.service").read_text()
        assert "Type=notify" in unit and "WatchdogSec=" in unit and "EXO_HOME=/data/exo" in unit
        assert "@HOME@" not in unit and "@PROGRAM@" not in unit and "@MODELS@" not in unit
    device = (card / "etc/systemd/system/exo-device.service").read_text()
    assert "--no-services" in device  # systemd runs the others: nobody starts them twice


# ---- the machine itself, with scripted programs in the place of systemd's and of Python ------------------

LIVE = r"""
set -e
for folder in /opt /usr/local/bin /data /run /var/cache; do mkdir -p $folder; mount -t tmpfs live $folder; done
mkdir -p "$0/etc" /run/systemd/system
cp -a /etc/. "$0/etc"
mount --bind "$0/etc" /etc
export PATH="$0/bin:$PATH"
umask 077
cd /
for words in "$@"; do $words; done
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Run flash.sh with each of some words, one after the other, as if this were a board; returns what was
    said. Nothing of the real machine is touched: what install writes to lies in folders of its own."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces here")
    programs = tmp_path / "bin"
    (tmp_path / "source").mkdir()
    programs.mkdir()
    python = runpy.run_path(str(ROOT / "tests/test_flash.py"))["PYTHON"]
    texts = {"python3": python.replace("@FOLDER@", str(tmp_path))}
    note = f'echo "{{name}} $*" >>{tmp_path}/asked'
    texts["systemctl"] = (
        f'#!/bin/sh\n[ "$1" = --version ] && echo "systemd 257 (257.7)" && exit\n{note.format(name="systemctl")}\n'
    )
    texts["udevadm"] = f"#!/bin/sh\n{note.format(name='udevadm')}\n"
    for name in ("c++", "cc", "espeak-ng"):
        texts[name] = "#!/bin/sh\n"
    texts["ldconfig"] = "#!/bin/sh\necho libportaudio.so.2\n"
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def run(*commands: str) -> str:
        done = subprocess.run(
            ["unshare", "--mount", "bash", "-c", LIVE, str(tmp_path), *commands],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    made = [path for path in map(Path, ("/data",)) if not path.exists()]
    yield run
    for path in made:
        path.rmdir()  # the place for a mount, no more


def test_a_board_is_installed_left_alone_upgraded_and_given_back(
    machine: Callable[..., str], tmp_path: Path
) -> None:
    flash_sh = ROOT / "flash.sh"
    look = "stat -c %a:%U:%n /data/exo /data/models /opt/exo/core/base/unix.py /usr/local/bin/exo"
    told = machine(
        f"{flash_sh} install",
        "echo ===",
        look,
        "cat /etc/systemd/system/exod.service.d/restart.conf",
        f"{flash_sh} install",
        "echo ===",
        "rm /opt/exo/.installed /opt/exo/.venv/.exo/board",
        f"{flash_sh} install",
        "echo ===",
        f"{flash_sh} uninstall",
        "ls /opt /data /etc/systemd/system",
    )
    first, second, third, last = told.split("===\n")
    assert "set-up is complete" in first and "installed;" in first
    for row in ("700:exo:/data/exo", "755:exo:/data/models", "755:root:/usr/local/bin/exo"):
        assert row in second
    assert "644:root:/opt/exo/core/base/unix.py" in second  # though the umask was 077
    assert "RestartMaxDelaySec=60" in second and "all is as it should be" in second
    assert "stop exo-device" in third and "set-up is complete" in third
    assert (
        "remove /opt/exo" in last and "exo\nmodels" in last and "exod.service\n" not in last[-200:]
    )
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line for line in asked if "restart exo-gadget" in line] == [
        "systemctl restart exo-gadget exod exo-models exo-device exo-wifi.path exo-reset.path"
    ] * 2
    assert "systemctl stop exo-device exo-console exo-models exod" in asked
    assert asked.count("systemctl daemon-reload") == 3
