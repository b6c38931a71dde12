"""The simulated world: its language, every fault and its mending, and hours that take seconds."""

from __future__ import annotations

import datetime
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from exo.board.profile import load, names
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.device.fast import START, FastClock
from exo.device.script import ScriptError, parse
from exo.device.simulated import Run
from exo.device.world import FAULTS, SimClock, seconds

BUTTONS = ("talk", "up", "down", "ok", "back")


def play(
    home: Home, script: str, board: str = "sim", shots: Path | None = None, sleep: str = "0"
) -> None:
    """Run a script fast; the screen sleeps after so many seconds. Raises ScriptError."""
    profile = load(board)
    keys = tuple(button.name for button in profile.buttons)
    steps = parse(script, keys, home.root, quick=True)
    settings = Settings.load(
        home.settings_file, {"EXO_SCREEN_LINGER": "5", "EXO_SCREEN_SLEEP": sleep}
    )
    Run(home, settings, profile, steps, shots, threading.Event()).fast()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("double", "double NAME"),
        ("double nose", "there are talk"),
        ("chord talk", "chord NAME NAME"),
        ("chord talk nose", "there are talk"),
        ("unplug", "unplug mic|speaker|panel"),
        ("unplug unplug", "unplug mic|speaker|panel"),
        ("plug mouse", "plug mic|speaker|panel"),
        ("panel", "panel error"),
        ("card", "card busy|free"),
        ("battery 101", "battery PERCENT|unknown"),
        ("battery -1", "battery PERCENT|unknown"),
        ("battery PERCENT", "battery PERCENT|unknown"),
        ("clock", "clock jump"),
        ("clock leap 3h", "clock jump"),
        ("clock jump 3", "is no time"),
        ("clock jump 9999d", "ten years"),
        ("exod stop", "exod kill"),
        ("models", "models kill"),
        ("reply", "reply TEXT"),
        ("wire notice", "wire EVENT"),
        ("wire notice []", "wire EVENT"),
        ("answer x {", "answer COMMAND"),
        ("jump", "there are hold, release, press, double, chord, say"),
    ],
)
def test_a_fault_in_the_language_is_told_before_anything_runs(
    tmp_path: Path, line: str, said: str
) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(f"sleep 1\n{line}", BUTTONS, tmp_path, quick=True)
    assert f"line 2 `{line}`" in str(caught.value) and said in str(caught.value)


def test_what_exod_says_may_have_a_kind_of_its_own(tmp_path: Path) -> None:
    body = {
        "panel": "mail",
        "kind": "progress",
        "action": "open",
        "self": 1,
        "data": {"title": "Mail"},
    }
    script = f"wait idle 5\nwire ui.panel {json.dumps(body)}\npress down\nwait menu 2\nexpect Mail"
    play(Home(tmp_path), script)


@pytest.mark.parametrize("line", ["heard hello", "reply hello", "wire notice {}", "answer x {}"])
def test_what_exod_says_is_only_for_fast_runs(tmp_path: Path, line: str) -> None:
    assert parse(line, BUTTONS, tmp_path, quick=True)
    with pytest.raises(ScriptError, match="only with --fast"):
        parse(line, BUTTONS, tmp_path)


def test_spans_of_time() -> None:
    assert [seconds(each) for each in ("-3h", "90s", "+1.5d", "2m")] == [-10800, 90, 129600, 120]


def test_clocks_that_can_be_set_pass_the_same_time() -> None:
    for clock in (SimClock(), FastClock()):
        before, wall, passed = clock.now_ms(), clock.local(), clock.monotonic()
        clock.jump(-10800)
        assert abs(clock.now_ms() - before + 10_800_000) < 5000
        assert abs((clock.local() - wall).total_seconds() + 10800) < 5
        assert clock.monotonic() - passed < 5
        assert clock.stamp(clock.local().replace(tzinfo=None)) // 1000 == clock.now_ms() // 1000
        assert clock.local(0).timestamp() == 0
    fast = FastClock()
    fast.move(60)
    assert fast.local() == START + datetime.timedelta(minutes=1)
    fast.move(-5)
    assert fast.local() == START + datetime.timedelta(minutes=1)


EVERY_FAULT = """
wait idle 5
expect led idle
heard what is the sea
hold talk
wait listening 2
expect led listening
sleep 2
release talk
wait thinking 2
expect led thinking
wait reply 5
expect You said: what is the sea
expect led speaking
wait idle 60
unplug mic
hold talk
wait notice 3
expect it is unplugged
expect led error
release talk
press ok
wait idle 3
plug mic
card busy
hold talk
wait notice 3
expect busy
release talk
card free
press ok
wait idle 3
unplug speaker
reply It speaks without a voice.
type hello
wait reply 5
expect without a voice
wait notice 60
expect No speaker
wait idle 30
plug speaker
battery 40
expect led idle
battery 14
wait notice 3
expect 14%
press ok
expect led low
battery charging
expect led idle
battery unknown
battery discharging
expect 10:0\\d|10:1\\d
clock jump -3h
sleep 61
expect 07:
clock jump +3h
unplug panel
sleep 61
plug panel
panel error
sleep 3600
expect 11:
exod kill
expect exod is away
type are you there
wait notice 5
expect exod does not answer
wait idle 30
type are you back
wait reply 5
expect You said: are you back
wait idle 60
models kill
hold talk
sleep 1
release talk
wait notice 5
expect Speech does not answer
wait idle 30
wire notice {"level": "info", "code": "timer", "text": "The tea is ready."}
wait notice 5
expect tea
wait idle 30
hold talk
sleep 130
release talk
wait idle 60
expect led idle
"""


@pytest.mark.parametrize("board", names())
def test_an_hour_of_faults_on_every_board_leaves_it_idle(home: Home, board: str) -> None:
    script = EVERY_FAULT
    if "ok" not in [button.name for button in load(board).buttons]:
        script = script.replace("press ok", "sleep 15")
    play(home, script, board)


def test_every_fault_stands_in_that_hour() -> None:
    words = {line.split()[0] for line in EVERY_FAULT.split("\n") if line}
    assert set(FAULTS) <= words


def test_a_tap_records_until_nothing_more_is_said(home: Home) -> None:
    script = """
    wait idle 5
    heard what is the sea
    press talk
    wait listening 1
    wait thinking 5
    expect You said: what is the sea
    wait idle 60
    press talk
    wait notice 20
    expect nothing
    """
    play(home, script)


def test_a_dark_screen_is_lit_by_what_matters(home: Home) -> None:
    script = """
    wait idle 5
    expect 10:00
    sleep 70
    expect ^$
    press talk
    expect 10:01
    wait idle 1
    sleep 70
    battery 9
    expect 9%
    """
    play(home, script, sleep="60")


def test_an_empty_battery_ends_the_run_dark(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    play(home, "wait idle 3\nbattery 2\nwait notice 5\nexpect 2%\nwait off 60\nsleep 3600")
    assert "would run: systemctl poweroff" in capsys.readouterr().err
    play(home, "wait idle 3\nbattery charging\nbattery 2\nsleep 3600\nwait idle 1")
    play(home, "wait idle 3\nbattery 2\nsleep 10\nbattery unknown\nsleep 3600\nwait idle 1")


def test_a_line_that_does_not_hold_says_what_was_seen(home: Home) -> None:
    with pytest.raises(ScriptError, match="line 2 .*the led shows idle"):
        play(home, "wait idle 3\nexpect led low")
    with pytest.raises(ScriptError, match="line 1 .*did not come; it is idle"):
        play(home, "wait reply 3")


def test_the_same_script_gives_the_same_pictures(home: Home, tmp_path: Path) -> None:
    script = (
        "wait idle 3\nshot a\nheard tell me\nhold talk\nsleep 1\nrelease talk\nwait reply 9\nshot b"
    )
    for folder in ("one", "two"):
        play(home, script, shots=tmp_path / folder)
    for shot in ("a.png", "b.png"):
        one, two = (tmp_path / folder / shot for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    assert (tmp_path / "one/a.png").read_bytes() != (tmp_path / "one/b.png").read_bytes()


def walk(dice: random.Random, events: int) -> list[str]:
    """A script of whatever may happen, and then of rest."""
    lines = ["wait idle 5"]
    for _ in range(events):
        key = dice.choice(BUTTONS)
        event = {"level": dice.choice(["info", "error"]), "code": "timer", "text": "It rings."}
        lines.append(
            dice.choice(
                [
                    f"hold {key}",
                    f"release {key}",
                    f"press {key} {dice.choice([20, 60, 400, 1200])}",
                    f"double {key}",
                    "chord ok back",
                    f"sleep {dice.choice([0.05, 0.5, 3, 40])}",
                    "type hello",
                    "heard hello there",
                    f"{dice.choice(['unplug', 'plug'])} {dice.choice(['mic', 'speaker', 'panel'])}",
                    "panel error",
                    f"card {dice.choice(['busy', 'free'])}",
                    f"battery {dice.choice(['90', '50', '14', '6', 'unknown', 'charging'])}",
                    f"clock jump {dice.choice(['-3h', '+5m', '+2d'])}",
                    f"{dice.choice(['exod', 'models'])} kill",
                    f"wire notice {json.dumps(event)}",
                ]
            )
        )
    lines += [f"release {key}" for key in BUTTONS]
    return [*lines, "card free", "plug panel", "sleep 2000"]


@pytest.mark.parametrize("seed", range(max(1, int(os.environ.get("WALK", "1000")) // 1000)))
def test_a_random_walk_ends_at_rest(
    home: Home, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """WALK=100000 in the environment: a hundred walks instead of one."""
    script = "\n".join(walk(random.Random(seed), 1000))
    for last in (
        "wait idle 600",
        "wait locked 1",
        "wait off 1",
    ):  # a PIN can be set, and it can be switched off
        try:
            play(home, f"{script}\n{last}", sleep="60")
            break
        except ScriptError as error:
            assert last.split()[1] != "off" and last in str(error)
    assert "Traceback" not in capsys.readouterr().err


def test_the_menu_switches_it_off(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    menu = "wait idle 5\ndouble talk\nsleep 1\npress up\npress ok\nsleep 1\npress up\npress up\npress ok"
    play(home, f"{menu}\nexpect Hold OK\npress ok 1500\nwait notice 5\nwait off 60\nsleep 60")
    assert "would run: systemctl poweroff" in capsys.readouterr().err


def test_the_program_runs_fast_without_services(tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text(
        "wait idle 5\nheard hello\nhold talk\nsleep 1\nrelease talk\nwait reply 5\nsleep 3600"
    )
    command = [sys.executable, "-m", "exo.device.app", "--home", str(tmp_path / "home")]
    run = [*command, "--board", "pimoroni-display-hat-mini", "--fast"]
    done = subprocess.run([*run, "--script", str(script)], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "home/state/exod.sock").exists()
    alone = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert alone.returncode == 2 and "--script" in alone.stderr


@pytest.mark.parametrize("board", [each for each in names() if load(each).panel.bus])
def test_a_board_s_own_driver_takes_every_picture(home: Home, board: str) -> None:
    frames: list[dict[str, object]] = []

    def trace(moment: str, **more: object) -> None:
        if moment == "frame":
            frames.append(more)

    profile = load(board)
    keys = tuple(button.name for button in profile.buttons)
    script = "wait idle 5\nunplug panel\nsleep 61\nplug panel\nsleep 120\nhold talk\nsleep 3\nrelease talk"
    steps = parse(script, keys, home.root, quick=True)
    settings = Settings.load(home.settings_file, {"EXO_SCREEN_SLEEP": "0"})
    run = Run(home, settings, profile, steps, None, threading.Event(), trace, wires=True)
    run.fast()
    whole = (
        profile.panel.size[0]
        * profile.panel.size[1]
        // 8
        * (16 if profile.panel.mode == "RGB" else 1)
    )
    sent = [int(str(frame["bytes"])) for frame in frames]
    assert {"idle", "listening"} <= {frame["page"] for frame in frames}
    assert all(0 < each < 2.2 * whole + 200 for each in sent)
    assert min(sent) < whole / 2, "a small change sends the whole picture"
