"""Smooth letters: the maker's files against the reader, and what stands in for a letter that is missing."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from exo.core.base.errors import BoardError
from exo.device.font import FOLDER, Fonts
from exo.device.strike import Face, Strike
from exo.tools.fonts import strike
from PIL import Image, ImageChops, ImageFont

FONTS = Fonts()
NAMES = [f"{weight}-{size}" for weight in ("medium", "bold") for size in (18, 21, 26, 34)]


@pytest.mark.parametrize("name", NAMES)
def test_every_glyph_fits_its_line(name: str) -> None:
    face = Face(name, FONTS)
    for cluster in "AgÅjẾЖщΩ…“„€→✓½你が한😀ไש":
        ink = face.ink(cluster)
        assert face.measure(cluster) == (ink.step, face.height)
        assert ink.step > 0
        assert ink.top >= -1 and ink.top + ink.mask.height <= face.height + 1, cluster
        assert ink.mask.getbbox(), cluster


def test_marks_are_laid_over_the_letter() -> None:
    face = Face("medium-26", FONTS)
    bare, marked = face.ink("x"), face.ink("x\u0301")
    assert marked.step == bare.step
    assert marked.mask.height > bare.mask.height
    assert face.ink("a\u0301\u20e3").mask.getbbox()  # a mark that no font has: the letter is drawn


def test_a_sharp_face_has_no_grey() -> None:
    for cluster in "a你😀":
        mask = Face("medium-18", FONTS, sharp=True).ink(cluster).mask
        assert mask.mode == "1"
        assert mask.getbbox()


def test_a_line_may_be_lower_than_the_strike() -> None:
    plain, low = Face("medium-18", FONTS), Face("medium-18", FONTS, line=20)
    assert low.height == 20 < plain.height
    assert low.ink("a").top < plain.ink("a").top
    assert low.ink("g").top + low.ink("g").mask.height <= 20


def test_clock_faces_have_what_a_clock_shows() -> None:
    for name in ("clock-84", "clock-112"):
        strike = Strike(FOLDER / f"{name}.font")
        steps = {strike.ink(ord(digit)).step for digit in "0123456789"}  # type: ignore[union-attr]
        assert len(steps) == 1, "the time jumps"
        assert strike.ink(ord(":")) and strike.ink(ord("a")) is None


@pytest.mark.parametrize("content", [b"", b"short", b"NOTAFONT" + bytes(40)])
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.font").write_bytes(content)
    with pytest.raises(BoardError, match=r"x\.font"):
        Face("x", FONTS, folder=tmp_path)


def test_what_is_made_is_found_again(tmp_path: Path) -> None:
    source = ImageFont.load_default(20).path  # the outline font inside Pillow
    assert isinstance(source, BytesIO)
    outlines = tmp_path / "outlines.ttf"
    outlines.write_bytes(source.getvalue())
    (tmp_path / "made.font").write_bytes(strike(outlines, 20, "Aj :\ue000"))
    made = Strike(tmp_path / "made.font")
    assert made.glyphs == 4 and made.ink(0xE000) is None  # it has no such letter
    face = ImageFont.truetype(str(outlines), 20, layout_engine=ImageFont.Layout.BASIC)
    for letter in "Aj:":
        ink = made.ink(ord(letter))
        assert ink is not None and ink.step == round(face.getlength(letter))
        left, top, _, _ = face.getbbox(letter)
        mask = face.getmask(letter)
        wanted = Image.new("L", mask.size)
        wanted.im.paste(mask, (0, 0, *mask.size))
        box = wanted.getbbox()
        assert box is not None
        assert ink.mask.size == (box[2] - box[0], box[3] - box[1])
        difference = ImageChops.difference(ink.mask, wanted.crop(box))
        assert difference.getextrema()[1] <= 8  # of 255: four bits are kept
    space = made.ink(ord(" "))
    assert space is not None and space.step > 0 and not space.mask.getbbox()


def test_strikes_are_small_and_licensed() -> None:
    sizes = [path.stat().st_size for path in FOLDER.glob("*-*.font")]
    assert len(sizes) == 10
    assert max(sizes) < 300_000 and sum(sizes) < 1_500_000
    assert "Apache" in (FOLDER / "LICENSE-roboto.txt").read_text()
