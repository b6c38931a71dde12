"""Servers that stand in for exod and exo-models, on the same HTTP base as the real ones; and a handheld on
a bench: parts that only write down what they are told, on a clock that a test moves."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.board.fake import FakePanel
from exo.core.base.httpd import HttpError, HttpServer, Request, Response, json_response
from exo.device import events as ev
from exo.device.font import Fonts
from exo.device.handheld import Handheld
from exo.device.locale import Texts
from exo.device.pages import Pages
from exo.device.states import Machine
from exo.tools.clock import FakeClock


class Server:
    """An HttpServer in a thread of its own; `start` and `kill` as often as a test wants."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def handle(self, request: Request) -> Response:
        raise NotImplementedError

    def start(self) -> None:
        ready = threading.Event()

        async def serve() -> None:
            self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
            server = HttpServer(self.handle)
            await server.listen_unix(self.socket)
            ready.set()
            await self._end.wait()
            await server.close()

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()))
        self._thread.start()
        assert ready.wait(5)

    def kill(self) -> None:
        """Go away at once, in the middle of whatever it does."""
        if self._loop and self._thread:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(20)
            self._loop = self._thread = None


class FakeExod(Server):
    """Answers each turn with `answer(text)`: a list of pieces; a float is a pause, an Exception's text
    an error."""

    def __init__(self, socket: Path) -> None:
        super().__init__(socket)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.events: list[dict[str, Any]] = []
        self.sessions: set[str] = set()
        self.answer: Callable[[str], list[Any]] = lambda text: ["You said ", text, "."]
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._number = 0

    async def handle(self, request: Request) -> Response:
        if request.path == "/command":
            command = await request.json()
            assert isinstance(command, dict)
            self.calls.append((command["type"], command["body"]))
            try:
                result = self._command(command["type"], command["body"])
            except HttpError as error:
                return json_response(
                    {
                        "id": command["id"],
                        "ok": False,
                        "error": {"code": error.code, "message": error.message},
                    }
                )
            return json_response({"id": command["id"], "ok": True, "result": result})
        return Response(self._stream(int(request.query["since"])), content_type="text/event-stream")

    def _command(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        if kind == "hello":
            return {"protocol": 1, "server": "fake", "seq": len(self.events), "capabilities": []}
        if kind == "session.create":
            session = f"s{len(self.sessions) + 1}"
            self.sessions.add(session)
            return {"session": session}
        session = body["session"]
        if session not in self.sessions:
            raise HttpError(400, "unknown_session", f"there is no session {session}")
        if kind == "turn.interrupt":
            task = self._turns.get(session)
            if task and not task.done():
                task.cancel()
            return {"interrupted": bool(task)}
        if kind == "turn.send":
            self._number += 1
            turn = f"t{self._number}"
            self._turns[session] = asyncio.ensure_future(self._turn(session, turn, body["text"]))
            return {"accepted": True, "turn": turn}
        return {"session": session}

    async def _turn(self, session: str, turn: str, text: str) -> None:
        self.emit(session, "turn.started", {"turn": turn})
        said, reason = "", "end"
        try:
            for piece in self.answer(text):
                if isinstance(piece, Exception):
                    self.emit(
                        session, "notice", {"level": "error", "code": "x", "text": str(piece)}
                    )
                    reason = "error"
                elif isinstance(piece, str):
                    said += piece
                    body = {"turn": turn, "message": f"m{turn}", "text": piece}
                    self.emit(session, "message.delta", body)
                else:
                    await asyncio.sleep(piece)
        except asyncio.CancelledError:
            reason = "interrupted"
        if said:
            message = {"id": f"m{turn}", "role": "assistant", "text": said}
            self.emit(session, "message.completed", {"turn": turn, "message": message})
        self.emit(session, "turn.completed", {"turn": turn, "stop_reason": reason, "usage": {}})

    def emit(self, session: str | None, kind: str, body: dict[str, Any]) -> None:
        seq = len(self.events) + 1
        self.events.append(
            {"id": str(seq), "seq": seq, "session": session, "type": kind, "ts": 0, "body": body}
        )

    def notice(self, level: str, code: str, text: str) -> None:
        """Tell everyone something, from any thread."""
        self.emit("", "notice", {"level": level, "code": code, "text": text})

    async def _stream(self, since: int) -> AsyncIterator[bytes]:
        while True:
            for event in self.events[since:]:
                yield f"id: {event['seq']}\ndata: {json.dumps(event)}\n\n".encode()
                since = event["seq"]
            await asyncio.sleep(0.005)


class FakeModels(Server):
    """Hears `hears`; speaks a tone of 20 ms a letter."""

    RATE = 22_050

    def __init__(self, socket: Path) -> None:
        super().__init__(socket)
        self.hears = "what is the capital of france"
        self.spoken: list[str] = []
        self.recorded: list[bytes] = []
        self.abandoned = 0
        self.refuses = ""
        self.asked: list[dict[str, str]] = []  # the query of each recording

    async def handle(self, request: Request) -> Response:
        if self.refuses:
            raise HttpError(503, "model_missing", self.refuses)
        if request.path == "/v1/audio/transcriptions":
            return Response(self._listen(request), content_type="text/event-stream")
        body = await request.json()
        assert isinstance(body, dict)
        self.spoken.append(body["input"])
        return Response(
            self._tone(len(body["input"])),
            content_type="audio/pcm",
            headers={"X-Sample-Rate": str(self.RATE)},
        )

    async def _listen(self, request: Request) -> AsyncIterator[bytes]:
        """Tells that somebody speaks while it is loud, and that they stopped after `pause` seconds."""
        pcm, speaking, silent = b"", False, 0.0
        self.asked.append(request.query)
        try:
            async for piece in request.chunks():
                pcm += piece
                loud = any(abs(value) > 500 for (value,) in struct.iter_unpack("<h", piece))
                silent = 0.0 if loud else silent + len(piece) / 32_000
                if speaking != (speaking and silent < float(request.query["pause"]) or loud):
                    speaking = not speaking
                    yield self._event(type="speech.started" if speaking else "speech.ended")
        except (ConnectionError, EOFError, HttpError):
            self.abandoned += 1
            raise
        self.recorded.append(pcm)
        loud = any(abs(value) > 500 for (value,) in struct.iter_unpack("<h", pcm))
        yield self._event(type="transcript.text.done", text=self.hears if loud else "")

    def _event(self, **event: str) -> bytes:
        return b"data: " + json.dumps(event).encode() + b"\n\n"

    async def _tone(self, letters: int) -> AsyncIterator[bytes]:
        for _ in range(letters):
            yield struct.pack("<h", 8000) * (self.RATE // 50)


@pytest.fixture
def exod(tmp_path: Path) -> Iterator[FakeExod]:
    server = FakeExod(tmp_path / "state" / "exod.sock")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def models(tmp_path: Path) -> Iterator[FakeModels]:
    server = FakeModels(tmp_path / "state" / "models.sock")
    server.start()
    yield server
    server.kill()


FONTS = Fonts()


class Parts:
    """Ear, voice and link in one."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.session, self.on, self.ticket = "s1", True, 0
        self.muted, self.volume, self.sounds = False, 100.0, True
        self.chimes: list[str] = []

    def chime(self, name: str) -> None:
        self.chimes.append(name)

    def mute(self, on: bool) -> None:
        self.muted, self.on = on, not on

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.told.append((name, *args))

    def begin(self) -> int:
        self.ticket += 1
        self.told.append(("begin",))
        return self.ticket

    def names(self) -> list[str]:
        return [each[0] for each in self.told]


class Bench:
    """A handheld on a bench."""

    def __init__(
        self, toggles: bool = False, system: Any = None, language: str = "en", **more: Any
    ) -> None:
        """`more` goes to the handheld: names, options, pin."""
        self.clock, self.panel = more.pop("clock", None) or FakeClock(), FakePanel()
        machine = Machine(self.clock)
        pages = Pages((128, 64), FONTS, Texts(language))
        self.device = Handheld(self.panel, pages, self.clock, machine, 10.0, toggles, **more)
        self.ear, self.voice, self.link = Parts(), Parts(), Parts()
        self.device.attach(self.ear, self.voice, self.link, system)
        self.do(ev.Link("core", True), ev.Link("models", True))
        self.link.told.clear()

    def do(self, *events: ev.Event) -> str:
        for event in events:
            self.device.post(event)
        self.device.step()
        return self.device.machine.state

    def press(self, name: str = "talk", seconds: float = 1.0) -> str:
        self.do(ev.Button(name, True))
        self.pass_(seconds)
        return self.do(ev.Button(name, False))

    def pass_(self, seconds: float) -> str:
        self.clock.advance(seconds)
        return self.do()

    def wire(self, type_: str, /, session: str = "s1", **body: Any) -> str:
        return self.do(ev.Wire({"seq": 1, "session": session, "type": type_, "body": body}))

    def ask(self, text: str = "hello") -> None:
        """Until a turn t1 runs."""
        self.do(ev.Typed(text))
        self.wire("turn.started", turn="t1")

    def delta(self, text: str, turn: str = "t1") -> str:
        return self.wire("message.delta", turn=turn, message="m1", text=text)

    def complete(self, text: str, reason: str = "end") -> str:
        message = {"id": "m1", "role": "assistant", "text": text}
        self.wire("message.completed", turn="t1", message=message)
        return self.wire("turn.completed", turn="t1", stop_reason=reason, usage={})

    def tap(self, *names: str) -> str:
        """Press and release keys, one after the other, slowly enough to be no doubles."""
        for name in names:
            self.press(name, 0.1)
            self.pass_(0.5)
        return self.device.machine.state

    def calls(self, command: str) -> list[dict[str, Any]]:
        """The bodies of one command as exod was sent them."""
        return [each[4] for each in self.link.told if each[0] == "call" and each[3] == command]

    @property
    def state(self) -> str:
        return self.device.machine.state

    @property
    def screen(self) -> str:
        return self.device.snapshot().screen


@pytest.fixture
def make_bench() -> type[Bench]:
    return Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
