"""Sessions and their messages in sessions.sqlite. Owns the rows; the hub owns the events beside them
in the same file, so that a message and the event that tells of it are one commit.

Invariant: the messages of a session form whole rounds: every assistant message with calls is followed
by one tool message that answers each of them (`mend` adds what a crash left out)."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.base.errors import ProtocolError
from exo.core.base.sqlite import Database
from exo.core.engine.outbox import Outbox
from exo.core.engine.search import Index, searchable
from exo.core.protocol import schema
from exo.core.protocol.codec import read_message, refused, sendable, to_json
from exo.core.protocol.schema import Call, Message, SessionInfo, ToolResult, Usage

FORMAT = 2  # 1 has a table `timers`, which the plugin tasks takes over
CACHED = 4  # sessions whose messages stay decoded
# what Unicode counts as printable though nothing is drawn: fillers, variation selectors
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_COLUMNS = "id, title, created, updated, turns, parent, forked_at"
_SPENT = "prompt_tokens, completion_tokens, cached_tokens, cost"


@dataclass(frozen=True)
class Waiting:
    """A message that was accepted while a turn ran: `steer` or `queue`."""

    turn: str
    message: str
    text: str
    mode: str


def open_database(path: Path) -> Database:
    """Open sessions.sqlite. Raises StorageError, HomeError."""
    schema = Path(__file__).with_name("sessions.sql").read_text()
    database = Database(path, schema, FORMAT)
    for column in ("digest TEXT", "rules TEXT", "used INTEGER"):  # a file from before the gate
        with contextlib.suppress(sqlite3.OperationalError):
            database.link.execute(f"ALTER TABLE approvals ADD {column} NOT NULL DEFAULT ''")
    database.function("searchable", 1, searchable)
    return database


def new_id() -> str:
    return secrets.token_hex(8)


class Sessions:
    """Reads, and writes inside the caller's transaction (see Hub.commit)."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self.good_at = 0  # ms UTC that artifacts are looked at, after starts that failed; 0: now
        self._clock = clock
        self._cache: dict[str, tuple[int, list[Message]]] = {}  # session -> last row read, messages
        self.index = Index(database)
        self.outbox = Outbox(database, clock)

    def create(self, title: str, cwd: Path | str, toolsets: Iterable[str] | None = None) -> str:
        """Add a session row; returns its id. It sees the tools of `toolsets` only (None: all)."""
        id_ = new_id()
        now = self._clock.now_ms()
        names = None if toolsets is None else " ".join(toolsets)
        columns = "id, title, cwd, created, updated, toolsets"
        query = f"INSERT INTO sessions ({columns}) VALUES (?, ?, ?, ?, ?, ?)"
        self._database.link.execute(query, (id_, title, str(cwd), now, now, names))
        return id_

    def info(self, session: str) -> SessionInfo:
        """Raises ProtocolError unknown_session."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM sessions WHERE id = ?", session)
        if not rows:
            raise refused("unknown_session", f"session {session!r}", "there is none; create one")
        return SessionInfo(*rows[0])

    def recent(self, limit: int) -> list[SessionInfo]:
        """The sessions used last come first."""
        query = f"SELECT {_COLUMNS} FROM sessions ORDER BY updated DESC, id LIMIT ?"
        return [SessionInfo(*row) for row in self._database.rows(query, limit)]

    def cwd(self, session: str) -> Path:
        rows = self._database.rows("SELECT cwd FROM sessions WHERE id = ?", session)
        return Path(rows[0][0])

    def toolsets(self, session: str) -> frozenset[str] | None:
        """What `create` was told; None for all, and for a session that is none."""
        query = "SELECT toolsets FROM sessions WHERE id = ? AND toolsets NOT NULL"
        rows = self._database.rows(query, session)
        return frozenset(rows[0][0].split()) if rows else None

    def messages(self, session: str) -> list[Message]:
        """All of them, oldest first; only rows that are new since the last call are decoded."""
        last, known = self._cache.get(session, (0, []))
        known = list(known)
        query = "SELECT n, data FROM messages WHERE session = ? AND n > ? ORDER BY n"
        for n, data in self._database.rows(query, session, last):
            last = n
            known.append(read_message(data))
        if not self._database.link.in_transaction:  # else its rows may yet be rolled back
            self._cache.pop(session, None)
            self._cache[session] = (last, known)
            while len(self._cache) > CACHED:
                del self._cache[next(iter(self._cache))]
        return list(known)

    def add(self, session: str, turn: str, message: Message, created: int = 0) -> None:
        """Append a message; `created` is ms UTC, 0 for now."""
        data = sendable(json.dumps(to_json(message), ensure_ascii=False))
        now = self._clock.now_ms()
        link = self._database.link
        query = "INSERT INTO messages (id, session, turn, created, data) VALUES (?, ?, ?, ?, ?)"
        row = link.execute(query, (message.id, session, turn, created or now, data))
        self.index.add(int(row.lastrowid or 0))
        link.execute("UPDATE sessions SET updated = ? WHERE id = ?", (now, session))

    def say(self, add: Callable[..., None], session: str, turn: str, message: Message) -> None:
        """Append a message and tell of it; `add` is that of the commit (see Hub.commit)."""
        self.add(session, turn, message)
        add(session, schema.MessageCompleted(turn, message))

    def tell(self, add: Callable[..., None], session: str) -> None:
        """Tell what the session is called and how long it has become."""
        info = self.info(session)
        add(session, schema.SessionUpdated(info.title, info.turns, info.updated))

    def mend(self, add: Callable[..., None], session: str, turn: str) -> None:
        """Answer the calls that were left without a result, if the last message has such."""
        if missing := self.unanswered(session):
            self.say(add, session, turn, missing)
            for each in missing.results or []:
                key, how = f"{turn}:{each.call}:outcome", {"ok": each.ok, "text": each.text}
                self.outbox.put("outcome", key, session, turn, call=each.call, **how)

    def unanswered(self, session: str) -> Message | None:
        """See the function of that name; reads the last message alone. A call whose end was told of has its
        result: it was made, and nobody should make it again."""
        query = "SELECT data FROM messages WHERE session = ? ORDER BY n DESC LIMIT 1"
        rows = self._database.rows(query, session)
        if missing := unanswered([read_message(row[0]) for row in rows]):
            told = (
                "SELECT data FROM events WHERE session = ?"
                " AND json_extract(data, '$.type') = 'tool.completed'"
            )
            ends = [json.loads(data)["body"] for (data,) in self._database.rows(told, session)]
            known = {end["call"]: ToolResult(end["call"], end["ok"], end["text"]) for end in ends}
            results = [known.get(each.call, each) for each in missing.results or []]
            missing = replace(missing, results=results)
        return missing

    def sent(self, session: str, message: str) -> str:
        """The turn of a message of the person that was accepted already (and maybe undone since), ""
        for a new one. Raises ProtocolError bad_body when the id is another message's."""
        query = (
            "SELECT session, turn FROM messages WHERE id = ?1"
            " UNION ALL SELECT session, turn FROM waiting WHERE message = ?1"
            " UNION ALL SELECT session, turn FROM undone WHERE message = ?1"
        )
        for found, turn in self._database.rows(query, message):
            if found != session:
                raise refused("bad_body", "turn.send.message", "another message has that id")
            return str(turn)
        return ""

    def mark(self, session: str, key: str) -> None:
        """Have `sent` know a delivery that is no message."""
        self._database.link.execute("INSERT INTO undone VALUES (?1, ?2, ?1)", (key, session))

    def fork(self, session: str, at: str | None) -> str:
        """Copy the messages up to `at` (None: all) into a new session that knows its parent; returns
        its id. A round of tools is copied whole. Raises ProtocolError unknown_message."""
        info = self.info(session)
        query = "SELECT id, turn, created, data FROM messages WHERE session = ? ORDER BY n"
        rows = self._database.rows(query, session)
        end = len(rows)
        if at is not None:
            ids = [row[0] for row in rows]
            if at not in ids:
                raise refused("unknown_message", f"fork at {at!r}", "the session has none such")
            end = ids.index(at) + 1
        copies = [read_message(row[3]) for row in rows[: end + 1]]
        if len(copies) > end and not copies[end - 1].calls:
            del copies[end:]
        fork = self.create(info.title, self.cwd(session), self.toolsets(session))
        for (_, turn, created, _), copy in zip(rows, copies, strict=False):
            self.add(fork, turn, replace(copy, id=new_id()), created)
        last = ""
        if copies:
            last, turn, *_ = rows[len(copies) - 1]
            if mend := unanswered(copies):
                self.add(fork, turn, mend)
        self._database.link.execute(
            "UPDATE sessions SET parent = ?, forked_at = ?, turns ="
            " (SELECT count(DISTINCT turn) FROM messages WHERE session = ?3) WHERE id = ?3",
            (session, last, fork),
        )
        return fork

    def as_of(self, session: str) -> int:
        """The time (ms UTC) of the message that a fork was made at, or of the last copied one where that was taken
        back; for others `good_at`, which is also the latest."""
        told = (
            "SELECT ifnull("
            " (SELECT created FROM messages WHERE id = forked_at),"
            " (SELECT max(created) FROM messages m WHERE session = s.id AND m.created <= s.created)"
            ") FROM sessions s WHERE id = ? AND parent NOT NULL"
        )
        at = next((at for (at,) in self._database.rows(told, session)), None) or self.good_at
        return min(at, self.good_at or at)

    def undo(self, session: str, turns: int, but: str = "") -> int:
        """Delete the messages of the last `turns` turns, not counting the turn `but`; returns how many
        turns that were."""
        query = (
            "SELECT n, turn FROM messages WHERE session = ?1 AND turn IN (SELECT turn FROM messages"
            " WHERE session = ?1 AND turn <> ?3 GROUP BY turn ORDER BY max(n) DESC LIMIT ?2)"
        )
        rows = self._database.rows(query, session, turns, but)
        gone = {turn for _, turn in rows}
        numbers = [n for n, _ in rows]
        self.index.remove(numbers)
        link = self._database.link
        for query in (
            "INSERT INTO undone SELECT id, session, turn FROM messages WHERE n = ?",
            "DELETE FROM messages WHERE n = ?",
        ):
            link.executemany(query, [(n,) for n in numbers])
        for turn in sorted(gone):
            self.outbox.put("verdict", f"{turn}:undo", session, turn, verdict="reject", via="undo")
        link.execute(
            "UPDATE sessions SET turns = max(0, turns - ?), updated = ? WHERE id = ?",
            (len(gone), self._clock.now_ms(), session),
        )
        self._cache.pop(session, None)
        return len(gone)

    def last_turn(self, session: str) -> str:
        """The turn of the newest message, "" without one."""
        query = "SELECT turn FROM messages WHERE session = ? ORDER BY n DESC LIMIT 1"
        return "".join(row[0] for row in self._database.rows(query, session))

    def begin(self, session: str, turn: str, title: str) -> None:
        """Mark `turn` as running; the first turn of an untitled session gives it `title`."""
        link = self._database.link
        query = "INSERT OR IGNORE INTO untitled SELECT id FROM sessions WHERE id = ? AND title = ''"
        link.execute(query, (session,))
        link.execute(
            "UPDATE sessions SET running = ?, turns = turns + 1,"
            " title = CASE WHEN title = '' THEN ? ELSE title END WHERE id = ?",
            (turn, title, session),
        )

    def end(self, session: str) -> None:
        self._database.link.execute("UPDATE sessions SET running = NULL WHERE id = ?", (session,))

    def spend(self, session: str, usage: Usage) -> Usage:
        """Add `usage` to what the session has cost and return the sum; `cost` stays None until one
        call had a price."""
        rows = self._database.rows(f"SELECT {_SPENT} FROM sessions WHERE id = ?", session)
        total = added(Usage(*rows[0]), usage)
        query = f"UPDATE sessions SET ({_SPENT}) = (?, ?, ?, ?) WHERE id = ?"
        self._database.link.execute(query, (*astuple(total), session))
        return total

    def untitled(self) -> list[str]:
        """Sessions that are called by their first words, the newest first."""
        query = "SELECT session FROM untitled ORDER BY rowid DESC"
        return [row[0] for row in self._database.rows(query)]

    def retitle(self, session: str, title: str) -> None:
        """Give a session its title; with "" it keeps its first words for good."""
        link = self._database.link
        link.execute("DELETE FROM untitled WHERE session = ?", (session,))
        if title:
            link.execute("UPDATE sessions SET title = ? WHERE id = ?", (title, session))

    def left_running(self) -> list[tuple[str, str]]:
        """(session, turn) of turns that a crash cut off."""
        rows = self._database.rows("SELECT id, running FROM sessions WHERE running IS NOT NULL")
        return [(row[0], row[1]) for row in rows]

    def said_so_far(self, session: str, turn: str) -> tuple[str, str]:
        """(message id, text) of a reply whose deltas were saved but which was never completed."""
        query = (
            "SELECT json_extract(data, '$.body.message') AS message,"
            " json_extract(data, '$.body.text') FROM events WHERE session = ?"
            " AND json_extract(data, '$.type') = 'message.delta'"
            " AND json_extract(data, '$.body.turn') = ?"
            " AND message NOT IN (SELECT id FROM messages) ORDER BY seq"
        )
        rows = self._database.rows(query, session, turn)
        return (rows[-1][0] if rows else "", "".join(text for _, text in rows))

    def drop_caches(self) -> None:
        """Read everything again: rows were changed behind our back."""
        self._cache.clear()

    def accept(self, session: str, turn: str, message: str, text: str, channel: str) -> None:
        """Note for the record what the person said."""
        facts = {"message": message, "channel": channel, "text": text}
        self.outbox.put("utterance", message, session, turn, **facts)

    def wait(self, session: str, row: Waiting, channel: str) -> None:
        """Keep an accepted message until its time comes."""
        self.accept(session, row.turn, row.message, row.text, channel)
        query = "INSERT INTO waiting (session, turn, message, text, mode) VALUES (?, ?, ?, ?, ?)"
        self._database.link.execute(query, (session, *astuple(row)))

    def waiting(self, session: str, mode: str = "") -> list[Waiting]:
        query = "SELECT turn, message, text, mode FROM waiting WHERE session = ? ORDER BY n"
        rows = [Waiting(*row) for row in self._database.rows(query, session)]
        return [row for row in rows if mode in ("", row.mode)]

    def waiting_sessions(self) -> list[str]:
        return [row[0] for row in self._database.rows("SELECT DISTINCT session FROM waiting")]

    def take(self, row: Waiting) -> None:
        """Remove a waiting message, in the commit that adds it to its session."""
        self._database.link.execute("DELETE FROM waiting WHERE message = ?", (row.message,))


def unanswered(messages: list[Message]) -> Message | None:
    """The tool message that is missing at the end of `messages`, with an error for every call."""
    if not messages or not messages[-1].calls:
        return None
    return Message(new_id(), "tool", "", results=[lost(call) for call in messages[-1].calls])


def lost(call: Call) -> ToolResult:
    """The result of a call that has none."""
    return ToolResult(call.id, False, "interrupted before completion")


def title_of(text: str) -> str:
    """The first words of what the person said, 40 characters at most."""
    line = " ".join(text.split())
    if len(line) <= 40:
        return line
    return line[:39].rsplit(" ", 1)[0] + "…"


def added(a: Usage, b: Usage) -> Usage:
    """The sum; its cost is None until one of them had a price."""
    sums: list[Any] = []
    for x, y in zip(astuple(a), astuple(b), strict=True):
        if x is y is None:
            sums.append(None)
        else:
            sums.append((x or 0) + (y or 0))
    return Usage(*sums)


def check_count(where: str, count: int | None, default: int) -> int:
    """Return how many a client wants. Raises ProtocolError bad_body."""
    count = default if count is None else count
    if not 1 <= count <= 1000:
        raise refused("bad_body", where, "1 to 1000 is wanted")
    return count


def spoken(text: str) -> str:
    """Return what a person said without control characters. Raises ProtocolError empty_text when
    nothing is left that could be seen."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    clean = "".join(c for c in text if c in "\n\t" or ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0)
    if not any(c.isprintable() and not c.isspace() for c in _BLANK.sub("", clean)):
        raise ProtocolError("send a turn", "the text is empty", "say something", code="empty_text")
    return clean


def check_id(id_: str) -> str:
    """Return an id that a client chose. Raises ProtocolError bad_body."""
    if not 8 <= len(id_) <= 64 or not (id_.isascii() and id_.isalnum()):
        raise refused("bad_body", "turn.send.message", "8 to 64 letters and digits are wanted")
    return id_
