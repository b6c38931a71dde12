"""The PIN: its file, its delay, and what a locked device shows and does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from exo.core.base.errors import StorageError
from exo.device import events as ev
from exo.device import pin as pin_module
from exo.device.pin import DELAYS, FREE, Pin
from exo.tools.clock import FakeClock

if TYPE_CHECKING:
    from conftest import Bench


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pin(tmp_path: Path, clock: FakeClock) -> Pin:
    made = Pin(tmp_path / "pin", clock)
    made.change("2468")
    return made


def test_only_the_right_digits_match(pin: Pin) -> None:
    assert not pin.matches("2469")
    assert not pin.matches("")
    assert pin.matches("2468")


def test_the_file_is_the_owners_alone_and_tells_nothing(pin: Pin, tmp_path: Path) -> None:
    path = tmp_path / "pin"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "2468" not in path.read_text()
    other = Pin(tmp_path / "other", FakeClock())
    other.change("2468")
    hashes = [json.loads(each.read_text())["hash"] for each in (path, tmp_path / "other")]
    assert hashes[0] != hashes[1]


def test_the_delay_grows_and_a_right_pin_ends_it(pin: Pin, clock: FakeClock) -> None:
    for _ in range(FREE):
        assert pin.wait == 0
        assert not pin.matches("0000")
    for delay in (*DELAYS, DELAYS[-1]):
        assert pin.wait == delay
        assert not pin.matches("2468"), "nothing is judged during the delay"
        clock.advance(delay - 1)
        assert pin.wait == 1
        clock.advance(1)
        assert not pin.matches("0000")
    clock.advance(DELAYS[-1])
    assert pin.matches("2468")
    assert pin.wait == 0


def test_the_delay_survives_a_restart_and_no_clock_shortens_it(
    pin: Pin, clock: FakeClock, tmp_path: Path
) -> None:
    for _ in range(FREE + 2):
        pin.matches("0000")
        clock.advance(100)
    pin.matches("0000")
    clock.set(10**7)
    again = Pin(tmp_path / "pin", clock)
    assert again.wait == pin.wait == DELAYS[3]
    assert not again.matches("2468")


def test_a_guess_counts_before_it_is_judged(
    pin: Pin, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pulled(digits: str, salt: bytes) -> bytes:
        raise KeyboardInterrupt

    for _ in range(FREE):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(pin_module, "_hash", pulled)
            pin.matches("0000")
        pin = Pin(tmp_path / "pin", clock)
    assert pin.wait == DELAYS[0]


def test_a_guess_that_cannot_be_written_down_is_not_judged(
    pin: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StorageError("write pin", "the disk is full")

    monkeypatch.setattr(pin_module, "write_atomic", full)
    with pytest.raises(StorageError):
        pin.matches("2468")


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", '{"salt": "zz", "hash": "", "wrong": 0}', '{"wrong": "many"}', "\xff"],
)
def test_a_file_that_is_torn_stays_locked(tmp_path: Path, clock: FakeClock, content: str) -> None:
    path = tmp_path / "pin"
    path.write_bytes(content.encode("latin-1"))
    pin = Pin(path, clock)
    assert pin.set
    clock.advance(4000)
    for guess in ("", "0000", "2468"):
        assert not pin.matches(guess)


@pytest.mark.parametrize("digits", ["123", "123456789", "12a4", "١٢٣٤", " 123"])
def test_what_is_no_pin_is_refused(pin: Pin, digits: str) -> None:
    with pytest.raises(ValueError, match="4 to 8"):
        pin.change(digits)
    assert pin.matches("2468")


def test_it_can_be_taken_away(pin: Pin, clock: FakeClock, tmp_path: Path) -> None:
    pin.change("")
    assert not pin.set
    assert not Pin(tmp_path / "pin", clock).set


# on the device


def enter(bench: Bench, digits: str) -> None:
    """By up, down and ok, as a person does."""
    place = 0
    for digit in digits:
        while place != int(digit):
            bench.tap("up")
            place += 1
            if place > 9:  # what is not a digit lies between 9 and 0
                page = bench.device.page
                assert page is not None
                bench.tap(*["up"] * (len(page.wheel) - 10))  # type: ignore[attr-defined]
                place = 0
        bench.tap("ok")
    bench.do(ev.Button("ok", True))
    bench.pass_(0.9)
    bench.do(ev.Button("ok", False))


class System:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.actions = {
            name: lambda name=name: self.done.append(name) for name in ("restart", "off", "reset")
        }

    def storage(self) -> str:
        return "1.0 GB of 2.0 GB free"

    def about(self) -> str:
        return "Exo 1.0"


@pytest.fixture
def locked(make_bench: Callable[..., Bench], pin: Pin, clock: FakeClock) -> Bench:
    return make_bench(pin=pin, clock=clock, system=System())


def test_it_starts_locked_and_the_pin_opens_it(locked: Bench) -> None:
    assert locked.state == "locked" and "Locked" in locked.screen
    assert locked.tap("ok") == "unlock"
    enter(locked, "2468")
    assert locked.state == "idle"


def test_a_wrong_pin_says_only_that_it_is_wrong(locked: Bench) -> None:
    seen = set()
    for guess in ("2467", "1357"):
        locked.tap("ok")
        enter(locked, guess)
        seen.add(locked.screen)
        locked.tap("back")
    assert len(seen) == 1 and "That was wrong" in seen.pop()
    locked.tap("ok")
    enter(locked, "24680000")
    assert "Wait 0:05" in locked.screen
    locked.pass_(6)
    enter(locked, "2468")
    assert locked.state == "idle"


def test_locked_it_neither_listens_nor_sends_nor_allows(locked: Bench) -> None:
    body = {"request": "r1", "summary": "delete SECRET", "tool": "bash", "args": {}}
    locked.wire("approval.requested", **body)
    locked.wire("question.asked", question="q", text="about SECRET")
    locked.wire("notice", session="", level="info", code="x", text="SECRET")
    locked.do(ev.Typed("SECRET"), ev.Gesture("double", "talk"))
    for name in ("talk", "up", "down", "ok", "back", "talk"):
        for seconds in (0.1, 1.0):
            locked.do(ev.Button(name, True))
            locked.pass_(seconds)
            assert "SECRET" not in locked.screen
            locked.do(ev.Button(name, False))
            assert locked.state in ("locked", "unlock")
    assert locked.ear.told == [] and locked.voice.told == []
    assert [each for each in locked.link.names() if each != "call"] == []
    assert locked.calls("approval.respond") == []
    locked.pass_(40)
    locked.tap("ok")
    enter(locked, "2468")
    locked.pass_(0.5)
    assert locked.state == "card" and "SECRET" in locked.screen


def test_a_timer_rings_without_its_words(locked: Bench) -> None:
    locked.wire("notice", session="", level="info", code="timer", text="Timer: SECRET")
    assert locked.state == "ring"
    assert "Timer" in locked.screen and "SECRET" not in locked.screen
    spoken = [told[2] for told in locked.voice.told if told[0] == "say"]
    assert len(spoken) == 1 and "SECRET" not in spoken[0]
    assert locked.tap("ok") == "locked"


@pytest.mark.parametrize("keys", [(), ("ok",)])
def test_a_locked_device_says_that_it_switches_off(locked: Bench, keys: tuple[str, ...]) -> None:
    locked.tap(*keys)
    locked.do(ev.Alert("warning", "power.empty", urgent=True))
    assert "Switching off" in locked.screen.replace("\n", " ")
    locked.tap("ok")
    assert locked.state == "locked"


def test_what_is_due_is_not_on_a_locked_screen(locked: Bench) -> None:
    due = locked.clock.now_ms() + 60_000
    locked.do(ev.Called("due", 0, {"rows": [{"id": "a", "due": due, "label": "SECRET"}]}))
    assert "SECRET" not in locked.screen
    locked.tap("ok")
    enter(locked, "2468")
    assert "SECRET" in locked.screen


def test_it_locks_from_the_menu_and_with_sleep(
    make_bench: Callable[..., Bench], pin: Pin, clock: FakeClock
) -> None:
    options = {"screen.sleep": 30.0, "lock.sleep": True}
    bench = make_bench(pin=pin, clock=clock, options=options)
    bench.tap("ok")
    enter(bench, "2468")
    bench.tap("down")
    while "Lock" not in bench.device.page.items[bench.device.page.chosen].label:  # type: ignore[union-attr]
        bench.tap("down")
    assert bench.tap("ok") == "locked"
    bench.tap("ok")
    enter(bench, "2468")
    bench.pass_(1)
    bench.pass_(31)
    assert bench.state == "locked" and bench.device.dark
    bench.device.apply("lock.sleep", False)
    bench.tap("ok")  # lights it
    bench.tap("ok")
    enter(bench, "2468")
    bench.pass_(1)
    bench.pass_(31)
    assert bench.state == "idle" and bench.device.dark


def test_a_forgotten_pin_leads_to_the_reset_alone(locked: Bench) -> None:
    assert isinstance(locked.device.system, System)
    locked.tap("ok", "down", "down", "down")
    locked.tap("down")
    assert "Forgotten?" in locked.screen
    assert locked.tap("ok") == "lost"
    assert locked.tap("ok") == "lost"
    assert locked.tap("back") == "locked"
    locked.tap("ok", "down", "down", "down", "down", "ok")
    locked.do(ev.Button("ok", True))
    locked.pass_(0.9)
    assert locked.device.system.done == ["reset"]


def menu_to(bench: Bench, *labels: str) -> None:
    """Open the menu and choose row after row."""
    bench.tap("down")
    for label in labels:
        page: Any = bench.device.page
        for _ in page.items:
            if label in page.items[page.chosen].label:
                break
            bench.tap("down")
        assert label in page.items[page.chosen].label
        bench.tap("ok")


def test_a_first_pin_is_entered_twice(
    make_bench: Callable[..., Bench], tmp_path: Path, clock: FakeClock
) -> None:
    pin = Pin(tmp_path / "new", clock)
    bench = make_bench(pin=pin, clock=clock)
    menu_to(bench, "Settings", "PIN")
    assert "New PIN" in bench.screen
    enter(bench, "123")
    assert "4 digits or more" in bench.screen
    enter(bench, "4")
    assert "Once more" in bench.screen
    enter(bench, "1235")
    assert "They were different" in bench.screen and not pin.set
    enter(bench, "1234")
    enter(bench, "1234")
    assert pin.set and pin.matches("1234")


def test_the_pin_is_asked_before_it_is_changed_removed_or_all_is_deleted(locked: Bench) -> None:
    locked.tap("ok")
    enter(locked, "2468")
    system, pin = locked.device.system, locked.device.pin
    assert isinstance(system, System) and pin is not None
    menu_to(locked, "Settings", "Factory reset")
    assert locked.state == "pin"
    enter(locked, "1111")
    assert locked.state == "pin"
    enter(locked, "2468")
    assert locked.state == "confirm"
    locked.tap("ok")
    assert system.done == []
    locked.do(ev.Button("ok", True))
    locked.pass_(0.9)
    locked.do(ev.Button("ok", False))
    assert system.done == ["reset"]
    menu_to(locked, "Settings", "PIN", "Change it")
    enter(locked, "2468")
    enter(locked, "8642")
    enter(locked, "8642")
    assert pin.matches("8642")
    locked.pass_(20)
    menu_to(locked, "Settings", "PIN", "Remove it")
    enter(locked, "8642")
    assert not pin.set
