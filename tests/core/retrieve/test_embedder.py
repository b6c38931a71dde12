from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

import pytest
from exo.core.base.errors import ModelError, ModelMissing, ServiceError
from exo.core.retrieve.embedder import SocketEmbedder


class Server(ThreadingMixIn, UnixStreamServer):
    """Answers like exo-models; `rows` are its models, `answer` what an embedding request gets."""

    daemon_threads = True
    rows: list[dict[str, Any]]
    answer: tuple[int, Any]
    asked: list[dict[str, Any]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self._reply(200, {"data": self.server.rows})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        data = [
            {"index": n, "embedding": [float(len(text)), 1.0]}
            for n, text in enumerate(body["input"])
        ]
        status, answer = self.server.answer
        self._reply(status, {"data": data} if answer is None else answer)

    def _reply(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: object) -> None:
        return

    def address_string(self) -> str:
        return "unix"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(str(tmp_path / "models.sock"), Handler)
    made.rows = [
        {"id": "chat", "role": "main", "installed": True},
        {"id": "small", "role": "embedding", "installed": True},
        {"id": "not-here", "role": "embedding", "installed": False},
    ]
    made.answer, made.asked = (200, None), []
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def embedder(server: Server, tmp_path: Path) -> SocketEmbedder:
    return SocketEmbedder(tmp_path / "models.sock", 5.0)


def test_vectors_come_in_order_from_the_model_it_names(
    server: Server, embedder: SocketEmbedder
) -> None:
    assert embedder.width == 0
    assert embedder.embed(["a", "bcd", ""]) == [[1.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
    assert (embedder.name, embedder.width) == ("small", 2)
    assert [each["model"] for each in server.asked] == ["small"]


def test_a_question_is_asked_once(server: Server, embedder: SocketEmbedder) -> None:
    for _ in range(3):
        assert embedder.embed(["again"]) == [[5.0, 1.0]]
    assert len(server.asked) == 1


def test_a_model_that_a_person_added_is_used_and_noticed(
    server: Server, embedder: SocketEmbedder
) -> None:
    assert embedder.embed(["again"])
    server.answer = 404, {"error": {"message": "no such model"}}
    with pytest.raises(ModelMissing):
        embedder.embed(["other"])
    server.rows.append({"id": "large", "role": "embedding", "installed": True})
    server.answer = 200, None
    assert embedder.name == "large"
    assert embedder.embed(["again"])
    assert server.asked[-1]["model"] == "large"


@pytest.mark.parametrize(
    ("status", "answer", "kind", "retryable"),
    [
        (503, {"error": {"message": "busy"}}, ServiceError, None),
        (429, {}, ServiceError, None),
        (400, {"error": {"message": "too long"}}, ModelError, False),
        (200, {"data": "nonsense"}, ServiceError, None),
        (200, [], ServiceError, None),
    ],
)
def test_refusals_are_told_from_absence(
    server: Server,
    embedder: SocketEmbedder,
    status: int,
    answer: object,
    kind: type,
    retryable: object,
) -> None:
    server.answer = status, answer
    with pytest.raises(kind) as caught:
        embedder.embed(["text"])
    assert getattr(caught.value, "retryable", None) == retryable


def test_nobody_there_and_nothing_installed(
    tmp_path: Path, server: Server, embedder: SocketEmbedder
) -> None:
    with pytest.raises(ServiceError):
        _ = SocketEmbedder(tmp_path / "none.sock", 1.0).name
    server.rows = []
    with pytest.raises(ModelMissing, match="exo models get"):
        _ = embedder.name


def test_silence_is_bounded(tmp_path: Path) -> None:
    mute = socket.socket(socket.AF_UNIX)
    mute.bind(str(tmp_path / "mute.sock"))
    mute.listen()
    with pytest.raises(ServiceError):
        SocketEmbedder(tmp_path / "mute.sock", 0.05).embed(["text"])
    mute.close()
