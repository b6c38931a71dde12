"""Takes what is to be forgotten out of sessions.sqlite: rows stay where they are, their text goes."""

from __future__ import annotations

import json
from typing import Any

from exo.core.base.sqlite import Database
from exo.core.engine.search import Index
from exo.core.protocol.schema import TurnCompleted, Usage
from exo.core.retrieve.forget import Needles, leaves
from exo.core.server.hub import Hub

_EMPTY: dict[str, Any] = {"text": "", "title": "", "summary": "", "args": {}}


def erase(database: Database, hub: Hub, needles: Needles) -> None:
    """Blank the messages and events of these turns and whatever else says it; summaries of their
    sessions are made again from what is left, and the turn of a message that still waits ends. Then no
    byte of it is in the file."""
    index = Index(database)
    with hub.commit(durable=True) as add:
        link = database.link
        # the index goes first, as a whole: what is taken out must be the very text that was put in
        link.execute("INSERT INTO search (search) VALUES ('delete-all')")
        touched: set[str] = set()
        blanked: set[str] = set()
        query = "SELECT n, id, session, turn, data FROM messages"
        for n, id_, session, turn, data in link.execute(query).fetchall():
            if turn in needles.turns or any(map(needles.hit, leaves(json.loads(data)))):
                touched.add(session)
                blanked.add(id_)
                link.execute("UPDATE messages SET data = ? WHERE n = ?", (_blank(data), n))
            index.add(n)
        running: dict[str, str] = {}  # session -> turn
        # backwards: a message comes before its parts, which are known by it alone once it is undone
        query = "SELECT seq, session, data FROM events ORDER BY seq DESC"
        for seq, session, data in link.execute(query).fetchall():
            body = json.loads(data)["body"]
            message = body.get("message")
            title = body.get("title")
            turn = running[session] = body.get("turn") or running.get(session, "")
            ours = any(map(needles.hit, leaves(body))) or needles.named(title or "")
            if ours and isinstance(message, dict):
                blanked.add(message["id"])
            if ours or str(message) in blanked or "title" not in body and turn in needles.turns:
                link.execute("UPDATE events SET data = ? WHERE seq = ?", (_blank(data), seq))
        for table in ("nodes", "views"):
            link.executemany(f"DELETE FROM {table} WHERE session = ?", [(s,) for s in touched])
        for row in link.execute("SELECT n, session, turn, mode, text FROM waiting").fetchall():
            n, session, turn, mode, text = row
            if turn in needles.turns or needles.hit(text):
                known = "SELECT message, session, turn FROM waiting WHERE n = ?"
                link.execute(f"INSERT INTO undone {known}", (n,))  # sent again, it is not new
                link.execute("DELETE FROM waiting WHERE n = ?", (n,))
                if mode == "queue":
                    add(session, TurnCompleted(turn, "interrupted", Usage()))
        for table, column, key in (
            ("sessions", "title", "id"),
            ("outbox", "body", "n"),
            ("nodes", "text", "n"),
        ):
            rows = link.execute(f"SELECT {key}, {column} FROM {table}").fetchall()
            hit = needles.named if key == "id" else needles.hit
            found = [row[:1] for row in rows if hit(row[1])]
            what = f"DELETE FROM {table}"
            if table == "sessions":
                what = "UPDATE sessions SET title = ''"
            link.executemany(f"{what} WHERE {key} = ?", found)
        link.execute("INSERT INTO search (search) VALUES ('optimize')")
    database.scrub()


def _blank(data: str) -> str:
    return json.dumps(_without(json.loads(data)), ensure_ascii=False)


def _without(value: Any) -> Any:
    if isinstance(value, list):
        return [_without(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _EMPTY[key] if key in _EMPTY and each is not None else _without(each)
        for key, each in value.items()
    }
