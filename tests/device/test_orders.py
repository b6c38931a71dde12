"""What a person says to the device itself is carried out, once, by the device it was said to."""

from __future__ import annotations

from typing import Any

import pytest
from exo.device import events as ev


def order(bench: Any, action: str, session: str = "s1", **data: Any) -> None:
    body = {"panel": "device", "kind": "command", "action": action, "data": data}
    bench.wire("ui.panel", session=session, **body)


def kept(bench: Any) -> list[tuple[str, Any]]:
    return [(body["key"], body["value"]) for body in bench.calls("config.set")]


@pytest.mark.parametrize(
    ("action", "data", "saved"),
    [
        ("volume", {"value": 70}, [("voice.volume", 70)]),
        ("volume", {"delta": 10}, [("voice.volume", 90)]),
        ("volume", {"delta": -200}, [("voice.volume", 0)]),
        ("brightness", {"delta": -10}, [("screen.brightness", 90)]),
        ("brightness", {"value": 0}, [("screen.brightness", 5)]),
        ("mute", {"value": 1}, [("voice.mute", True)]),
        ("mute", {"value": 0}, [("voice.mute", False)]),
        *(("volume", {"value": each}, []) for each in ("loud", None, True, [])),
        *(("volume", {}, []), ("dance", {"value": 1}, []), ("", {}, [])),
    ],
)
def test_an_order_is_a_setting(
    bench: Any, action: str, data: dict[str, Any], saved: list[tuple[str, Any]]
) -> None:
    bench.device.link.session = "s1"
    bench.device.options |= {"voice.volume": 80, "screen.brightness": 100}
    order(bench, action, **data)
    assert kept(bench) == saved


def test_another_session_orders_nothing(bench: Any) -> None:
    bench.device.link.session = "s1"
    order(bench, "volume", session="s2", value=10)
    bench.wire("ui.panel", panel="device", kind="command", action="volume", data="nonsense")
    assert kept(bench) == []


def test_sleep_is_dark_at_the_next_rest_and_a_press_wakes(bench: Any) -> None:
    bench.device.link.session = "s1"
    bench.ask("go to sleep")
    order(bench, "sleep")
    assert not bench.device.dark
    bench.complete("Good night.")
    bench.tap("back", "back")
    bench.pass_(1)
    assert bench.state == "idle" and bench.device.dark
    bench.press("ok", 0.1)
    assert not bench.device.dark and not bench.device.drowsy


def test_the_battery_is_told_and_unknown_is_unknown(bench: Any) -> None:
    bench.device.link.session = "s1"
    order(bench, "battery")
    bench.pass_(0.1)
    assert "not known" in " ".join(bench.screen.split())
    bench.pass_(60)
    bench.do(ev.Battery(42, True))
    order(bench, "battery")
    bench.pass_(0.1)
    assert "42%, charging" in " ".join(bench.screen.split())


def test_orders_that_come_before_the_last_was_kept_add_up(bench: Any) -> None:
    bench.device.link.session = "s1"
    bench.device.options |= {"voice.volume": 50, "screen.brightness": 100, "voice.mute": False}
    order(bench, "volume", delta=10)
    order(bench, "brightness", value=40)
    order(bench, "volume", delta=10)
    assert kept(bench)[-1] == ("voice.volume", 70)
    for name in ("voice.volume", "screen.brightness", "voice.volume"):
        bench.do(ev.Called(f"set {name}", 0, {}))
    assert bench.device.options["voice.volume"] == 70
    assert bench.device.options["screen.brightness"] == 40
    order(bench, "volume", delta=-30)
    bench.do(ev.Called("set voice.volume", 0, None, "service", "Connection refused"))
    order(bench, "volume", delta=10)
    assert kept(bench)[-1] == ("voice.volume", 80)
