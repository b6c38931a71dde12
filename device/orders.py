"""What a person says to the device itself: louder, darker, be still, sleep, how full the battery is. exod understood
it and sends it as a ui.panel event of panel `device`, kind `command`. Owns what the device makes of each.

Invariant: an order that is not known, or holds nonsense, changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exo.device import wire

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

LEVELS = {"volume": ("voice.volume", 80, 0), "brightness": ("screen.brightness", 100, 5)}


def obey(device: Handheld, action: str, data: dict[str, Any]) -> None:
    """Carry an order out."""
    if action in LEVELS:
        name, usual, least = LEVELS[action]
        now = float(str(device.wanted(name, usual)))
        if (wanted := _level(data, now)) is not None:
            device.save(name, round(max(least, min(100, wanted))))
    elif action == "mute":
        device.talk.hush(data.get("value") != 0)
    elif action == "sleep":
        device.drowsy = True
    elif action == "battery":
        percent, charging = device.battery
        key = "battery.unknown" if percent is None else "battery.known"
        more = device.texts("battery.charging") if charging else ""
        told = device.texts(key, percent=str(percent), more=more)
        device.notices.add(wire.Notice("info", told))
    elif action == "stop":
        device.notices.hush()
        device.voice.cancel()


def _level(data: dict[str, Any], now: float) -> float | None:
    for key, base in (("value", 0.0), ("delta", now)):
        if isinstance(data.get(key), int | float) and not isinstance(data[key], bool):
            return base + float(data[key])
    return None
