"""The PC's end of the USB cable. Owns the greeting with the PIN, what waits for an answer, where the events are, and
going on after the cable was pulled; finds no port.

A Link is used like core/base/client.py's Client. Invariant: every event comes once and in order, and a command is
carried out once, however often the cable breaks: unanswered commands are sent again under their ids, events go
on behind the last number seen, and a number that is missing is asked for again."""

from __future__ import annotations

import contextlib
import json
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from exo.board.cable import (
    GIVE_UP,
    JSON,
    LINK,
    LOG,
    PART,
    PING,
    SILENCE,
    SIZE,
    VERSION,
    Joiner,
    key,
    pack,
    proof,
)
from exo.core.base.errors import ExoError, ProtocolError, ServiceError
from exo.core.base.frames import FrameError, Reader, frame

GREETING = 5.0  # seconds for an answer to the greeting
AGAIN = (
    2.0,
    30.0,
)  # seconds until an unanswered command is sent again: the first time, and at most
RETRY = 0.1  # seconds between looks for a port that is gone


class Port(Protocol):
    """What is needed of pyserial's Serial: `read` waits a moment at the most. All raise OSError."""

    @property
    def in_waiting(self) -> int: ...
    def read(self, size: int = 1) -> bytes: ...
    def write(self, data: bytes) -> int | None: ...
    def close(self) -> None: ...


class Link:
    """The device at the other end. `on_log` takes the lines of its logs, `on_state` what becomes of the link."""

    def __init__(
        self,
        open_port: Callable[[], Port],
        ask_pin: Callable[[str], str],
        on_state: Callable[[str], None] = lambda text: None,
        on_log: Callable[[str, str], None] | None = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """`ask_pin` is told why and returns digits, "" to give up; `on_event` takes events that no record
        has: the device's screen, which is sent if it is given."""
        self._open_port, self._ask_pin = open_port, ask_pin
        self.on_state, self.on_log, self.on_event = on_state, on_log, on_event
        self._port: Port | None = None
        self._secret: tuple[str, bytes] = ("", b"")  # salt, and what scrypt made of it and the PIN
        self._lock, self._sending = threading.RLock(), threading.Lock()
        self._stop, self._ready = threading.Event(), threading.Event()
        self._pending: dict[str, _Pending] = {}
        self._number = 0
        self._last: int | None = None  # of the events; None: nobody follows
        self._events: queue.Queue[dict[str, Any] | ExoError] = queue.Queue()
        self._gap: Any = None  # the last one of the record that was told
        self._asked = 0.0  # when events were asked for that have not begun to come
        self.fault: ExoError | None = None
        self.cuts = 0

    def start(self, seconds: float = 60.0) -> None:
        """Connect, and stay so from a thread. Raises ServiceError when there is no device, ProtocolError
        when it refuses."""
        threading.Thread(target=self._run, name="link", daemon=True).start()
        end = time.monotonic() + seconds
        while not self._ready.wait(0.05):
            if self.fault is not None:
                raise self.fault
            if time.monotonic() > end:
                self.close()
                raise ServiceError("reach the device", f"no answer in {seconds:.0f} s")

    def watch(
        self,
        on_state: Callable[[str], None],
        on_log: Callable[[str, str], None],
        on_event: Callable[[dict[str, Any]], None],
        ask_pin: Callable[[str], str],
    ) -> None:
        """Have somebody else told from now on."""
        self.on_state, self.on_log, self.on_event = on_state, on_log, on_event
        self._ask_pin = ask_pin
        with contextlib.suppress(OSError):
            self._words({"logs": True})
            self._words({"mirror": True})

    def close(self) -> None:
        self._stop.set()
        with contextlib.suppress(OSError, FrameError):
            self._words({"bye": True})

    # ---- as core/base/client.py ------------------------------------------------------------------

    def call(self, type_: str, /, **body: Any) -> dict[str, Any]:
        """Send one command and return its result. Raises ProtocolError with exod's code, ServiceError
        without an answer in time."""
        return self.within(10.0, type_, body)

    def within(self, seconds: float, type_: str, body: dict[str, Any]) -> dict[str, Any]:
        """`call` with a time-out of its own; it begins once the device is there."""
        if self.fault is not None:
            raise self.fault
        id_ = secrets.token_hex(8)
        pending = _Pending(json.dumps({"id": id_, "type": type_, "body": body}).encode())
        with self._lock:
            self._pending[id_] = pending
        try:
            self._try(pending)
            if not pending.done.wait(seconds + (0 if self._ready.is_set() else 30.0)):
                raise ServiceError(
                    f"send {type_} to the device", "no answer came", "is it plugged in?"
                )
        finally:
            with self._lock:
                self._pending.pop(id_, None)
        answer = pending.answer
        if answer.get("ok"):
            return dict(answer.get("result") or {})
        error = answer.get("error") or {}
        text, code = str(error.get("message", "refused")), str(error.get("code", "internal"))
        if code == ServiceError.code:
            raise ServiceError(f"send {type_} to exod", text)
        raise ProtocolError(type_, text, code=code)

    def send(
        self, session: str, text: str, mode: str = "send", message: str = "", retry: float = 30.0
    ) -> str:
        """Say `text`; returns the turn."""
        message = message or secrets.token_hex(8)
        body = {"session": session, "text": text, "mode": mode, "message": message}
        return str(self.within(retry, "turn.send", {**body, "channel": "console"})["turn"])

    def patient(self, timeout: float) -> _Patient:
        """The same link with another time-out."""
        return _Patient(self, timeout)

    def events(
        self,
        since: int | None = None,
        session: str | None = None,
        stop: threading.Event | None = None,
        retry: float = 0.0,
    ) -> Iterator[dict[str, Any]]:
        """Events above `since`, then live ones, of all cuts. One caller at a time. Raises ExoError when
        the device lets us in no more."""
        since = (
            int(self.call("hello", protocol=1, client="console")["seq"]) if since is None else since
        )
        with contextlib.suppress(queue.Empty):
            while True:
                self._events.get_nowait()  # of a caller before
        self._last = since
        self._follow()
        try:
            while not (stop or self._stop).is_set():
                try:
                    event = self._events.get(timeout=0.5)
                except queue.Empty:
                    continue
                if isinstance(event, ExoError):
                    raise event
                if session is None or event["session"] == session:
                    yield event
        finally:
            self._last = None
            self._follow()

    # ---- the link --------------------------------------------------------------------------------

    def _run(self) -> None:
        away = False
        while not self._stop.is_set():
            try:
                port = self._open_port()
            except ExoError as error:
                if not self.cuts:  # there was no device from the start
                    self._fail(error)
                    return
                self._stop.wait(RETRY)
                continue
            except (OSError, ValueError) as error:
                if not self.cuts and not away:
                    away = True
                    self.on_state(f"waits for the port: {error}")
                self._stop.wait(RETRY)
                continue
            try:
                self._serve(port)
            except OSError as error:
                if self._ready.is_set():
                    self.on_state(f"cut: {error}")
            except ExoError as error:
                self._fail(error)
                return
            finally:
                self.cuts += 1
                self._ready.clear()
                with self._sending:  # nobody writes to what is closed
                    self._port = None
                    with contextlib.suppress(OSError):
                        port.close()
            self._stop.wait(0.05)

    def _fail(self, error: ExoError) -> None:
        self.fault = error
        self._events.put(error)
        self.on_state(str(error))

    def _serve(self, port: Port) -> None:
        """One connection, until it breaks (OSError) or is refused (ExoError)."""
        reader, joiner = Reader(2 * SIZE), Joiner()
        self._port = port
        self._greet(port, reader)
        self._ready.set()
        self.on_state("connected")
        if self.on_log is not None:
            self._words({"logs": True})
        if self.on_event is not None:
            self._words({"mirror": True})
        with self._lock:
            waiting = list(self._pending.values())
        for pending in waiting:  # before the events, which may be many
            self._transmit(pending)
        if self._last is not None:
            self._follow()
        heard = came = pinged = time.monotonic()
        while not self._stop.is_set():
            data = _arrived(port)
            now = time.monotonic()
            if data:
                came = now
            found = reader.feed(data)
            if reader.waits and now - came >= GIVE_UP:
                found += reader.give_up()
            for kind, payload in found:
                if kind:
                    heard = now
                    self._take(kind, payload, joiner)
            if now - heard >= SILENCE:
                raise ConnectionError("the device is silent")
            if now - pinged >= PING:
                pinged = now
                self._words({"ping": int(now * 1000)})
            if self._asked and now - self._asked >= GREETING:
                self._follow()
            self._again(now)

    def _greet(self, port: Port, reader: Reader) -> None:
        nonce = secrets.token_hex(16)
        hello = {"hello": VERSION, "name": "exo console", "nonce": nonce}
        challenge = self._wait_word(port, reader, hello, ("hello", "refused"))
        if "hello" not in challenge:
            self._refused(challenge)
            return self._greet(port, reader)
        if self._secret[0] != challenge.get("salt"):
            self._ask(challenge, "PIN of the device")
            # the person took their time: a fresh nonce
            return self._greet(port, reader)
        theirs = str(challenge["nonce"])
        shown = proof(self._secret[1], "client", theirs, nonce)
        answer = self._wait_word(port, reader, {"proof": shown}, ("open", "refused"), once=True)
        if "open" not in answer:
            self._secret = ("", b"")
            self._refused(answer)
            return self._greet(port, reader)
        if answer.get("proof") != proof(self._secret[1], "device", theirs, nonce):
            raise ServiceError("trust the device", "it does not know the PIN itself")
        return None

    def _ask(self, challenge: dict[str, Any], why: str) -> None:
        digits = self._ask_pin(why)
        if not digits:
            raise ServiceError("open the device", "no PIN was given")
        try:
            self._secret = str(challenge["salt"]), key(digits, challenge)
        except (KeyError, TypeError, ValueError) as error:
            raise ServiceError("open the device", "its challenge is not understood") from error

    def _refused(self, answer: dict[str, Any]) -> None:
        """Wait where waiting helps. Raises ServiceError where it does not."""
        why, wait = answer.get("refused"), float(answer.get("wait") or 0)
        if why == "no_pin":
            what = "set one on the device, under Settings"
            raise ServiceError("open the device", "it has no PIN, and lets nobody in", what)
        if why == "version":
            raise ServiceError("talk to the device", "it speaks another version", "update both")
        if why == "storage":
            raise ServiceError("open the device", str(answer.get("why", "its disk refuses")))
        self.on_state("wrong PIN" if why == "pin" else "the device waits")
        if wait:
            self.on_state(f"next try in {wait:.0f} s")
            end = time.monotonic() + wait
            while time.monotonic() < end and not self._stop.wait(0.1):
                pass

    def _wait_word(
        self,
        port: Port,
        reader: Reader,
        words: dict[str, Any],
        names: tuple[str, ...],
        once: bool = False,
    ) -> dict[str, Any]:
        """Say `words` until one of `names` is answered; `once`: an answer that is lost breaks the link."""
        end, said = time.monotonic() + GREETING, 0.0
        while not self._stop.is_set():
            now = time.monotonic()
            if now > end:
                raise ConnectionError("the device does not answer")
            if not said or (not once and now - said > 1.0):
                said = now
                self._words(words)
            found = reader.feed(_arrived(port))
            if reader.waits and now - said > GIVE_UP:
                found += reader.give_up()
            for kind, payload in found:
                answer = _json(payload) if kind == LINK else {}
                if any(name in answer for name in names):
                    return answer
        raise ConnectionError("closed")

    def _take(self, kind: int, payload: bytes, joiner: Joiner) -> None:
        if kind == PART:
            whole = joiner.take(payload)
            if whole is None:
                return
            kind, payload = JSON, whole
        value = _json(payload)
        if kind == LINK:
            self._link(value)
        elif kind == LOG and self.on_log is not None:
            self.on_log(str(value.get("log", "")), str(value.get("text", "")))
        elif kind == JSON and "seq" in value and "type" in value:
            self._event(value)
        elif kind == JSON and "ok" in value:
            with self._lock:
                pending = self._pending.get(str(value.get("id")))
            if pending is not None:
                pending.answer = value
                pending.done.set()

    def _link(self, words: dict[str, Any]) -> None:
        if "refused" in words or "hello" in words:
            raise ConnectionError("the device has closed the session")
        seq, last = words.get("seq"), self._last
        if "following" in words and words["following"] == last:
            self._asked = 0.0
        elif "skip" in words:
            self._gap = words["skip"]
        elif "pong" in words and isinstance(seq, int) and last is not None and seq > last:
            self._follow()  # the last events went out and did not come

    def _event(self, event: dict[str, Any]) -> None:
        seq, last = int(event["seq"]), self._last
        if not seq and event["type"] == "ui.panel":
            if self.on_event is not None:
                self.on_event(event)
        elif not seq:
            self._events.put(event)
        elif last is not None and seq > last and not self._asked:
            if seq > last + 1 and self._gap != [last, seq]:
                self._follow()  # what is between was lost on the way
                return
            self._last = seq
            self._events.put(event)

    def _follow(self) -> None:
        """Ask for what is behind the last event, or for none; until that begins to come, events are late ones."""
        self._asked = time.monotonic() if self._last is not None else 0.0
        with contextlib.suppress(OSError):
            self._words({"follow": self._last})

    def _words(self, words: dict[str, Any]) -> None:
        self._write(frame(LINK, json.dumps(words).encode()))

    def _write(self, data: bytes) -> None:
        with self._sending:
            if self._port is None:
                raise ConnectionError("no port")
            self._port.write(data)

    def _again(self, now: float) -> None:
        with self._lock:
            waiting = [each for each in self._pending.values() if now >= each.due]
        for pending in waiting:
            self._transmit(pending)

    def _try(self, pending: _Pending) -> None:
        if self._ready.is_set():
            with contextlib.suppress(OSError):  # it is sent again once the link stands
                self._transmit(pending)

    def _transmit(self, pending: _Pending) -> None:
        pending.wait = min(2 * pending.wait, AGAIN[1]) if pending.wait else AGAIN[0]
        pending.due = time.monotonic() + pending.wait
        with self._lock:
            self._number += 1
            number = self._number
        for part in pack(pending.raw, number):
            self._write(part)


class _Pending:
    """A command without an answer."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.answer = raw, dict[str, Any]()
        self.done, self.wait, self.due = threading.Event(), 0.0, time.monotonic() + AGAIN[0]


class _Patient:
    def __init__(self, link: Link, timeout: float) -> None:
        self._link, self._timeout = link, timeout

    def call(self, type_: str, /, **body: Any) -> dict[str, Any]:
        return self._link.within(self._timeout, type_, body)


def _arrived(port: Port) -> bytes:
    """What is there, after a moment's wait for the first byte: pyserial would wait for all that it is asked for."""
    data = port.read(1)
    return data + port.read(port.in_waiting) if data else b""


def _json(payload: bytes) -> dict[str, Any]:
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
