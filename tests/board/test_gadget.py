"""The USB gadget in a fake configfs. The kernel makes and removes the files of a folder itself: the fake's `rmdir`
does so for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from exo.board import gadget
from exo.core.base.errors import BoardError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "sys/kernel/config/usb_gadget").mkdir(parents=True)
    (tmp_path / "sys/class/udc/3f980000.usb").mkdir(parents=True)
    (tmp_path / "proc/device-tree").mkdir(parents=True)
    (tmp_path / "proc/device-tree/serial-number").write_text("00000000abcdef01\0")
    return tmp_path


@pytest.fixture
def configfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attributes go with their folder; a folder with folders or links in it stays (configfs.rst)."""
    real = Path.rmdir

    def rmdir(path: Path) -> None:
        for each in path.iterdir():
            if each.is_file() and not each.is_symlink():
                each.unlink()
        for each in path.iterdir():
            if each.name in ("configs", "functions", "strings") and not any(each.iterdir()):
                real(each)
        real(path)

    monkeypatch.setattr(Path, "rmdir", rmdir)


def test_up_writes_what_the_kernel_wants(root: Path) -> None:
    folder = gadget.up(root)
    assert (folder / "idVendor").read_text() == "0x1d6b\n"
    assert (folder / "strings/0x409/product").read_text() == "Exo\n"
    assert (folder / "strings/0x409/serialnumber").read_text() == "00000000abcdef01\n"
    assert (folder / "configs/c.1/acm.usb0").resolve() == folder / "functions/acm.usb0"
    assert (folder / "UDC").read_text() == "3f980000.usb\n"


def test_up_again_changes_nothing(root: Path) -> None:
    folder = gadget.up(root)
    (folder / "strings/0x409/product").write_text("mine\n")
    gadget.up(root)
    assert (folder / "strings/0x409/product").read_text() == "mine\n"


def test_half_a_gadget_is_finished(root: Path) -> None:
    folder = gadget.up(root)
    (folder / "UDC").write_text("\n")
    (folder / "configs/c.1/acm.usb0").unlink()
    gadget.up(root)
    assert (folder / "configs/c.1/acm.usb0").is_symlink()
    assert (folder / "UDC").read_text() == "3f980000.usb\n"


@pytest.mark.usefixtures("configfs")
def test_down_leaves_configfs_as_it_was(root: Path) -> None:
    folder = gadget.up(root)
    gadget.down(root)
    assert not folder.exists()
    gadget.down(root)


def test_a_board_that_cannot_is_told_what_to_do(root: Path) -> None:
    (root / "sys/class/udc/3f980000.usb").rmdir()
    with pytest.raises(BoardError, match="dr_mode=peripheral"):
        gadget.up(root)
    (root / "sys/kernel/config/usb_gadget").rmdir()
    with pytest.raises(BoardError, match="libcomposite"):
        gadget.up(root)


def test_the_command_says_what_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gadget.main(["up", "--root", str(tmp_path)]) == 1
    assert "libcomposite" in capsys.readouterr().err


def test_the_pc_looks_for_the_same_ids() -> None:
    from exo.tools import console

    assert (gadget.VENDOR, gadget.PRODUCT) in console.IDS
    assert gadget.Gadget().product == console.PRODUCT
