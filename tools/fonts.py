"""Makes the bitmap fonts of the handheld from Debian's packages. Owns reading the sources; the formats
belong to exo.device.font and exo.device.strike. Run by hand when a font changes, never at set-up:

    apt-get install unifont fonts-unifont xfonts-base fonts-roboto-unhinted
    python -m exo.tools.fonts --out device/fonts

Invariant: the same packages give the same bytes."""

from __future__ import annotations

import argparse
import gzip
import struct
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

# 6x10 draws stops as small crosses, which read as other signs on a coarse panel: dots of 2 x 2 instead
STOPS = {
    ".": "6 7",
    ":": "3 4 6 7",
    ",": "6 7 8l",
    ";": "3 4 6 7 8l",
}

Glyphs = dict[int, tuple[int, bytes]]  # code point -> width in pixels, rows of whole bytes

MAGIC = b"EXOFONT1"
STRIKE_MAGIC = b"EXOFONT2"
UNIFONT_HEX = "/usr/share/unifont/unifont.hex"
UNIFONT_UPPER = "/usr/share/fonts/opentype/unifont/unifont_upper.otf"
MISC_FIXED = "/usr/share/fonts/X11/misc/6x10.pcf.gz"
ROBOTO = "/usr/share/fonts/truetype/roboto/unhinted/RobotoCondensed-{}.ttf"
# strikes of smooth letters: file -> weight, pixels an em, code points (None: SMOOTH)
STRIKES: dict[str, tuple[str, int, str | None]] = {
    **{
        f"{weight.lower()}-{pixels}": (weight, pixels, None)
        for weight in ("Medium", "Bold")
        for pixels in (18, 21, 26, 34)
    },
    "clock-84": ("Bold", 84, "0123456789:exo"),
    "clock-112": ("Bold", 112, "0123456789:exo"),
}
# Latin, Greek, Cyrillic; Vietnamese; stops, currencies, letterlike signs, arrows and mathematics
SMOOTH: tuple[tuple[int, int], ...] = (
    (0x20, 0x180),
    (0x192, 0x193),
    (0x1A0, 0x1B1),
    (0x218, 0x21C),
    (0x2C6, 0x2DE),
    (0x300, 0x346),
)
SMOOTH += ((0x370, 0x460), (0x490, 0x492), (0x1E00, 0x1F00), (0x2000, 0x2300), (0x25A0, 0x2600))
# of the planes above the first only what people write in messages: mathematical letters, symbols, emoji
UPPER = ((0x1D400, 0x1D7FF), (0x1F000, 0x1FAFF))


def main(arguments: list[str] | None = None) -> int:
    """Write `wide.font` and `small.font`; returns an exit code."""
    parser = argparse.ArgumentParser(prog="fonts", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=Path("/"), help="where the packages lie")
    options = parser.parse_args(arguments)

    def source(name: str) -> Path:
        return options.root / name.lstrip("/")

    try:
        wide = dict(read_hex(source(UNIFONT_HEX).read_text()))
        wide.update(read_outlines(source(UNIFONT_UPPER)))
        small = read_pcf(gzip.decompress(source(MISC_FIXED).read_bytes()))
    except OSError as error:
        print(f"read the sources: {error}; apt-get install unifont fonts-unifont xfonts-base")
        return 1
    small.update((ord(stop), (6, _stop(rows))) for stop, rows in STOPS.items())
    for name, glyphs, height, ascent in (("wide", wide, 16, 14), ("small", small, 10, 8)):
        path = options.out / f"{name}.font"
        path.write_bytes(pack(glyphs, height, ascent))
        print(f"{path}: {len(glyphs)} glyphs, {path.stat().st_size} bytes")
    for name, (weight, pixels, letters) in STRIKES.items():
        path = options.out / f"{name}.font"
        try:
            path.write_bytes(strike(source(ROBOTO.format(weight)), pixels, letters))
        except OSError as error:
            print(f"read the sources: {error}; apt-get install fonts-roboto-unhinted")
            return 1
        print(f"{path}: {path.stat().st_size} bytes")
    return 0


def strike(path: Path, pixels: int, letters: str | None) -> bytes:
    """Return the letters of an outline font at one size: a header, an index sorted by code point, then
    the ink of each letter cut to its box, four bits a pixel, rows of whole bytes."""
    from PIL import Image, ImageDraw, ImageFont

    face = ImageFont.truetype(str(path), pixels, layout_engine=ImageFont.Layout.BASIC)
    ascent, descent = face.getmetrics()
    present = set(read_cmap(path.read_bytes()))
    wanted = [ord(c) for c in letters] if letters else [c for a, b in SMOOTH for c in range(a, b)]
    index, ink = bytearray(), bytearray()
    kept = [
        code
        for code in sorted(wanted)
        if code in present and unicodedata.category(chr(code)) not in ("Cc", "Cf", "Cn", "Zl", "Zp")
    ]
    for code in kept:
        left, top, right, lower = (int(edge) for edge in face.getbbox(chr(code)))
        image = Image.new("L", (max(1, right - left), max(1, lower - top)))
        ImageDraw.Draw(image).text((-left, -top), chr(code), fill=255, font=face)
        box = image.getbbox() or (0, 0, 0, 0)
        image = image.crop(box)
        step = round(face.getlength(chr(code)))
        index += struct.pack(
            "<IBbbBBI", code, step, left + box[0], top + box[1], *image.size, len(ink)
        )
        ink += _nibbles(image)
    head = STRIKE_MAGIC + struct.pack("<BBH", ascent + descent, ascent, len(kept))
    return head + bytes(index) + bytes(ink)


def _nibbles(image: Image.Image) -> bytes:
    """Four bits a pixel, the left one high."""
    raw, rows = image.tobytes(), bytearray()
    for start in range(0, len(raw), image.width or 1):
        line = [round(value / 17) for value in raw[start : start + image.width]]
        line += [0] * (len(line) % 2)
        rows += bytes(high << 4 | low for high, low in zip(line[::2], line[1::2], strict=True))
    return bytes(rows)


def pack(glyphs: Glyphs, height: int, ascent: int) -> bytes:
    """Return the font file: a header, runs of neighbours of one width sorted by code point, bitmaps."""
    runs: list[tuple[int, int, int, int]] = []  # first, count, width, offset of the bitmaps
    bitmaps = bytearray()
    for code in sorted(glyphs):
        width, rows = glyphs[code]
        if len(rows) != height * ((width + 7) // 8):
            raise ValueError(f"U+{code:04X} is {len(rows)} bytes, not {height} rows of {width}")
        if runs and runs[-1][0] + runs[-1][1] == code and runs[-1][2] == width:
            first, count, _, offset = runs[-1]
            runs[-1] = (first, count + 1, width, offset)
        else:
            runs.append((code, 1, width, len(bitmaps)))
        bitmaps += rows
    head = MAGIC + struct.pack("<BBHI", height, ascent, len(runs), len(glyphs))
    return head + b"".join(struct.pack("<IHHI", *run) for run in runs) + bytes(bitmaps)


def _stop(rows: str) -> bytes:
    """Rows with two pixels of ink in the middle; `l` after a number draws one, further left."""
    bitmap = bytearray(10)
    for row in rows.split():
        bitmap[int(row.rstrip("l"))] = 0b00100000 if row.endswith("l") else 0b00110000
    return bytes(bitmap)


def read_hex(text: str) -> Iterator[tuple[int, tuple[int, bytes]]]:
    """Yield glyphs of Unifont's .hex: `CODE:ROWS`, 16 rows of 8 or 16 pixels. What stands for nothing
    (controls, surrogates, private use, unassigned) is left out: those are boxes there."""
    for line in text.split():
        code, _, rows = line.partition(":")
        if unicodedata.category(chr(int(code, 16))) not in ("Cc", "Cs", "Co", "Cn"):
            raw = bytes.fromhex(rows)
            yield int(code, 16), (len(raw) // 2, raw)


def read_outlines(path: Path) -> Iterator[tuple[int, tuple[int, bytes]]]:
    """Yield the glyphs of UPPER from Unifont's OpenType file; at 16 pixels its outlines are the pixels."""
    from PIL import Image, ImageDraw, ImageFont

    face = ImageFont.truetype(str(path), 16)
    present = set(read_cmap(path.read_bytes()))
    for low, high in UPPER:
        for code in range(low, high + 1):
            if code not in present or unicodedata.category(chr(code)) == "Cn":
                continue
            width = 8 if face.getlength(chr(code)) <= 8 else 16
            image = Image.new("1", (width, 16))
            draw = ImageDraw.Draw(image)
            draw.fontmode = "1"
            draw.text((0, 14), chr(code), fill=1, font=face, anchor="ls")
            yield code, (width, image.tobytes())


def read_cmap(raw: bytes) -> Iterator[int]:
    """Yield the code points of an OpenType file's tables of format 12 and 4 (OpenType 1.9, `cmap`)."""
    for table in range(struct.unpack_from(">H", raw, 4)[0]):
        tag, _, start, _ = struct.unpack_from(">4sIII", raw, 12 + 16 * table)
        if tag != b"cmap":
            continue
        for record in range(struct.unpack_from(">H", raw, start + 2)[0]):
            sub = start + struct.unpack_from(">HHI", raw, start + 4 + 8 * record)[2]
            form = struct.unpack_from(">H", raw, sub)[0]
            if form == 4:
                count = struct.unpack_from(">H", raw, sub + 6)[0] // 2
                ends = struct.unpack_from(f">{count}H", raw, sub + 14)
                starts = struct.unpack_from(f">{count}H", raw, sub + 16 + 2 * count)
                for first, last in zip(starts, ends, strict=True):
                    yield from range(first, min(last, 0xFFFE) + 1)
            if form != 12:
                continue
            for group in range(struct.unpack_from(">I", raw, sub + 12)[0]):
                first, last, _ = struct.unpack_from(">III", raw, sub + 16 + 12 * group)
                yield from range(first, last + 1)


def read_pcf(raw: bytes) -> Glyphs:
    """Return the glyphs of an X11 portable compiled font whose encoding is Unicode, each drawn into a
    cell of the font's own advance by ascent + descent."""
    tables = {}
    for number in range(struct.unpack_from("<I", raw, 4)[0]):
        kind, form, _, offset = struct.unpack_from("<IIII", raw, 8 + 16 * number)
        tables[kind] = (form, offset)
    metrics = _pcf_metrics(raw, *tables[1 << 2])
    form, offset = tables[1 << 3]  # bitmaps
    order = ">" if form & 4 else "<"
    count = struct.unpack_from(order + "I", raw, offset + 4)[0]
    starts = struct.unpack_from(f"{order}{count}I", raw, offset + 8)
    data = offset + 8 + 4 * count + 16
    pad, reverse = 1 << (form & 3), not form & 8
    glyphs: Glyphs = {}
    for code, index in _pcf_encodings(raw, *tables[1 << 5]):
        left, right, advance, ascent, descent = metrics[index]
        if unicodedata.category(chr(code)) in ("Cc", "Cs", "Co", "Cn") or not advance:
            continue
        stride = ((right - left + 7) // 8 + pad - 1) // pad * pad
        rows = [0] * 10
        for y in range(ascent + descent):
            line = raw[data + starts[index] + y * stride :][:stride]
            if reverse:
                line = bytes(int(f"{byte:08b}"[::-1], 2) for byte in line)
            bits = int.from_bytes(line, "big") >> (8 * stride - 8) if stride else 0
            if 0 <= 8 - ascent + y < 10:
                shifted = bits >> left if left >= 0 else bits << -left
                rows[8 - ascent + y] = shifted & 0xFF
        glyphs[code] = (advance, bytes(rows))
    return glyphs


def _pcf_metrics(raw: bytes, form: int, offset: int) -> list[tuple[int, int, int, int, int]]:
    order = ">" if form & 4 else "<"
    if form & 0x100:  # compressed: bytes with a bias of 128
        count = struct.unpack_from(order + "H", raw, offset + 4)[0]
        cells = struct.iter_unpack("5B", raw[offset + 6 :][: 5 * count])
        return [tuple(value - 128 for value in cell) for cell in cells]  # type: ignore[misc]
    count = struct.unpack_from(order + "I", raw, offset + 4)[0]
    cells = struct.iter_unpack(order + "5hH", raw[offset + 8 :][: 12 * count])
    return [cell[:5] for cell in cells]  # type: ignore[misc]


def _pcf_encodings(raw: bytes, form: int, offset: int) -> Iterator[tuple[int, int]]:
    order = ">" if form & 4 else "<"
    low, high, first, last, _ = struct.unpack_from(order + "5h", raw, offset + 4)
    place = offset + 14
    for row in range(first, last + 1):
        for column in range(low, high + 1):
            index = struct.unpack_from(order + "H", raw, place)[0]
            place += 2
            if index != 0xFFFF:
                yield row << 8 | column, index


if __name__ == "__main__":
    sys.exit(main())
