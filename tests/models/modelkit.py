"""Starting an exo-models as the product starts it, and speaking with it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from exo.core.base.home import Home
from exo.core.base.unix import UnixConnection, get, post, reachable

WINDOW = 768  # small, so that an overflow is cheap


class Server:
    """An exo-models process on a home of its own. One thread: a test machine is shared."""

    def __init__(self, home: Path, *args: str, **environ: str) -> None:
        self.home = Home(home).make()
        self.log = self.home.logs / "models.log"
        self._args = [sys.executable, "-m", "exo.models.app", "--home", str(home), *args]
        self._environ = {
            **os.environ,
            "EXO_MODELS_THREADS": "1",
            "EXO_MODELS_WINDOW": str(WINDOW),
            **environ,
        }
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        return self.home.models_socket

    def start(self) -> Server:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self._args, stderr=log, env=self._environ)
        end = time.monotonic() + 30
        while not reachable(self.socket):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, "exo-models does not answer"
            time.sleep(0.02)
        return self

    def end(self, how: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        code = self.process.wait(20)
        self.process = None
        return code

    def ask(self, path: str, body: Any, kind: str = "application/json") -> tuple[int, Any]:
        """POST; (status, the JSON that came back)."""
        status, raw = post(self.socket, path, body, content_type=kind, timeout=120)
        return status, json.loads(raw)

    def raw(self, path: str, body: Any, kind: str = "application/json") -> tuple[int, bytes]:
        return post(self.socket, path, body, content_type=kind, timeout=120)

    def get(self, path: str) -> dict[str, Any]:
        return get(self.socket, path, timeout=60)

    def chat(self, *said: str, system: str = "", **more: Any) -> tuple[int, Any]:
        """One chat request: said by user and assistant in turn."""
        return self.ask(
            "/v1/chat/completions", {"messages": messages(*said, system=system), **more}
        )

    def stream(self, body: dict[str, Any], most: int = 10_000) -> list[Any]:
        """The events of a streamed chat, "[DONE]" as that text; hangs up after `most` of them."""
        with contextlib.closing(self.open(body)) as link:
            return events(link.getresponse(), most)

    def open(self, body: dict[str, Any]) -> UnixConnection:
        link = UnixConnection(self.socket, 120)
        raw = json.dumps({**body, "stream": True}).encode()
        link.request("POST", "/v1/chat/completions", raw, {"Content-Type": "application/json"})
        return link


def events(answer: Any, most: int = 10_000) -> list[Any]:
    out: list[Any] = []
    while len(out) < most and (line := answer.readline()):
        if line.startswith(b"data: "):
            text = line[6:].decode().strip()
            out.append(text if text == "[DONE]" else json.loads(text))
    return out


def messages(*said: str, system: str = "") -> list[dict[str, str]]:
    head = [{"role": "system", "content": system}] if system else []
    roles = ("user", "assistant")
    return [*head, *({"role": roles[i % 2], "content": text} for i, text in enumerate(said))]


def text_of(answer: Any) -> str:
    return str(answer["choices"][0]["message"]["content"])


def deltas(chunks: list[Any]) -> str:
    return "".join(
        chunk["choices"][0]["delta"].get("content") or ""
        for chunk in chunks
        if isinstance(chunk, dict) and chunk.get("choices")
    )


def cached(answer: Any) -> int:
    return int(answer["usage"]["prompt_tokens_details"]["cached_tokens"])
