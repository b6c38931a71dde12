"""The pages of settings: what can be chosen on the device, the PIN, storage, about, and what ends things.
Owns which settings are offered; their values live in exod's table.

Invariant: a setting that exod does not know has no row, and an action that the board cannot do neither."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from exo.core.base.errors import ExoError
from exo.core.base.settings import BY_NAME
from exo.device.browse import Confirm, Item, ListPage, Page, TextPage
from exo.device.entry import Digits
from exo.device.locale import languages
from exo.device.network import WifiPage
from exo.device.wire import Notice

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

Value = bool | int | float | str
LIVE = (
    "screen.",
    "lock.",
    "voice.volume",
    "voice.mute",
    "sounds",
    "listen.mode",
)  # settings that the pages follow at once


@dataclass(frozen=True)
class Option:
    """A setting that can be chosen from a few values."""

    name: str
    values: tuple[Value, ...]
    unit: str = ""


OPTIONS = (
    Option("voice.backend", ("piper", "espeak", "off")),
    Option("screen.language", languages()),
    Option("voice.language", languages()),
    Option("voice.mute", (True, False)),
    Option("screen.brightness", (10, 25, 50, 75, 100), "%"),
    Option("voice.volume", (10, 20, 40, 60, 80, 100), "%"),
    Option("sounds", ("on", "off")),
    Option("listen.mode", ("auto", "hold", "tap")),
    Option("screen.sleep", (0, 15, 30, 60, 120, 300, 600), "s"),
    Option("screen.text", ("normal", "large")),
    Option("screen.contrast", ("normal", "high")),
)
LOCKS = Option("lock.sleep", (True, False))
OFFERED = tuple(each.name for each in (*OPTIONS, LOCKS) if each.name in BY_NAME)


def shown(device: Handheld, option: Option, value: Value) -> str:
    """A value in words."""
    name = f"value.{option.name}.{value}"
    if name in device.texts:
        return device.texts(name)
    if isinstance(value, bool):
        return device.texts("value.on" if value else "value.off")
    if isinstance(value, str):
        return value
    if option.unit == "s" and value and value % 60 == 0:
        return f"{value / 60:g} min"
    return f"{value:g} {option.unit}".strip()


def settings(device: Handheld, parent: Page) -> ListPage:
    """What can be set."""

    def items() -> list[Item]:
        texts = device.texts
        found = [_row(device, option, page) for option in OPTIONS if option.name in device.options]
        if device.pin:
            state = texts("value.on" if device.pin.set else "value.off")
            found.append(Item(texts("pin"), lambda: device.go(pin(device, page)), state))
        if device.wifi:
            opens = device.wifi
            found.append(Item(texts("wifi"), lambda: device.go(WifiPage(device, opens, page))))
        if device.system:
            found.append(_text(device, "storage", device.system.storage, page))
            found.append(_text(device, "about", device.system.about, page))
            for name, act in device.system.actions.items():
                found.append(Item(texts(f"end.{name}"), _ending(device, name, act, page)))
        return found

    page = ListPage(device, "settings", device.texts("menu.settings"), items, parent)
    return page


def _row(device: Handheld, option: Option, parent: Page) -> Item:
    value = device.options[option.name]

    def act() -> None:
        device.go(choice(device, option, parent))

    return Item(device.texts(f"set.{option.name}"), act, shown(device, option, value))


def _text(device: Handheld, name: str, text: Callable[[], str], parent: Page) -> Item:
    title = device.texts(name)
    return Item(title, lambda: device.go(TextPage(device, "about", title, text(), parent)))


def choice(device: Handheld, option: Option, parent: Page) -> ListPage:
    """The values of one setting; the one in force is marked."""
    now = device.options.get(option.name)

    def choose(value: Value) -> None:
        device.save(option.name, value)
        page.back()

    def items() -> list[Item]:
        return [
            Item(shown(device, option, each), partial(choose, each), marked=each == now)
            for each in option.values
        ]

    chosen = option.values.index(now) if now in option.values else 0
    title = device.texts(f"set.{option.name}")
    page = ListPage(device, "choice", title, items, parent, chosen)
    return page


def _ending(
    device: Handheld, name: str, act: Callable[[], None], parent: Page
) -> Callable[[], None]:
    """What ends something: behind a hold; a reset also behind the PIN."""
    texts = device.texts
    title = texts(f"end.{name}")

    def run() -> None:
        device.home()
        try:
            act()
        except ExoError as error:
            device.notices.add(Notice("error", str(error), aloud=False))

    confirm = Confirm(device, title, texts(f"end.{name}.what"), run, parent)
    if name == "reset" and device.pin and device.pin.set:
        return lambda: device.go(known(device, title, parent, lambda: device.go(confirm)))
    return lambda: device.go(confirm)


# the PIN


def known(device: Handheld, title: str, parent: Page, then: Callable[[], None]) -> Digits:
    """Asks for the PIN that is set, then goes on."""

    def check(digits: str) -> None:
        if _matches(device, digits):
            then()
        else:
            page.clear(device.texts("pin.wrong"))

    page = Digits(device, "pin", title, check, parent, lambda: _wait(device))
    return page


def _matches(device: Handheld, digits: str) -> bool:
    """Whether it is the PIN; one that cannot be judged, since the disk refuses, is none."""
    try:
        return device.pin is not None and device.pin.matches(digits)
    except ExoError as error:
        device.notices.add(Notice("error", str(error), aloud=False))
        return False


def _wait(device: Handheld) -> int:
    return -int(-device.pin.wait // 1) if device.pin else 0


def pin(device: Handheld, parent: Page) -> Page:
    """A first PIN, or what can be done with the one that is set."""
    texts = device.texts

    def save(digits: str) -> None:
        try:
            assert device.pin is not None
            device.pin.change(digits)
            done = texts("pin.set" if digits else "pin.off")
            device.notices.add(Notice("info", done, texts("pin"), aloud=False))
        except ExoError as error:
            device.notices.add(Notice("error", str(error), aloud=False))
        device.home()

    def again(first: str) -> None:
        def compare(second: str) -> None:
            if second == first:
                save(first)
            else:
                device.page = new()
                device.page.clear(texts("pin.differ"))

        device.page = Digits(device, "pin", texts("pin.again"), compare, parent)

    def new() -> Digits:
        return Digits(device, "pin", texts("pin.new"), again, parent)

    if device.pin is None or not device.pin.set:
        return new()

    def change() -> None:
        device.page = new()

    def items() -> list[Item]:
        asked = texts("pin.old")
        rows = [
            Item(texts("pin.change"), lambda: device.go(known(device, asked, page, change))),
            Item(
                texts("pin.remove"),
                lambda: device.go(known(device, asked, page, lambda: save(""))),
            ),
        ]
        if LOCKS.name in device.options:
            value = bool(device.options[LOCKS.name])
            toggle = partial(device.save, LOCKS.name, not value)
            label = texts(f"set.{LOCKS.name}")
            rows.append(Item(label, toggle, shown(device, LOCKS, value)))
        return rows

    page = ListPage(device, "choice", texts("pin"), items, parent)
    return page


# behind the PIN


def unlock(device: Handheld) -> Digits:
    """The page that opens the device."""

    def check(digits: str) -> None:
        if _matches(device, digits):
            device.unlocked()
        else:
            page.clear(device.texts("pin.wrong"))

    reset = device.system.actions.get("reset") if device.system else None

    def lost() -> None:
        title, what = device.texts("pin.lost"), device.texts("pin.lost.what")
        device.go(Confirm(device, title, what, wipe, state="lost"))

    def wipe() -> None:
        try:
            if reset:
                reset()
        except ExoError as error:  # told at once: behind the PIN no other notice is
            device.notices.show("notice", Notice("error", str(error), aloud=False))

    page = Digits(
        device,
        "unlock",
        device.texts("pin.enter"),
        check,
        wait=lambda: _wait(device),
        lost=lost if reset else None,
    )
    return page
