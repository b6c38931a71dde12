"""exod and scripted models as real processes, killed at will: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.client import Client
from exo.core.base.errors import ProtocolError, ServiceError
from exo.core.base.home import Home
from exo.core.base.sqlite import Database
from exo.core.base.unix import UnixConnection, reachable

Exod = Callable[..., "subprocess.Popen[bytes]"]
LONG = "!words 200\n!delay 0.005\ntell me a story"


def frames(home: Home, count: int) -> bytes:
    """The first `count` events of the stream since 0, as they come over the wire."""
    link = UnixConnection(home.exod_socket, 30.0)
    link.request("GET", "/events?since=0")
    answer = link.getresponse()
    data = b""
    while data.count(b"\n\n") <= count:  # the first frame is a comment
        data += answer.read1(65536)
    link.close()
    return b"\n\n".join(data.split(b"\n\n")[1 : count + 1])


def rows(home: Home) -> list[tuple[int, str]]:
    database = Database(home.sessions_db, "", 2)
    found = database.rows("SELECT seq, data FROM events ORDER BY seq")
    database.close()
    return [(int(str(seq)), str(data)) for seq, data in found]


def check_record(home: Home) -> list[dict[str, Any]]:
    """Dense numbers, two replays alike and equal to the rows, each turn begun and ended once."""
    saved = rows(home)
    assert [seq for seq, _ in saved] == list(range(1, len(saved) + 1))
    first, second = frames(home, len(saved)), frames(home, len(saved))
    wanted = "\n\n".join(f"id: {seq}\ndata: {data}" for seq, data in saved)
    assert first == second == wanted.encode()
    events = [json.loads(data) for _, data in saved]
    begun = [e["body"]["turn"] for e in events if e["type"] == "turn.started"]
    ended = [e["body"]["turn"] for e in events if e["type"] == "turn.completed"]
    assert sorted(begun) == sorted(ended) and len(set(ended)) == len(ended)
    return events


def wait(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_a_turn_end_to_end_and_tools_in_it(processes: Any) -> None:
    session = processes.session()
    assert processes.ask(session, "hullo there")["stop_reason"] == "end"
    end = processes.ask(session, '!tool note {"text": "a whole note"}\nplease')
    assert end["stop_reason"] == "end" and end["usage"]["prompt_tokens"] > 0
    messages = processes.client.call("session.get", session=session)["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant"] * 2 + ["tool", "assistant"]
    assert messages[1]["text"] == "You said: hullo there"
    assert messages[-1]["text"] == "Done: Noted: a whole note"
    [note] = (processes.home.store / "private" / "corpus" / "notes").iterdir()
    assert "a whole note" in note.read_text()
    check_record(processes.home)
    assert [row["provider"] for row in processes.client.call("models.list")["models"]][0] == "local"


def test_models_killed_in_mid_reply_end_the_turn_cleanly_and_the_next_one_works(
    processes: Any,
) -> None:
    session = processes.session()
    turn = processes.client.call("turn.send", session=session, text=LONG)["turn"]
    events = processes.follow(0, session)
    said = ""
    for event in events:
        if event["type"] == "message.delta":
            said += event["body"]["text"]
            break
    processes.kill("models")
    end = processes.end_of(turn)
    assert (end["stop_reason"], end["error"]["code"]) == ("error", "model_gone")
    last = processes.client.call("session.get", session=session)["messages"][-1]
    assert last["interrupted"] and last["text"].startswith(said)
    # no wait: it is asked again until the supervisor has it back
    assert processes.ask(session, "again")["stop_reason"] == "end"
    assert any("models ended (signal 9)" in line for line in processes.said)
    check_record(processes.home)


@pytest.mark.parametrize(
    "order", ["!die", "!break internal", "!error model_missing", "!error busy"]
)
def test_models_that_fail_are_told_apart_and_cost_one_turn(processes: Any, order: str) -> None:
    session = processes.session()
    end = processes.ask(session, f"{order}\none two three four five")
    assert end["stop_reason"] == "error"
    codes = {"!die": "model_gone", "!break internal": "model_gone", "!error busy": "model_busy"}
    assert end["error"]["code"] == codes.get(order, "model_missing")
    assert processes.ask(session, "fine?")["stop_reason"] == "end"


def kill_in_mid_reply(processes: Any, points: int, seed: int) -> None:
    chance = random.Random(seed)
    session = processes.session()
    accepted: list[str] = []
    seen: dict[int, dict[str, Any]] = {}
    for n in range(points):
        since = processes.client.call("hello", protocol=1, client="t")["seq"]
        text = f"!words 60\n!delay 0.002\nstory {n}"
        turn = processes.client.call("turn.send", session=session, text=text)["turn"]
        accepted.append(text)
        deltas = chance.randrange(0, 4)
        for event in processes.follow(since, session):
            seen[event["seq"]] = event
            deltas -= event["type"] == "message.delta"
            if deltas < 0 or event["type"] == "turn.completed":
                break
        time.sleep(chance.random() * 0.05)
        processes.kill("exod")
        # the client's stream goes on where it was, over the restart
        ends = [e["body"]["turn"] for e in seen.values() if e["type"] == "turn.completed"]
        events = processes.follow(max(seen), session)
        while turn not in ends:
            event = next(events)
            seen[event["seq"]] = event
            ends += [event["body"]["turn"]] if event["type"] == "turn.completed" else []
        processes.client.wait_ready(60)
    events = check_record(processes.home)
    for event in events:  # what was seen before a kill is in the record, as it was seen
        assert seen.get(event["seq"], event) == event
    messages = processes.client.call("session.get", session=session)["messages"]
    assert [m["text"] for m in messages if m["role"] == "user"] == accepted
    shown = {m["id"]: m["text"] for m in messages if m["role"] == "assistant"}
    for event in events:
        if event["type"] == "message.delta":
            assert event["body"]["text"] in shown[event["body"]["message"]]
    reasons = [
        e["body"].get("error", {}).get("code") for e in events if e["type"] == "turn.completed"
    ]
    assert len(reasons) == points and set(reasons) <= {"restarted", None}
    assert processes.ask(session, "still there?")["stop_reason"] == "end"


def test_exod_killed_in_mid_reply_loses_and_doubles_nothing(processes: Any) -> None:
    kill_in_mid_reply(processes, 6, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_exod_killed_in_mid_reply_many_times(processes: Any, seed: int) -> None:
    kill_in_mid_reply(processes, 15, seed)


def test_a_timer_and_a_queued_message_outlive_a_kill(processes: Any) -> None:
    session = processes.session()
    assert processes.ask(session, "set a timer for 1 second called tea")["stop_reason"] == "end"
    turn = processes.client.call("turn.send", session=session, text=LONG)["turn"]
    queued = processes.client.call("turn.send", session=session, text="then this", mode="queue")[
        "turn"
    ]
    processes.kill("exod")
    assert processes.end_of(turn)["error"]["code"] == "restarted"
    assert processes.end_of(queued)["stop_reason"] == "end"
    for event in processes.follow(0):
        if event["type"] == "notice" and event["body"]["code"] == "timer":
            assert event["body"]["text"] == "Timer: tea"
            break
    events = check_record(processes.home)
    assert [e["body"]["code"] for e in events if e["type"] == "notice"].count("timer") == 1
    texts = [m["text"] for m in processes.client.call("session.get", session=session)["messages"]]
    assert texts.count("then this") == 1


# ---- one exod, one home ----------------------------------------------------------------------------


@pytest.fixture
def alone(exod: Exod, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Home, Client]]:
    """A bare exod without models, ready."""
    process, home = exod(), Home(tmp_path / "home")
    client = Client(home.exod_socket, 30.0)
    client.wait_ready(60)
    yield process, home, client


def test_second_exod_is_refused_with_the_pid_of_the_first(alone: Any, exod: Exod) -> None:
    process, home, client = alone
    second = exod()
    _, err = second.communicate(timeout=60)
    assert second.returncode == 1
    assert err.decode() == (
        f"exod: start exod on {home.root}: another exod runs there as process {process.pid};"
        f" use that one, or stop it with `kill {process.pid}`\n"
    )
    assert client.call("session.list") == {"sessions": []}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_orderly_end_leaves_no_socket_and_the_next_start_is_clean(
    alone: Any, exod: Exod, number: int
) -> None:
    process, home, client = alone
    client.call("session.create")
    process.send_signal(number)
    assert process.wait(30) == 0 and not home.exod_socket.exists()
    exod()
    client.wait_ready(60)
    assert len(client.call("session.list")["sessions"]) == 1
    assert home.exod_socket.stat().st_mode & 0o777 == 0o600
    assert home.sessions_db.stat().st_mode & 0o777 == 0o600
    assert home.root.stat().st_mode & 0o777 == 0o700


def test_stale_socket_of_a_killed_exod_is_replaced(alone: Any, exod: Exod) -> None:
    process, home, client = alone
    process.kill()
    process.wait()
    assert home.exod_socket.exists() and not reachable(home.exod_socket)
    exod()
    assert client.wait_ready(60)["seq"] == 0


def test_without_models_commands_work_and_questions_say_what_is_missing(alone: Any) -> None:
    _, _, client = alone
    session = client.call("session.create")["session"]
    since = client.call("hello", protocol=1, client="t")["seq"]
    client.call("turn.send", session=session, text="what time is it?")
    reasons = []
    for event in client.events(since):
        if event["type"] == "turn.completed":
            reasons.append((event["body"]["stop_reason"], event["body"].get("error")))
            if len(reasons) == 2:
                break
            client.call("turn.send", session=session, text="why is the sky blue?")
    assert reasons[0] == ("end", None)
    assert reasons[1][0] == "error" and "exo doctor" in reasons[1][1]["message"]
    rows = client.call("models.list")["models"]  # its own server is away, the answer is not
    assert "local" not in [row["provider"] for row in rows]


def test_a_full_disk_is_told_and_the_turn_ends_when_there_is_room(processes: Any) -> None:
    session = processes.session()
    processes.client.call("memory.query", verb="status", args={})  # it writes when it is opened
    pid = processes.pid("exod")
    since = processes.client.call("hello", protocol=1, client="t")["seq"]
    events = processes.follow(since)
    turn = processes.client.call("turn.send", session=session, text=LONG)["turn"]
    assert next(events)["type"] == "message.completed"
    size = processes.home.sessions_db.with_suffix(".sqlite-wal").stat().st_size
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        fault = next(event for event in events if event["type"] == "fault")
        assert fault["body"]["code"] == "storage"
        with pytest.raises(ProtocolError) as caught:
            processes.client.call("session.create")
        assert caught.value.code == "storage" and "free space" in str(caught.value)
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
    end = processes.end_of(turn)
    # what is written beside the turn (a decision) may have met the full disk first: then the turn went on
    if end["stop_reason"] != "end":
        assert (end["stop_reason"], end["error"]["code"]) == ("error", "storage")
    assert processes.ask(session, "and now?")["stop_reason"] == "end"
    assert processes.pid("exod") == pid
    check_record(processes.home)


def test_start_on_a_full_disk_is_refused_with_a_reason(exod: Exod, tmp_path: Path) -> None:
    def tiny() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    child = exod(preexec_fn=tiny)
    _, err = child.communicate(timeout=60)
    lines = err.decode().strip().splitlines()
    assert child.returncode == 1 and len(lines) == 1 and lines[0].startswith("exod: write "), lines
    # nothing half-written stands in the way afterwards
    exod()
    assert Client(Home(tmp_path / "home").exod_socket).wait_ready(60)["seq"] == 0


def test_start_on_a_read_only_disk_is_refused_with_a_reason(exod: Exod, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", home], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        child = exod()
        _, err = child.communicate(timeout=60)
        assert child.returncode == 1 and b"read-only" in err and b"Traceback" not in err
    finally:
        subprocess.run(["umount", home], check=True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda home: (home.state / "settings.toml").write_text("= nonsense"), "settings.toml"),
        (
            lambda home: (home.state / "settings.toml").write_text('"turn.rounds" = 0'),
            "turn.rounds",
        ),
        (lambda home: (home.state / "settings.toml").write_text('"no.such" = 1'), "no.such"),
        (lambda home: home.sessions_db.write_text("no database" * 500), "mv "),
        (lambda home: home.exod_socket.write_text("a file"), "no socket"),
        (lambda home: (home.root / "work").write_text("a file"), "make folder"),
    ],
)
def test_a_home_with_a_fault_is_refused_in_one_line(
    exod: Exod, tmp_path: Path, make: Callable[[Home], Any], said: str
) -> None:
    make(Home(tmp_path / "home").make())
    child = exod()
    _, err = child.communicate(timeout=60)
    lines = err.decode().strip().splitlines()
    assert child.returncode == 1 and len(lines) == 1 and lines[0].startswith("exod: "), lines
    assert said in lines[0]


def test_idle_exod_ends_by_itself_but_not_under_a_client(exod: Exod, tmp_path: Path) -> None:
    process = exod("--idle", "0.4")
    client = Client(Home(tmp_path / "home").exod_socket, 30.0)
    client.wait_ready(60)
    assert process.wait(60) == 0
    process = exod("--idle", "0.4")
    client.wait_ready(60)
    session = client.call("session.create")["session"]
    client.call("tool.run", session=session, tool="timer", args={"seconds": 2})
    # it stays for the timer, and the stream outlives the silence before it
    assert next(client.events(1, retry=0.0))["type"] == "notice"
    assert process.wait(60) == 0


def test_client_says_when_exod_stays_away(tmp_path: Path) -> None:
    client = Client(tmp_path / "none.sock")
    with pytest.raises(ServiceError):
        client.call("hello", protocol=1, client="t")
    with pytest.raises(ServiceError):
        client.wait_ready(0.05)
    with pytest.raises(ServiceError, match="follow events"):
        next(client.events(0, retry=0.05))


def test_client_is_told_of_a_position_that_the_stream_does_not_have(alone: Any) -> None:
    _, _, client = alone
    with pytest.raises(ProtocolError) as caught:
        next(client.events(99))
    assert caught.value.code == "bad_since"


def test_other_programs_of_the_person_cannot_look_into_exod() -> None:
    code = "from exo.core.server.app import _undumpable as hide; import ctypes; hide(); "
    code += "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"  # PR_GET_DUMPABLE
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0"
