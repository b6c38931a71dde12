"""The framed side of the console: `exo console` on the other end. Owns the greeting by which the PIN is shown to
be known, who has been answered what, and where the events are; knows no port.

The client greets with a nonce; we answer with ours and the PIN's salt; the client proves the PIN by an HMAC of
both under what scrypt makes of it, and we prove the same: the PIN never goes over the line, a recorded proof is of no use again, and the
PC does the costly part. Somebody who records the line can still try out all PINs at home: a cable is as private as it looks.

Invariant: before the proof nothing but the greeting is answered; a command is carried out once, however
often it comes."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from exo.board.cable import (
    BOUND,
    JSON,
    LINK,
    LOG,
    PART,
    SILENCE,
    VERSION,
    Joiner,
    Outgoing,
    pack,
    proof,
)
from exo.board.logs import Tail
from exo.board.viewer import Viewer
from exo.core.base.errors import ExoError, ServiceError, StorageError
from exo.core.base.frames import frame
from exo.core.base.unix import post

if TYPE_CHECKING:
    from exo.device.console import Around

BUSY = 16  # commands that may be under way
PATIENCE = 3600.0  # seconds that one may take
LOOK = 1.0  # seconds between two looks at the logs
KEPT = 64  # answers, and bytes of them, that are kept for a client that asks again
KEPT_BYTES = 2 * 1024 * 1024


class Answers:
    """What commands were answered, by their ids; None while they run. Outlives a session: a cable that was
    pulled between a command and its answer costs neither."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, bytes | None] = OrderedDict()
        self.tell: Callable[[bytes], None] | None = None  # the session that is open

    def begin(self, id_: str) -> tuple[bool, bytes | None]:
        """Whether the command is new, and its answer if there is one."""
        if id_ in self._kept:
            return False, self._kept[id_]
        self._kept[id_] = None
        return True, None

    @property
    def running(self) -> int:
        return sum(raw is None for raw in self._kept.values())

    def end(self, id_: str, raw: bytes) -> None:
        """It was answered: tell it; the oldest answers are let go."""
        if self.tell is not None:
            self.tell(raw)
        self._kept[id_] = raw
        self._kept.move_to_end(id_)
        done = [(k, len(v)) for k, v in self._kept.items() if v is not None]
        size = sum(each[1] for each in done)
        while len(done) > 1 and (len(done) > KEPT or size > KEPT_BYTES):
            id_, length = done.pop(0)
            size -= length
            del self._kept[id_]

    def drop(self, id_: str, raw: bytes) -> None:
        """It was not carried out: asked again, it is."""
        self._kept.pop(id_, None)
        if self.tell is not None:
            self.tell(raw)


def _words(payload: bytes) -> dict[str, Any]:
    try:
        words = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return words if isinstance(words, dict) else {}


class LinkSession:
    """One client, from its greeting until it is silent."""

    def __init__(self, around: Around, out: Outgoing) -> None:
        self._around, self._out = around, out
        self._heard = around.clock.monotonic()
        self._nonces = ("", "")
        self._open = self._closed = False
        self._salt: Any = None
        self._number, self._joiner = 0, Joiner()
        self._pump: Any = None
        self._tail: Tail | None = None
        self._looked, self._sent = 0.0, 0
        self._mirror: Any = None

    @staticmethod
    def greets(payload: bytes) -> bool:
        """Whether it is a greeting: a session begins, whatever was before."""
        return "hello" in _words(payload)

    @property
    def over(self) -> bool:
        """Whether the client is gone."""
        return self._closed or self._around.clock.monotonic() - self._heard >= SILENCE

    @property
    def due(self) -> float | None:
        """The moment, monotonic, of the next `tick`."""
        return self._looked + LOOK if self._tail else self._heard + SILENCE

    def close(self) -> None:
        if self._open:
            self._around.answers.tell = None
        self._open, self._closed = False, True
        for each in (self._pump, self._mirror):
            if each is not None:
                each.close()
        self._pump = self._mirror = None

    def frame(self, kind: int, payload: bytes) -> None:
        """Take one frame."""
        self._heard = self._around.clock.monotonic()
        if kind == LINK:
            self._link(_words(payload))
        elif self._open and self._current():
            if kind == PART:
                whole = self._joiner.take(payload)
                if whole is not None:
                    self._command(whole)
            elif kind == JSON:
                self._command(payload)

    def tick(self, room: bool) -> None:
        """Let an event go while there is room for it."""
        while room and self._pump is not None and (event := self._pump.take()) is not None:
            self._skip(int(event["seq"]))
            self._send(event, int(event["seq"]))
            room = self._out.size < BOUND
        if room and self._mirror is not None and (event := self._mirror.take()) is not None:
            self._send(event)
        now = self._around.clock.monotonic()
        if self._tail is not None and now - self._looked >= LOOK:
            self._looked = now
            for name, text in self._tail.read() if room else ():
                line = json.dumps({"log": name, "text": text[:400]}).encode()
                self._out.put(frame(LOG, line))

    # ---- the link's own words --------------------------------------------------------------------

    def _link(self, words: dict[str, Any]) -> None:
        if "hello" in words:
            self._greet(words)
        elif "proof" in words:
            self._judge(words)
        elif "ping" in words:
            seq = self._out.written if self._open else 0
            self._say({"pong": words["ping"], "seq": seq})
        elif not (self._open and self._current()):
            return
        elif "bye" in words:
            self._closed = True
        elif "follow" in words:
            self._follow(words["follow"])
        elif "mirror" in words:
            self._watch(bool(words["mirror"]))
        elif "logs" in words:
            self._tail = Tail(self._around.home.logs) if words["logs"] else None

    def _greet(self, words: dict[str, Any]) -> None:
        pin, nonce = self._around.pin, words.get("nonce")
        self._nonces = ("", "")
        if words["hello"] != VERSION:
            self._say({"refused": "version", "version": VERSION})
        elif not pin.set:
            self._say({"refused": "no_pin"})
        elif pin.wait > 0:
            self._say({"refused": "wait", "wait": pin.wait})
        elif isinstance(nonce, str) and 16 <= len(nonce) <= 64:
            self._nonces = secrets.token_hex(16), nonce
            self._say(
                {"hello": VERSION, "name": "exo", "nonce": self._nonces[0], **pin.challenge()}
            )

    def _judge(self, words: dict[str, Any]) -> None:
        given, nonces, pin = str(words["proof"]), self._nonces, self._around.pin
        self._nonces = ("", "")
        if not nonces[0] or not given.isascii():
            return
        ours: list[str] = []

        def check(secret: bytes) -> bool:
            ours.append(proof(secret, "device", *nonces))
            return hmac.compare_digest(proof(secret, "client", *nonces), given)

        try:
            known = pin.proves(check)
        except StorageError as error:
            self._say({"refused": "storage", "why": str(error)})
            return
        if known:
            self._open, self._salt = True, pin.challenge().get("salt")
            self._around.answers.tell = self._raw
            self._say({"open": VERSION, "proof": ours[0]})
        else:
            self._say({"refused": "pin", "wait": pin.wait})

    def _current(self) -> bool:
        """Whether the PIN is still the one that was proved."""
        if self._around.pin.challenge().get("salt") != self._salt:
            self._closed = True
        return not self._closed

    def _follow(self, since: Any) -> None:
        from exo.device.console import Pump

        if self._pump is not None:
            self._pump.close()
            self._pump = None
        self._out.forget_events()
        if isinstance(since, int):
            self._sent = since
            self._out.put(frame(LINK, json.dumps({"following": since}).encode()))
            self._pump = Pump(self._around.client, since, self._around.wake)

    def _skip(self, seq: int) -> None:
        """Say that the record has nothing between the event before and this one: a gap that is not told is
        one of the line."""
        if seq > self._sent + 1:
            words = json.dumps({"skip": [self._sent, seq]}).encode()
            self._out.put(frame(LINK, words), -1)
        self._sent = seq or self._sent

    def _watch(self, wanted: bool) -> None:
        if self._mirror is not None:
            self._mirror.close()
        socket = self._around.home.state / "screen.sock"
        self._mirror = Viewer(socket, self._around.wake) if wanted else None

    def _say(self, words: dict[str, Any]) -> None:
        self._out.put(frame(LINK, json.dumps(words).encode()), first=True)

    # ---- the protocol ----------------------------------------------------------------------------

    def _command(self, raw: bytes) -> None:
        id_ = str(_words(raw).get("id", ""))
        answers, around = self._around.answers, self._around
        if not id_:
            self._raw(_failure("", "bad_request", "a command without an id"))
            return
        new, kept = answers.begin(id_)
        if not new:
            if kept is not None:
                self._raw(kept)
            return
        if answers.running > BUSY:
            answers.drop(id_, _failure(id_, "busy", "too many commands are under way"))
            return

        def work() -> Callable[[], None]:
            try:
                _, answer = post(around.home.exod_socket, "/command", raw.strip(), timeout=PATIENCE)
            except ExoError as error:
                refused = _failure(id_, ServiceError.code, str(error))
                return lambda: answers.drop(id_, refused)
            return lambda: answers.end(id_, answer)

        around.spawn(work)

    def _send(self, value: dict[str, Any], seq: int = 0) -> None:
        self._raw(json.dumps(value, ensure_ascii=False).encode(), seq)

    def _raw(self, raw: bytes, seq: int = 0) -> None:
        self._number += 1
        with contextlib.suppress(ValueError):
            *parts, last = pack(raw, self._number)
            for part in parts:
                self._out.put(part, -1 if seq else 0)
            self._out.put(last, seq)


def _failure(id_: str, code: str, message: str) -> bytes:
    error = {"code": code, "message": message}
    return json.dumps({"id": id_, "ok": False, "error": error}).encode()
