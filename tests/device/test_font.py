from __future__ import annotations

from pathlib import Path

import pytest
from exo.core.base.errors import BoardError
from exo.device.font import FOLDER, FontFile, Fonts


def ink(fonts: Fonts, cluster: str) -> int:
    return sum(
        fonts.glyph(cluster).image.tobytes().count(bytes([n])) * n.bit_count() for n in range(256)
    )


@pytest.mark.parametrize(
    "cluster", list("Aßéжλ—–“”„‘’…•°€½×→") + ["你", "が", "한", "😀", "❤", "ש", "ن", "ไ"]
)
def test_what_people_write_is_drawn(cluster: str) -> None:
    fonts = Fonts()
    assert ink(fonts, cluster) > 0
    assert not fonts.missing


def test_latin_is_small_and_ideographs_are_wide() -> None:
    fonts = Fonts()
    assert (fonts.glyph("a").width, fonts.glyph("a").height) == (6, 10)
    assert (fonts.glyph("你").width, fonts.glyph("你").height) == (16, 16)


def test_the_unknown_is_a_visible_box() -> None:
    fonts = Fonts()
    assert ink(fonts, "\ue000") > 0
    assert fonts.glyph("\U0002f800").width > fonts.glyph("\ue000").width
    assert fonts.missing == {"\ue000", "\U0002f800"}


def test_marks_are_laid_over_the_letter() -> None:
    fonts = Fonts()
    assert ink(fonts, "x\u0301") > ink(fonts, "x")
    assert fonts.glyph("x\u0301").width == 6
    assert ink(fonts, "ש\u05b8") > ink(fonts, "ש")


def test_quotes_differ_from_each_other() -> None:
    fonts = Fonts()
    assert len({fonts.glyph(quote).image.tobytes() for quote in "“”\"„‘’'"}) == 7


@pytest.mark.parametrize("content", [b"", b"short", b"NOTAFONT" + bytes(40)])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "small.font"
    path.write_bytes(content)
    with pytest.raises(BoardError, match=r"small\.font"):
        FontFile(path)


def test_files_are_small_and_licensed() -> None:
    for name in ("small", "wide"):
        assert (FOLDER / f"{name}.font").stat().st_size < 2_500_000
        assert (FOLDER / f"LICENSE-{name}.txt").stat().st_size > 100
