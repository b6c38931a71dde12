"""The line to exod and exo-models: commands in threads of their own, events from one thread that stays
connected. Owns the session's id and the last event number; posts what happens, decides nothing.

Invariant: no event of a living record is missed: after a lost connection the stream goes on behind the
last number seen."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exo.core.base.client import Client
from exo.core.base.errors import ExoError, ProtocolError, ServiceError, StorageError
from exo.core.base.files import write_atomic
from exo.core.base.unix import reachable
from exo.device.events import Called, Event, Link, Wire

UNKNOWN = ("unknown_session", "not_found", "no_session")  # exod has no such session (any more)
BUSY = ("busy", "turn_running")
PATIENCE = 5.0  # seconds for an interrupted turn to end before the next is sent
LOOK_BACK = 500  # events before the first that are looked through for open questions
# of a question nothing says that it was answered: it is not looked for
OPEN = ("approval.requested", "approval.resolved")
RETRY = 0.25  # seconds between looks for an exod that is away


class Exod:
    """The device's side of the protocol. `post` takes Called, Wire and Link."""

    def __init__(
        self, socket: Path, models: Path, memo: Path, post: Callable[[Event], None]
    ) -> None:
        """`memo` is the file that remembers the session between two starts."""
        self.client = Client(socket)
        self._models, self._memo, self._post = models, memo, post
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.session = ""
        self._last: int | None = None

    def start(self) -> None:
        """Follow events and look after exo-models until `close`."""
        for run in (self._follow, self._watch_models):
            threading.Thread(target=run, name=f"link{run.__name__}", daemon=True).start()

    def close(self) -> None:
        self._stop.set()

    # commands; each returns at once and posts a Called

    def send(self, ticket: int, text: str, channel: str = "typed") -> None:
        self._spawn("send", ticket, lambda: self._send(text, channel))

    def why(self, ticket: int, id_: str) -> None:
        """Ask what a belief stands on."""
        body = {"verb": "why", "args": {"id": id_}}
        self._spawn("why", ticket, lambda: self.client.call("memory.query", **body)["result"])

    def call(self, kind: str, ticket: int, command: str, body: dict[str, Any]) -> None:
        """Send any command; its answer comes as Called of `kind`."""
        self._spawn(kind, ticket, lambda: self.client.call(command, **body))

    def switch(self, session: str) -> None:
        """Go on in another session; "" is a new one."""
        self._spawn("switch", 0, lambda: self._switch(session))

    def prefill(self) -> None:
        """Have everything before the next message computed now. Best effort: nothing is posted for
        a refusal, since the turn itself will say what is wrong."""
        self._spawn("prefill", 0, lambda: self._in_session("session.resume", prefill=True))

    def interrupt(self) -> None:
        self._spawn("interrupt", 0, lambda: self._in_session("turn.interrupt"))

    def _spawn(self, kind: str, ticket: int, call: Callable[[], dict[str, Any]]) -> None:
        def run() -> None:
            try:
                self._post(Called(kind, ticket, call()))
            except ExoError as error:
                self._post(Called(kind, ticket, None, error.code, error.why or str(error)))

        threading.Thread(target=run, name=f"call-{kind}", daemon=True).start()

    def _send(self, text: str, channel: str) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return self._in_session("turn.send", text=text, channel=channel)
            except ProtocolError as error:
                if error.code not in BUSY or time.monotonic() > end:
                    raise
            time.sleep(0.05)

    def _in_session(self, type_: str, **body: Any) -> dict[str, Any]:
        """Call in the device's session; one that exod does not know is replaced by a new one."""
        session = self._open()
        try:
            return self.client.call(type_, session=session, **body)
        except ProtocolError as error:
            if error.code not in UNKNOWN:
                raise
            return self.client.call(type_, session=self._open(unless=session), **body)

    def _open(self, unless: str = "") -> str:
        """Return the session: this one, the remembered one, or a new one in place of `unless`."""
        with self._lock:
            if self.session and self.session != unless:
                return self.session
            known = "" if unless else self._remembered()
            if known:
                try:
                    self.client.call("session.resume", session=known)
                except ProtocolError:
                    known = ""
            self.session = known or str(self.client.call("session.create")["session"])
            if self.session != known:
                self._keep()
            return self.session

    def _switch(self, session: str) -> dict[str, Any]:
        if session:
            self.client.call("session.resume", session=session)
        else:
            session = str(self.client.call("session.create")["session"])
        with self._lock:
            self.session = session
            self._keep()
        return {"session": session}

    def _keep(self) -> None:
        # on a full or read-only disk the session is another at the next start, no more
        with contextlib.suppress(StorageError):
            write_atomic(self._memo, json.dumps({"session": self.session}))

    def _remembered(self) -> str:
        try:
            return str(json.loads(self._memo.read_text())["session"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return ""  # a first start, or a file that was lost: state can be lost

    # threads

    def _follow(self) -> None:
        up: bool | None = None
        asked = 0
        while not self._stop.is_set():
            try:
                seq = int(self.client.call("hello", protocol=1, client="exo-device")["seq"])
                if self._last is None or seq < self._last:  # first, or another record than before
                    self._last = max(0, seq - LOOK_BACK)
                    asked = seq  # what was asked before may still be open; nothing else is news
                self._open()
                if up is not True:
                    up = True
                    self._post(Link("core", True))
                # no patience in the client: a person is told at once, the search goes on here
                for event in self.client.events(self._last, stop=self._stop, retry=0.0):
                    self._last = max(self._last, int(event["seq"]))
                    if self._last > asked or event["type"] in OPEN:
                        self._post(Wire(event))
            except ExoError as error:
                if up is not False and not self._stop.is_set():
                    up = False
                    self._post(Link("core", False, _bare(error)))
            self._stop.wait(RETRY)

    def _watch_models(self) -> None:
        up: bool | None = None
        while not self._stop.is_set():
            now = reachable(self._models)
            if now is not up:
                up = now
                self._post(Link("models", now))
            self._stop.wait(1.0)


def _bare(error: ExoError) -> str:
    """The reason alone, short enough for the screen."""
    cause = error.__cause__
    if isinstance(error, ServiceError) and isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return error.why or str(error)
