"""The maker of font files against the reader of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from exo.device.font import FontFile
from exo.tools.fonts import main, pack, read_hex

HEX = "0041:0000000018242442427E424242420000\n4F60:" + "08800880" * 16 + "\n0007:" + "AA" * 32


def test_what_is_packed_is_found_again(tmp_path: Path) -> None:
    glyphs = dict(read_hex(HEX))
    assert set(glyphs) == {0x41, 0x4F60}  # a control's box is left out
    path = tmp_path / "a.font"
    path.write_bytes(pack(glyphs, 16, 14))
    font = FontFile(path)
    assert (font.height, font.ascent, font.glyphs) == (16, 14, 2)
    for code, glyph in glyphs.items():
        assert font.bitmap(code) == glyph
    assert font.bitmap(0x40) is font.bitmap(0x42) is font.bitmap(0x10FFFF) is None


def test_a_glyph_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"U\+0041"):
        pack({0x41: (8, b"\0" * 15)}, 16, 14)


def test_missing_packages_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--out", str(tmp_path), "--root", str(tmp_path)]) == 1
    assert "apt-get install unifont" in capsys.readouterr().out
