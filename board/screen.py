"""The screen port: four things that every panel can do, and no more; and the panel of a board that has
none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from PIL.Image import Image

Box = tuple[int, int, int, int]  # left, upper, right, lower; right and lower edge excluded


class Screen(Protocol):
    """A panel. Calls come from one thread."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        ...

    @property
    def mode(self) -> str:
        """Pillow mode of the images that `show` takes: "1", "L" or "RGB"."""
        ...

    def show(self, image: Image, box: Box | None = None) -> None:
        """Show `image`, of `size` and `mode`; `box` names the part that changed since the last one,
        None all of it. Raises BoardError for an image that does not fit, or a panel that fails."""
        ...

    def power(self, level: float) -> None:
        """Set the brightness: 0 dark (the image is kept), 1 full. Raises BoardError outside 0 to 1."""
        ...


def check_level(level: float) -> None:
    """Raise BoardError unless `level` is within 0 to 1."""
    from exo.core.base.errors import BoardError

    if not 0 <= level <= 1:
        raise BoardError("set the brightness", f"{level} is not within 0 to 1")


def check(screen: Screen, image: Image, box: Box | None) -> None:
    """Raise BoardError unless `image` and `box` fit `screen`; for drivers to call first."""
    from exo.core.base.errors import BoardError

    if image.size != screen.size or image.mode != screen.mode:
        wanted = f"{screen.size[0]}x{screen.size[1]} {screen.mode}"
        raise BoardError(
            "show an image", f"it is {image.size[0]}x{image.size[1]} {image.mode}, not {wanted}"
        )
    if box is not None:
        left, upper, right, lower = box
        if not (0 <= left < right <= screen.size[0] and 0 <= upper < lower <= screen.size[1]):
            raise BoardError("show an image", f"the box {box} is not on the panel")


class NoPanel:
    """A board without a panel: takes every picture and shows none."""

    def __init__(self, size: tuple[int, int] = (128, 64), mode: str = "1") -> None:
        self.size, self.mode = size, mode

    def show(self, image: Image, box: Box | None = None) -> None:
        check(self, image, box)

    def power(self, level: float) -> None:
        check_level(level)
