"""The language of scripts, and the whole program by scripts: real exod, exo-models in its scripted
form, real sockets and processes."""

from __future__ import annotations

import os
import re
import signal
import struct
import subprocess
import sys
import wave
from pathlib import Path

import pytest
from exo.core.base.unix import reachable
from exo.device import app
from exo.device.script import ScriptError, parse
from PIL import Image

BUTTONS = ("talk", "up", "down", "ok", "back")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A WAV of 0.4 s that is not silent."""
    path = tmp_path / "question.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(struct.pack("<hh", 9000, -9000) * 3200)
    return path


def test_every_action_is_read(tmp_path: Path, recording: Path) -> None:
    source = """
    # a comment
    hold talk
    say question.wav
    release talk
    press up 300
    press ok
    type   Grüße, 世界
    wait idle 2.5
    shot one-1.png
    expect ^It is \\d+
    sleep 0.1
    """
    steps = parse(source, BUTTONS, tmp_path)
    assert [step.action for step in steps] == (
        ["hold", "say", "release", "press", "press", "type", "wait", "shot", "expect", "sleep"]
    )
    assert steps[0].number == 3
    assert len(steps[1].pcm) == 2 * 6400
    assert steps[5].arguments == ("Grüße, 世界",)
    assert steps[8].arguments == (r"^It is \d+",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("jump", "no such action"),
        ("hold", "hold NAME"),
        ("hold start", "there are talk, up"),
        ("hold talk 3", "hold NAME"),
        ("press ok soon", "no number"),
        ("press ok 0", "milliseconds"),
        ("press ok 1 2", "[ms]"),
        ("say", "say FILE.wav"),
        ("say nothere.wav", "nothere.wav"),
        ("type", "type TEXT"),
        ("wait", "wait STATE SECONDS"),
        ("wait asleep 3", "states are starting, idle"),
        ("wait idle", "wait STATE SECONDS"),
        ("wait idle -1", "out of range"),
        ("wait idle nan", "out of range"),
        ("shot", "shot NAME"),
        ("shot ../x", "shot NAME"),
        ("expect", "expect REGEX"),
        ("expect [", "expect REGEX"),
        ("expect a{99999999999}", "expect REGEX"),
        ("sleep", "sleep SECONDS"),
        ("sleep 1 2", "sleep SECONDS"),
        ("Hold talk", "no such action"),
    ],
)
def test_a_fault_names_line_and_text(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(f"# first\n{line}\nsleep 1", BUTTONS, tmp_path)
    assert f"line 2 `{line}`" in str(caught.value)
    assert said in str(caught.value)


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"line 1 .*line 3"):
        parse("jump\nsleep 1\nfly", BUTTONS, tmp_path)


# the program


class Program:
    """exo-device in a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"

    def command(self, script: str, *arguments: str) -> list[str]:
        path = self.folder / "script.txt"
        path.write_text(script)
        return [
            *(sys.executable, "-m", "exo.device.app", "--home", str(self.home), "--board", "sim"),
            *("--models-fake", "--script", str(path), "--shots", str(self.folder / "shots")),
            *arguments,
        ]

    def run(self, script: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(script, *arguments),
            env=os.environ | {"EXO_SCREEN_LINGER": "1"} | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    @property
    def alive(self) -> list[str]:
        """Services that still answer."""
        state = self.home / "state"
        return [name for name in ("exod", "models") if reachable(state / f"{name}.sock")]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_a_spoken_question_is_answered_and_everything_stops(
    program: Program, recording: Path
) -> None:
    script = """
wait idle 20
shot idle
hold talk
wait listening 5
say question.wav
shot listening
release talk
wait thinking 5
wait reply 20
expect You said: tell me about rivers and lakes
shot reply
# the reply is spoken to its end, then the clock comes back
wait idle 60
"""
    result = program.run(
        script,
        "--audio-out",
        str(program.folder / "out.wav"),
        EXO_FAKE_HEARD="tell me about rivers and lakes",
    )
    assert result.returncode == 0, result.stderr
    assert program.alive == []
    with Image.open(program.folder / "shots" / "reply.png") as shot:
        assert (shot.size, shot.mode) == ((512, 256), "1")
        small = shot.resize((128, 64), 0)
        assert small.resize((512, 256), 0).tobytes() == shot.tobytes()
    with wave.open(str(program.folder / "out.wav"), "rb") as file:
        assert any(file.readframes(file.getnframes()))


def test_a_question_about_the_person_is_answered_from_the_store_and_ok_says_why(
    program: Program,
) -> None:
    script = """
wait idle 20
type Remember that my sister is called Zelmira
wait reply 20
wait idle 30
type What is my sister called?
wait reply 20
expect You told me: My sister is called Zelmira
press ok
wait why 10
expect you said:
press ok
wait idle 20
"""
    result = program.run(script)
    assert result.returncode == 0, result.stderr


DANGERS = {
    "rm .*thesis: no undo": 'bash {"command": "rm -rf ~/Documents/thesis"}',
    "git push origin main.*the world sees it": 'bash {"command": "git push origin main"}',
    "id_ed25519.*secret": 'bash {"command": "cat ~/.ssh/id_ed25519"}',
    "POST https://.*api.example.org.*no undo": (
        'http_request {"method": "POST", "url": "https://api.example.org/n", "body": "x"}'
    ),
}


def test_what_cannot_be_undone_stops_at_a_card(program: Program) -> None:
    script = "wait idle 20\n"
    for shown, call in DANGERS.items():
        # a press right after the card has appeared would count as a reflex
        script += f"""
type !tool {call}
wait card 20
expect {shown}
sleep 0.6
press ok
expect Keep OK down
type yes
expect Only by button
press back
wait reply 20
expect the person said no
press back
press back
wait idle 20
"""
    result = program.run(script, EXO_TOOLS_HTTP="true")
    assert result.returncode == 0, result.stderr
    assert program.alive == []


def test_a_held_ok_lets_it_happen_once(program: Program) -> None:
    key = program.folder / ".ssh" / "id_ed25519"
    key.parent.mkdir()
    key.write_text("what stands in the file")
    script = f"""
wait idle 20
type !tool bash {{"command": "cat {key}"}}
wait card 20
sleep 0.6
hold ok
wait thinking 5
release ok
wait reply 20
expect what stands in the file
"""
    result = program.run(script)
    assert result.returncode == 0, result.stderr
    assert program.alive == []


def test_the_pages_show_what_exod_knows(program: Program) -> None:
    script = """
wait idle 20
type set a timer for 5 minutes for the tea
wait reply 20
press back
press back
wait idle 20
expect tea
press up
wait menu 5
press down
press ok
wait sessions 5
expect New conversation.*timer
press back
press down
press ok
wait due 5
expect tea.*[45]:|[45]:.*tea
press ok
wait confirm 5
expect Cancel it.*tea
hold ok
wait due 5
release ok
expect Nothing is set
press back
press down
press ok
wait entry 5
type tea
hold ok
wait found 5
release ok
expect 1/
press ok
expect tea
"""
    result = program.run(script)
    assert result.returncode == 0, result.stderr
    assert program.alive == []


def test_a_line_that_does_not_hold_is_named_with_what_was_seen(program: Program) -> None:
    result = program.run("wait idle 20\ntype Say something\nexpect ^nothing of it$\nshot never")
    assert result.returncode == 1
    assert "line 3 `expect ^nothing of it$`" in result.stderr
    assert "You said: Say something" in result.stderr
    assert program.alive == []
    assert not (program.folder / "shots" / "never.png").exists()


def test_a_state_that_does_not_come_is_named(program: Program) -> None:
    result = program.run("wait idle 20\nwait listening 0.2")
    assert result.returncode == 1
    assert "line 2 `wait listening 0.2`" in result.stderr
    assert "it is idle" in result.stderr


def test_a_script_with_a_fault_starts_nothing(program: Program) -> None:
    result = program.run("wait idle 20\nfly high")
    assert result.returncode == 2
    assert "line 2 `fly high`" in result.stderr
    assert not program.home.exists()


def test_wrong_use_is_2(program: Program) -> None:
    assert program.run("sleep 0", "--nonsense").returncode == 2
    assert program.run("sleep 0", "--board", "nosuch").returncode == 1
    nowhere = program.run("sleep 0", "--audio-out", str(program.folder / "no" / "out.wav"))
    assert nowhere.returncode == 2 and "its folder does not exist" in nowhere.stderr
    missing = program.command("sleep 0")
    missing[missing.index("--script") + 1] = str(program.folder / "missing.txt")
    result = subprocess.run(missing, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert "missing.txt" in result.stderr


def test_without_a_terminal_it_says_what_to_do(program: Program) -> None:
    command = [sys.executable, "-m", "exo.device.app", "--home", str(program.home)]
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 2
    assert "--script FILE" in result.stderr


def test_barge_in_notices_and_faults_in_one_session(program: Program, recording: Path) -> None:
    script = """
wait idle 20
type Count slowly
wait reply 20
expect counting 3
press talk 100
wait reply 5
expect stopped
press back
wait idle 5
press talk 100
wait listening 5
expect Tap again
wait notice 10
expect I heard nothing
press ok
wait idle 5
hold talk
sleep 0.5
release talk
wait notice 10
expect I heard nothing
press ok
wait idle 5
type !error model_missing
wait notice 20
expect turn failed.*models get
press ok
wait idle 5
type set a timer for 1 second
wait reply 20
wait notice 30
expect timer
press ok
wait idle 5
press ok
wait reply 5
press ok
wait idle 5
"""
    counting = " ".join(f"counting {number}" for number in range(200))
    result = program.run(script, EXO_FAKE_REPLY=counting, EXO_FAKE_DELAY="0.03")
    assert result.returncode == 0, result.stderr
    assert program.alive == []


def test_a_tap_listens_to_the_end_of_what_is_said(program: Program, recording: Path) -> None:
    script = f"""
wait idle 20
press talk 100
wait listening 5
say {recording}
wait thinking 20
wait reply 30
expect It is
wait idle 60
press talk 100
sleep 1
press talk 100
wait notice 20
expect I heard nothing
"""
    result = program.run(script)
    assert result.returncode == 0, result.stderr
    assert program.alive == []


def test_a_model_server_that_dies_ends_the_turn_and_the_next_works(program: Program) -> None:
    script = """
wait idle 20
type !die
wait notice 60
expect turn failed|Speech does not answer
wait idle 60
sleep 1
type Are you back
expect You said: Are you back
"""
    result = program.run(script)
    assert result.returncode == 0, result.stderr
    assert program.alive == []


@pytest.mark.parametrize(
    ("service", "said"), [("exod", "exod does not answer"), ("models", "failed|Speech does not")]
)
def test_a_service_killed_in_mid_reply_is_told_and_the_next_turn_works(
    program: Program, service: str, said: str
) -> None:
    script = f"""
wait idle 20
type Count slowly
wait reply 20
sleep 0.3
wait notice 20
expect {said}
shot killed
press ok
wait idle 10
sleep 2
type Count slowly
wait reply 30
expect counting 5
"""
    counting = " ".join(f"counting {number}" for number in range(200))
    process = subprocess.Popen(
        program.command(script),
        env=os.environ | {"EXO_FAKE_REPLY": counting, "EXO_FAKE_DELAY": "0.03"},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    seen = ""
    for line in process.stderr:
        seen += line
        if "sleep 0.3" in line:
            pid = int((program.home / "state" / f"{service}.pid").read_text())
            os.kill(pid, signal.SIGKILL)
    assert process.wait(60) == 0, seen
    assert program.alive == []


def test_sigterm_stops_the_run_and_what_it_started(program: Program) -> None:
    process = subprocess.Popen(
        program.command("wait idle 20\nshot idle\nsleep 100"),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    for line in process.stderr:
        if "sleep 100" in line:
            break
    assert program.alive == ["exod", "models"]
    process.send_signal(signal.SIGTERM)
    assert re.search(r"line 3 .*stopped", process.stderr.read())
    assert process.wait(60) == 1
    assert program.alive == []


def test_a_second_handheld_is_refused_with_the_pid_of_the_first(program: Program) -> None:
    process = subprocess.Popen(
        program.command("wait idle 20\nsleep 100"),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        for line in process.stderr:
            if "sleep 100" in line:
                break
        result = program.run("sleep 0")
        assert result.returncode == 1
        assert str(process.pid) in result.stderr
        assert program.alive == ["exod", "models"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def test_faults_by_their_words_in_real_time(program: Program) -> None:
    script = """
wait idle 20
battery 9
wait notice 20
press ok
expect led low
battery charging
expect led idle
sleep 2
exod kill
expect exod is away
sleep 3
type hullo
wait reply 30
expect You said: hullo
press back
wait idle 30
models kill
unplug mic
hold talk
wait notice 10
expect unplugged
release talk
"""
    result = program.run(script)
    assert result.returncode == 0, result.stderr
    assert program.alive == []
    other = program.run("exod kill", "--no-services")
    assert other.returncode == 1 and "did not start it" in other.stderr


def test_a_script_may_come_from_an_editor_that_marks_its_files(tmp_path: Path) -> None:
    script = tmp_path / "press.txt"
    script.write_bytes(b"\xef\xbb\xbfwait idle 5\r\nexpect 10:00\r\n")
    words = ["--fast", "--board", "sim", "--home", str(tmp_path / "home"), "--script", str(script)]
    assert app.main(words) == 0
