"""Battery, warnings and the orderly end: on a clock that a test moves, and with a real exod."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from exo.board.battery import STALE, Reading
from exo.board.fake import FakeGauge, FakeLight, FakePanel
from exo.board.led import LOOKS, Beacon
from exo.core.base.client import Client
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.base.unix import reachable
from exo.device import events as ev
from exo.device.font import Fonts
from exo.device.handheld import Handheld
from exo.device.locale import Texts
from exo.device.pages import Pages
from exo.device.power import AGAIN, NOTICE, POLL, RISE, SURE, Ending, Power, Watch, command, powered
from exo.device.states import Machine
from exo.tools.clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st

PATIENCE = 20.0  # seconds until something must have happened


class Silent:
    """Ear, voice and link of a handheld that nobody talks to."""

    session, on = "s1", True

    def __getattr__(self, name: str) -> Any:
        return lambda *args: 1


@pytest.fixture
def handheld() -> Handheld:
    clock = FakeClock()
    pages = Pages((128, 64), Fonts(), Texts())
    device = Handheld(FakePanel(), pages, clock, Machine(clock))
    parts: Any = Silent()
    device.attach(parts, parts, parts)
    device.post(ev.Link("core", True))
    device.step()
    return device


def ask(watch: Watch, *readings: Reading | int | None, every: float = POLL) -> list[str]:
    """What a watch asks for after each reading, `every` seconds apart."""
    now, found = getattr(watch, "now", 0.0), []
    for each in readings:
        now += every
        found.append(watch.take(now, each if isinstance(each, Reading) else Reading(each, False)))
    watch.now = now  # type: ignore[attr-defined]
    return found


def test_each_warning_comes_once_until_the_battery_has_risen() -> None:
    watch = Watch((15, 5), 0)
    assert ask(watch, 16, 15, 14, 15, 16, 14) == ["", "warn", "", "", "", ""]
    assert ask(watch, 5, 4, 6, 5) == ["warn", "", "", ""]
    assert ask(watch, 15 + RISE, 15) == ["", "warn"]
    assert ask(Watch((15, 5), 0), 4, 3) == ["warn", ""], "both at once are one"
    assert ask(Watch((0, 0), 0), 1, 0) == ["", ""]


def test_nothing_is_asked_for_while_it_is_charged_or_unknown() -> None:
    watch = Watch((15, 5), 3)
    assert ask(watch, *[Reading(2, True)] * 9) == [""] * 9
    assert ask(watch, *[None] * 9) == [""] * 9
    assert "end" in ask(watch, *[Reading(2, None)] * 4), (
        "a gauge that cannot tell whether it is charged"
    )


def test_the_end_needs_a_battery_that_stays_at_the_floor() -> None:
    watch = Watch((), 3)
    assert ask(watch, 3, 4, 3, 3) == [""] * 4
    assert ask(watch, 2) == ["end"]
    assert ask(watch, *[2] * round(AGAIN / POLL)) == [""] * (round(AGAIN / POLL) - 1) + ["end"]
    assert ask(watch, None, 2) == ["", ""], "a silence begins anew"
    assert "end" not in ask(Watch((), 0), *[0] * 100)


@given(st.lists(st.tuples(st.none() | st.integers(0, 100), st.none() | st.booleans())))
def test_an_end_is_only_ever_at_the_floor(steps: list[tuple[int | None, bool | None]]) -> None:
    watch, below = Watch((15, 5), 3), 0.0
    for percent, charging in steps:
        low = percent is not None and percent <= 3 and not charging
        below = below + POLL if low else 0.0
        asked = ask(watch, Reading(percent, charging))
        if asked == ["end"]:
            assert low and below > SURE
        if asked == ["warn"]:
            assert percent is not None and percent <= 15 and not charging


def test_the_battery_reaches_the_page_and_unknown_stays_unknown(handheld: Handheld) -> None:
    gauge = FakeGauge()
    clock: Any = handheld.clock
    ended: list[bool] = []
    power = Power(gauge, handheld.post, clock, Watch(), lambda: ended.append(True))

    def look(seconds: float = POLL) -> tuple[int | None, bool]:
        clock.advance(seconds)
        power.look()
        handheld.step()
        return handheld.battery

    assert look() == (None, False) and handheld.view().battery is None
    gauge.percent, gauge.charging = 80, True
    assert look() == (80, True)
    assert handheld.view().battery == 80 and handheld.view().charging
    gauge.broken = "no answer"
    assert look()[0] == 80
    assert look(STALE) == (None, False) and handheld.view().battery is None
    gauge.broken, gauge.percent, gauge.charging = "", 14, False
    look()
    assert handheld.machine.state == "notice" and "14%" in handheld.snapshot().screen
    gauge.percent = 2
    for _ in range(6):
        look()
    assert ended == [True]


def test_an_end_shows_itself_puts_exod_down_and_only_then_runs_the_command(home: Home) -> None:
    home.make()
    exod = subprocess.Popen(
        [sys.executable, "-m", "exo.core.server.app", "--home", str(home.root)],
        stderr=subprocess.PIPE,
    )
    try:
        Client(home.exod_socket).wait_ready(PATIENCE)
        order: list[Any] = []

        def run(words: Sequence[str]) -> str:
            order.append((tuple(words), reachable(home.exod_socket)))
            return ""

        def pause(seconds: float) -> None:
            if seconds == NOTICE:
                order.append("notice")
            else:
                threading.Event().wait(seconds)

        Ending(home, order.append, True, "halt -p now", "again", run=run, pause=pause).empty()
        alert = ev.Alert("warning", "power.empty", urgent=True)
        assert order == [alert, "notice", (("halt", "-p", "now"), False), ev.Quit()]
        assert exod.wait(PATIENCE) == 0
    finally:
        exod.kill()
        exod.communicate()


def test_an_exod_of_somebody_else_is_left_alone_where_it_is_no_board(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.make()
    switched: list[bool] = []
    exod = subprocess.Popen(
        [sys.executable, "-m", "exo.core.server.app", "--home", str(home.root)],
        stderr=subprocess.PIPE,
    )
    try:
        Client(home.exod_socket).wait_ready(PATIENCE)
        marker = home.state / "ran"
        ending = Ending(
            home,
            lambda event: None,
            False,
            f"touch {marker}",
            "",
            switched.append,
            pause=lambda s: None,
        )
        ending.empty()
        assert reachable(home.exod_socket) and not marker.exists()
        assert f"would run: touch {marker}" in capsys.readouterr().err
        assert switched == [False]
    finally:
        exod.kill()
        exod.communicate()


def test_an_end_that_fails_is_told_and_what_was_stopped_runs_again(home: Home) -> None:
    posted: list[ev.Event] = []
    switched: list[bool] = []
    ending = Ending(
        home, posted.append, True, "off", "off", switched.append, lambda words: "not allowed",
        lambda seconds: None,
    )  # fmt: skip
    ending.empty()
    assert switched == [False, True]
    assert posted[-1] == ev.Alert("error", "power.failed", "not allowed", urgent=True)
    assert ev.Quit() not in posted


def test_a_person_can_start_it_anew(home: Home) -> None:
    posted: queue.SimpleQueue[ev.Event] = queue.SimpleQueue()
    ran: list[tuple[str, ...]] = []

    def run(words: Sequence[str]) -> str:
        ran.append(tuple(words))
        return ""

    ending = Ending(home, posted.put, True, "off", "start anew", run=run, pause=lambda s: None)
    ending.actions["restart"]()
    assert posted.get(timeout=PATIENCE) == ev.Alert("warning", "power.restart", urgent=True)
    assert posted.get(timeout=PATIENCE) == ev.Quit() and ran == [("start", "anew")]


def test_a_command_that_fails_says_why() -> None:
    assert command(["true"]) == ""
    assert command(["false"]) == "exit 1"
    assert command(["sh", "-c", "echo first >&2; echo denied >&2; exit 4"]) == "denied"
    assert "no-such-command" in command(["no-such-command"])
    assert command([]) != ""


def test_the_light_follows_the_state(handheld: Handheld, home: Home) -> None:
    light = FakeLight()
    beacon = Beacon(light)
    settings = Settings.load(home.settings_file, {})
    ending = Ending(home, handheld.post, False, "", "")
    seen: list[str] = []

    def step(*events: ev.Event) -> None:
        for event in events:
            handheld.post(event)
        handheld.step()
        seen.append(beacon.state)

    with powered(handheld, settings, ending, None, beacon, waits=False) as power:
        assert power is None
        step()
        step(ev.Button("talk", True))
        handheld.clock.advance(1)  # type: ignore[attr-defined]
        step(ev.Button("talk", False))
        step(ev.Deaf(1, "microphone", "unplugged"))
        step(ev.Button("back", True), ev.Button("back", False))
        step(ev.Battery(9))
        step(ev.Battery(9, True))
        step(ev.Typed("hello"))
    assert seen == ["idle", "listening", "thinking", "error", "idle", "low", "idle", "thinking"]
    assert set(seen) <= set(LOOKS)
    assert light.shown[-1] == (0, 0, 0)


def test_idle_waits_for_the_minute_and_for_nothing_else(handheld: Handheld) -> None:
    second = handheld.clock.local().second
    assert handheld.rest_for() == pytest.approx(60 - second, abs=0.1)
    handheld.post(ev.Button("talk", True))
    handheld.step()
    assert handheld.rest_for() <= 0.1
    handheld.post(ev.Button("back", True))
    handheld.step()
    panel: Any = handheld.display.screen._make()
    panel.broken = "unplugged"
    handheld.clock.advance(120)  # type: ignore[attr-defined]
    handheld.step()
    assert handheld.display.fault and handheld.rest_for() <= 0.5
    panel.broken = ""
    handheld.clock.advance(0.5)  # type: ignore[attr-defined]
    handheld.step()
    assert not handheld.display.fault


def test_a_board_whose_battery_runs_out_is_switched_off(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    mock = pytest.importorskip("gpiozero.pins.mock", reason="gpiozero is not installed")
    from exo.board import detect
    from exo.board.profile import load
    from exo.device import onboard, power
    from exo.device.app import silent

    monkeypatch.setattr(onboard, "open_gauge", lambda battery: FakeGauge(2))
    monkeypatch.setattr(detect, "is_board", lambda: True)
    for name in ("POLL", "SURE", "NOTICE"):
        monkeypatch.setattr(power, name, 0.01)
    ran: list[tuple[str, ...]] = []

    def run(words: Sequence[str]) -> str:
        ran.append(tuple(words))
        return ""

    factory = mock.MockFactory(pin_class=mock.MockPWMPin)
    board, settings = load("pimoroni-display-hat-mini"), Settings.load(home.settings_file, {})
    stop = threading.Event()
    timer = threading.Timer(PATIENCE, stop.set)
    timer.start()
    assert onboard.run(home, settings, board, silent, stop, factory, command=run) == 0
    timer.cancel()
    assert ran == [("systemctl", "poweroff")] and not stop.is_set()
    factory.close()
