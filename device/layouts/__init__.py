"""Which layout draws for which panel. Owns the choice; each layout its pages."""

from __future__ import annotations

from exo.device.font import Fonts
from exo.device.layouts.sheet import Layout
from exo.device.locale import Texts

__all__ = ["Layout", "layout_for"]


def layout_for(
    size: tuple[int, int],
    mode: str,
    paper: bool,
    fonts: Fonts,
    texts: Texts,
    large: bool = False,
    high: bool = False,
) -> Layout:
    """Return the layout of a panel of `size` pixels and Pillow `mode`: paper, colour, or the coarse mono
    pages, which every other panel can show. `large`: letters; `high`: contrast."""
    if paper and mode == "1" and min(size) >= 96:
        from exo.device.layouts.paper import PaperPages

        return PaperPages(size, fonts, texts, large)
    if mode == "RGB" and min(size) >= 200:
        from exo.device.layouts.colour import ColourPages

        return ColourPages(size, fonts, texts, large, high)
    from exo.device.display import dots
    from exo.device.pages import Pages

    return Pages(dots(size, paper), fonts, texts, large)
