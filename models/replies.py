"""The OpenAI shapes of what the server says, and the one place where an error becomes a status.
Knows no model; the fake server speaks through it as the real one does."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from typing import Any

from exo.core.base.errors import (
    ContextOverflow,
    ExoError,
    ModelBusy,
    ModelMissing,
    StorageError,
)
from exo.core.base.httpd import HttpError, Response
from exo.models.audio import BadAudio
from exo.models.catalog import CatalogError, ModelCorrupt, ModelTooLarge

# first match wins: (class, status, code, OpenAI's type)
_STATUS: tuple[tuple[type[Exception], int, str, str], ...] = (
    (ContextOverflow, 400, "context_overflow", "invalid_request_error"),
    (ModelCorrupt, 503, "model_corrupt", "server_error"),
    (ModelMissing, 503, "model_missing", "server_error"),
    (ModelTooLarge, 503, "model_too_large", "server_error"),
    (ModelBusy, 429, "busy", "rate_limit_error"),
    (CatalogError, 404, "not_found", "invalid_request_error"),
    (BadAudio, 400, "bad_audio", "invalid_request_error"),
    (StorageError, 507, "storage", "server_error"),
    (ExoError, 500, "internal", "server_error"),
)


class BadRequest(ExoError, ValueError):
    """A request that no server could answer."""

    code = "bad_request"


@dataclass
class Usage:
    """Tokens of one request; `cached` of the prompt were not computed again."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def data(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }


def error_data(error: Exception) -> tuple[int, dict[str, Any]]:
    """Status and body for any error."""
    if isinstance(error, HttpError):
        status, code, kind = error.status, error.code, "invalid_request_error"
        code = "bad_request" if status == 400 and code.startswith("bad_") else code
        return status, {"error": {"code": code, "message": error.message, "type": kind}}
    if isinstance(error, BadRequest):
        return 400, _error("bad_request", str(error), "invalid_request_error")
    for kind_, status, code, type_ in _STATUS:
        if isinstance(error, kind_):
            return status, _error(code, str(error), type_)
    return 500, _error("internal", f"{type(error).__name__}: {error}", "server_error")


def _error(code: str, message: str, kind: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "type": kind}}


def error_reply(error: Exception) -> Response:
    status, body = error_data(error)
    headers = {"Retry-After": "1"} if status == 429 else {}
    return Response(dump(body), status, headers=headers)


def dump(value: object) -> bytes:
    """JSON as bytes; what a model wrote may hold half a character pair, which UTF-8 cannot."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def event(value: object) -> bytes:
    """One Server-Sent Event."""
    return b"data: " + dump(value) + b"\n\n"


DONE = b"data: [DONE]\n\n"


class ChatShape:
    """Names one completion and words its chunks and its whole."""

    def __init__(self, model: str) -> None:
        self.id, self.created = f"chatcmpl-{secrets.token_hex(12)}", int(time.time())
        self.model = model

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return event({**self._head("chat.completion.chunk"), "choices": [choice]})

    def usage_chunk(self, usage: Usage) -> bytes:
        head = self._head("chat.completion.chunk")
        return event({**head, "choices": [], "usage": usage.data()})

    def whole(self, text: str, calls: list[dict[str, Any]], finish: str, usage: Usage) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": finish}
        head = self._head("chat.completion")
        return dump({**head, "choices": [choice], "usage": usage.data()})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def tool_call(index: int, name: str, arguments: str, id_: str = "") -> dict[str, Any]:
    """One call as OpenAI words it; `arguments` is JSON text."""
    return {
        "index": index,
        "id": id_ or f"call_{secrets.token_hex(8)}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
