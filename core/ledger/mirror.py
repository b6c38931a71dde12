"""What happens in sessions, as entries of the ledger. Owns which row refers to which.

Invariant: each row becomes one entry, also when it is handed in again after a crash: an entry is known by
what it tells of (the message, the call, the request), not by when it came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from exo.core.engine.outbox import Row
from exo.core.ledger.entry import Draft, Entry
from exo.core.ledger.ledger import Ledger

KINDS = ("utterance", "action", "approval", "outcome", "verdict", "decision")
REMEMBERED = 2000  # entries of these kinds that a row may still refer to, or repeat


class Mirror:
    """Writes rows; usable by the thread of its ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[str, str] | None = None  # name -> entry id

    def write(self, rows: Sequence[Row]) -> list[Entry]:
        """Append what is new of `rows`, in one durable commit; returns the entries."""
        known: dict[str, str | int] = {**self._names()}  # name -> id, or place in this commit
        drafts: list[Draft] = []
        for row in rows:
            own, parents = _names(row.kind, row.body)
            if own[0] in known:
                continue
            body = self._sealed(row.body) if row.kind == "decision" else row.body
            refs = [known[name] for name in parents if name in known][:1]
            known |= dict.fromkeys(own, len(drafts))
            drafts.append(Draft(row.kind, body, tuple(refs), ts=row.ts))
            if text := self._noted(row, rows):
                note = {"text": text, "channel": "typed"}
                here = len(drafts) - 1
                drafts.append(Draft("note", note, (here,), ts=row.ts))
        entries: list[Entry] = []
        if drafts:
            entries = self._ledger.append(*drafts)
        self._known = {}
        for name, at in known.items():
            if type(at) is int:
                at = entries[at].id
            self._known[name] = str(at)
        return entries

    def last(self, session: str) -> str:
        """The entry of what was said last in this session, "" when nothing was."""
        return self._names().get(f"session/{session}", "")

    def over(self, turn: str) -> bool:
        """Whether a turn has ended, by the rows that were handed in."""
        return f"outcome/{turn}/" in self._names()

    def _sealed(self, body: dict[str, Any]) -> dict[str, Any]:
        """A decision without its texts: hashes that only this device can make stand for them."""
        body = {**body, "state": self._ledger.blind(body["state"])}
        # options of the moment may be private, those of the product are not
        if not body.pop("own", True):
            for name in ("probabilities", "raw"):
                body[name] = {self._ledger.blind(key): each for key, each in body[name].items()}
            body["answer"] = self._ledger.blind(body["answer"]) if body["answer"] else ""
            body["mechanism"] = self._ledger.blind(body["mechanism"])
        return body

    def _names(self) -> dict[str, str]:
        if self._known is None:
            self._known = {}
            for entry in self._ledger.newest(REMEMBERED, KINDS):
                if entry.body is None:
                    continue
                for name in _names(entry.kind, entry.body)[0]:
                    self._known[name] = entry.id  # of a session: what was said last
        return self._known

    def _noted(self, row: Row, rows: Sequence[Row]) -> str:
        """The text of the note whose taking `row` tells of, "" when it tells of something else."""
        if row.kind != "outcome" or not row.body.get("ok"):
            return ""
        name = f"action/{row.turn}/{row.body.get('call')}"
        entry = self._ledger.get(self._names().get(name, ""))
        body = entry and entry.body
        for each in rows:
            own, _ = _names(each.kind, each.body)
            if own[0] == name:
                body = each.body
                break
        if not body or body.get("tool") != "note":
            return ""
        return str(json.loads(body["args"]).get("text", ""))


def spent(ledger: Ledger, since: float) -> int:
    """The cents that actions since a time (ms UTC) have cost; what was asked about and refused cost
    nothing, what failed may have."""
    entries = list(ledger.entries(kinds=("action", "outcome")))
    bodies = [(e, e.body) for e in entries if e.body and e.ts >= since]
    kept = {ref for e, body in bodies if body.get("done") is False for ref in e.refs}
    costs = [body.get("cents", 0) for e, body in bodies if e.kind == "action" and e.id not in kept]
    return sum(each for each in costs if isinstance(each, int))


def _names(kind: str, body: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The names of an entry, its own first, and those of what it may refer to, the nearest first."""
    turn = body.get("turn", "")
    session = body.get("session", "")
    call = body.get("call", "")
    said = [f"turn/{turn}"] if turn else [f"session/{session}"]
    if kind == "utterance":
        return [f"utterance/{body.get('message')}", f"turn/{turn}", f"session/{session}"], []
    about = f"{session}/{turn}/{body.get('tool', '')}"
    if kind == "approval":  # first to the second look that may have asked for it
        return [f"approval/{body.get('request')}"], [f"riskier/{about}", *said]
    if kind == "verdict":
        via = f"{body.get('via')}/{body['mechanism']}" if "mechanism" in body else body.get("via")
        return [f"verdict/{turn}/{via}"], [f"outcome/{turn}/", *said]
    if kind == "decision":
        second = body.get("mechanism") == "action.riskier"
        return [f"decision/{body.get('asked')}", *[f"riskier/{about}"] * second], said
    if kind == "outcome":
        said = [f"action/{turn}/{call}", *said]
    return [f"{kind}/{turn}/{call}"], said
