"""A conversation survives the death of exod, with real processes and the line client.

Three turns (read a file, edit it, run a shell command), SIGKILL in the middle, restart, resume; then
SIGKILL at random statements of the database, fixed by seeds. Afterwards the numbering is dense, two
clients that replay from zero get the same bytes, the rows are what they saw, and nothing that was
accepted is lost or doubled."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from exo.core.base.client import Client
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.base.unix import UnixConnection

PATIENCE = 60.0  # seconds
# a judge that finds everything harmless: tools are not what is tested here
CALM = """
from exo.core.gate.axes import Axes, Judgement, Part
class Calm:
    def read(self, policies): pass
    def judge(self, act, inside): return Judgement((Part(Axes(), act.line),))
def register(ctx): ctx.register_judge(Calm())
"""
SOLO = os.environ | {
    "EXO_TITLES_IDLE": "0",
    "EXO_EVENTS_KEEP": "10000000",
}
# exod that dies before its n-th statement of SQL
DYING = """
import os, signal, sys
from exo.core.base import sqlite
from exo.core.server import app
left = int(sys.argv.pop(1))
def count(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
class Counted(sqlite.Database):
    def __init__(self, *words):
        super().__init__(*words)
        self.link.set_trace_callback(count)
import exo.core.engine.sessions as sessions
sessions.Database = Counted
sys.exit(app.main())
"""


class Place:
    """A home with scripted models; `exod(...)` starts the daemon, `kill()` is SIGKILL."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "h").make()
        self.home.plugins.mkdir(exist_ok=True)
        (self.home.plugins / "gate.py").write_text(CALM)
        self.client = Client(self.home.exod_socket, 20.0)
        self.models = self._start("-m", "exo.models.app", "--home", self.root, "--fake")
        self.process: subprocess.Popen[bytes] | None = None
        end = time.monotonic() + PATIENCE
        while not self.home.models_socket.exists():
            assert time.monotonic() < end
            time.sleep(0.02)

    @property
    def root(self) -> str:
        return str(self.home.root)

    def exod(self, dies_at: int = 0) -> None:
        words = ["-c", DYING, str(dies_at)] if dies_at else ["-m", "exo.core.server.app"]
        self.process = self._start(*words, "--home", self.root)
        if not dies_at:
            self.client.wait_ready(PATIENCE)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        for process in (self.process, self.models):
            if process is not None and process.poll() is None:
                process.terminate()
                process.wait(PATIENCE)

    def settle(self) -> None:
        """Until no turn runs and nothing waits."""
        query = "SELECT (SELECT count(*) FROM sessions WHERE running IS NOT NULL) + (SELECT count(*) FROM waiting)"
        end = time.monotonic() + PATIENCE
        while self.rows(query) != [(0,)]:
            assert time.monotonic() < end, "a session hangs"
            time.sleep(0.02)

    def rows(self, query: str) -> list[tuple]:
        with contextlib.closing(sqlite3.connect(self.home.sessions_db, timeout=20)) as link:
            return link.execute(query).fetchall()

    def busy(self, session: str) -> bool:
        with contextlib.suppress(sqlite3.Error):
            return bool(self.rows(f"SELECT running FROM sessions WHERE id = '{session}'")[0][0])
        return False

    def replay(self, last: int) -> bytes:
        """The bytes of the stream from zero up to event `last`."""
        link = UnixConnection(self.home.exod_socket, PATIENCE)
        link.request("GET", "/events?since=0")
        answer = link.getresponse()
        raw = b""
        while f"id: {last}\n".encode() not in raw or not raw.endswith(b"\n\n"):
            raw += answer.read1(1 << 20)
        link.close()
        return raw

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        log = (self.home.logs / "test.log").open("ab")
        with log:
            return subprocess.Popen([sys.executable, *words], stderr=log, env=SOLO)


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.close()


def check_record(place: Place) -> list[dict]:
    """What must hold after any number of deaths; returns the events."""
    place.settle()
    last = int(place.client.call("hello", protocol=1, client="t")["seq"])
    got: dict[int, bytes] = {}
    both = [
        threading.Thread(target=lambda n=n: got.__setitem__(n, place.replay(last))) for n in (0, 1)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(PATIENCE)
    assert got[0] == got[1]
    frames = [frame for frame in got[0].split(b"\n\n") if frame.startswith(b"id: ")]
    saved = place.rows("SELECT seq, data FROM events ORDER BY seq")
    assert frames == [f"id: {seq}\ndata: {data}".encode() for seq, data in saved]
    events = [json.loads(data) for _, data in saved]
    assert [event["seq"] for event in events] == list(range(1, last + 1))
    begun = [e["body"]["turn"] for e in events if e["type"] == "turn.started"]
    done = [e["body"]["turn"] for e in events if e["type"] == "turn.completed"]
    assert sorted(begun) == sorted(done) and len(set(done)) == len(done)
    told = [e["body"]["message"] for e in events if e["type"] == "message.completed"]
    rows = [json.loads(row[0]) for row in place.rows("SELECT data FROM messages ORDER BY n")]
    assert told == rows
    for (session,) in place.rows("SELECT id FROM sessions"):
        whole_rounds(place.client.call("session.get", session=session)["messages"])
    with contextlib.closing(sqlite3.connect(place.home.store / "private/ledger.sqlite")) as link:
        query = (
            "SELECT body ->> 'message' FROM bodies JOIN events USING (id) WHERE kind = 'utterance'"
        )
        recorded = [row[0] for row in link.execute(query)]
    assert len(set(recorded)) == len(recorded), "each in the record once"
    waiting = place.rows("SELECT key FROM outbox WHERE kind = 'utterance'")
    said = [message["id"] for message in rows if message["role"] == "user"]
    assert sorted({*recorded, *(row[0] for row in waiting)}) == sorted(said)
    assert len(set(said)) == len(said)
    with contextlib.closing(sqlite3.connect(place.home.sessions_db)) as link:
        link.create_function("searchable", 1, lambda data: None)
        assert link.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return events


def whole_rounds(messages: list[dict]) -> None:
    for n, message in enumerate(messages):
        if message.get("calls"):
            results = messages[n + 1]["results"]
            assert [r["call"] for r in results] == [c["id"] for c in message["calls"]]


def test_three_turns_with_a_kill_in_the_middle(place, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "README.md").write_text("A tpyo here.\n")
    place.exod()
    tools = {row["name"] for row in place.client.call("tools.list")["tools"]}
    edit = 'note {"text": "mend the typo"}'
    if "edit_file" in tools:
        edit = 'edit_file {"path": "README.md", "old": "tpyo", "new": "typo"}'
    shell = 'bash {"command": "cat README.md"}' if "bash" in tools else "time {}"
    session = place.client.call("session.create", cwd=str(work))["session"]
    seen: list[dict] = []
    stop = threading.Event()

    def watch() -> None:  # a second client, from the start, through the death of exod
        with contextlib.suppress(ExoError):
            seen.extend(place.client.events(0, None, stop))

    watcher = threading.Thread(target=watch)
    watcher.start()
    chat = subprocess.Popen(
        [sys.executable, "-m", "exo.tools.cli", "chat", "--home", place.root, "--session", session],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=work,
        env=SOLO,
    )
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(chat.stdout))
    reader.start()

    def say(*words: str) -> None:
        chat.stdin.write("\\\n".join(words) + "\n")
        chat.stdin.flush()

    def completed(count: int) -> None:
        end = time.monotonic() + PATIENCE
        while sum(event["type"] == "turn.completed" for event in list(seen)) < count:
            assert time.monotonic() < end, lines
            time.sleep(0.01)

    try:
        say("please read the file", '!tool read_file {"path": "README.md"}')
        completed(1)
        say("please mend the typo", f"!tool {edit}", "!delay 0.3")
        end = time.monotonic() + PATIENCE
        while not any(
            e["type"] == "message.delta" and "Done" in e["body"]["text"] for e in seen[-3:]
        ):
            assert time.monotonic() < end, seen
            if sum(event["type"] == "turn.completed" for event in list(seen)) > 1:
                break
            time.sleep(0.002)
        place.kill()
        place.exod()
        place.client.call("session.resume", session=session)
        completed(2)
        say("please show it", f"!tool {shell}")
        completed(3)
        chat.stdin.close()
        assert chat.wait(PATIENCE) == 0
        reader.join(PATIENCE)
        events = check_record(place)
    finally:
        stop.set()
        chat.kill()
        chat.wait()
        chat.stdout.close()
        watcher.join(PATIENCE)
    live = {event["seq"]: event for event in seen}
    assert [live[event["seq"]] for event in events] == events  # live was what the record says
    text = "".join(lines)
    assert "A tpyo here." in text
    if "edit_file" in tools:
        assert (work / "README.md").read_text() == "A typo here.\n"
    if "bash" in tools:
        assert "A typo here." in text
    asked = [m["text"].split("\n")[0] for m in place.client.call("session.get", session=session)["messages"] if m["role"] == "user"]  # fmt: skip
    assert asked == ["please read the file", "please mend the typo", "please show it"]


WORK = (
    'please read\n!tool read_file {"path": "a.txt"}',
    'please note\n!tool note {"text": "x"}',
    "what time is it",
    "please say this\n!words 12",
    "please queue this",
)


def kills(place: Place, tmp_path: Path, count: int, seed: int) -> None:
    """exod dies `count` times at random statements while a client goes on talking; the client sends
    again under the same id what got no answer."""
    random_ = random.Random(seed)
    (tmp_path / "a.txt").write_text("some text\n")
    place.exod()
    session = place.client.call("session.create", cwd=str(tmp_path))["session"]
    place.kill()
    sent: list[str] = []
    stop = threading.Event()

    def talk() -> None:
        while not stop.is_set():
            message = f"m{len(sent):07d}"
            text = f"{message} {WORK[len(sent) % len(WORK)]}"
            mode = "steer" if len(sent) % 7 == 3 else "queue"
            sent.append(message)
            place.client.send(session, text, mode, message, retry=PATIENCE)
            # a person waits for most answers; three in a row are typed at once now and then
            end = time.monotonic() + 2
            while len(sent) % 3 and place.busy(session) and time.monotonic() < end:
                if stop.wait(0.005):
                    break

    talker = threading.Thread(target=talk)
    deaths = 0
    talker.start()
    try:
        while deaths < count:
            place.exod(dies_at=random_.randint(1, 250))
            with contextlib.suppress(subprocess.TimeoutExpired):
                place.process.wait(8)
                assert place.process.returncode == -signal.SIGKILL, place.process.returncode
            place.kill()
            deaths += 1
    finally:
        stop.set()
        place.exod()
        talker.join(PATIENCE)
    check_record(place)
    said = [m["text"][:8] for m in place.client.call("session.get", session=session)["messages"] if m["role"] == "user"]  # fmt: skip
    assert sorted(said) == sent  # each once: none lost, none doubled
    print(f"{deaths} deaths, {len(sent)} messages")


def test_nothing_accepted_is_lost_at_50_random_deaths(place, tmp_path):
    kills(place, tmp_path, 50, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2, 12))
def test_nothing_accepted_is_lost_at_1000_random_deaths(place, tmp_path, seed):
    kills(place, tmp_path, 100, seed)
