"""What clients may ask, checked. Owns turning JSON and multipart bodies into typed requests; whatever
does not fit is a BadRequest that names the field. Knows no model."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from exo.models.replies import BadRequest

ROLES = ("system", "developer", "user", "assistant", "tool")
MESSAGES = 4096  # messages in one request at most
PAUSE = 0.9  # seconds of silence that end what a person says, unless told
SOONEST = 0.5  # seconds of silence in which nobody is cut off, whatever the words
LATEST = 2.5  # seconds that words which break off are waited for


@dataclass(frozen=True)
class Call:
    """A tool call in an assistant's message; `arguments` is JSON text."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True)
class Message:
    role: str
    text: str
    calls: tuple[Call, ...] = ()

    @property
    def size(self) -> int:
        """Letters that a prompt takes for it, its marks apart."""
        return len(self.text) + sum(len(each.name) + len(each.arguments) for each in self.calls)


@dataclass(frozen=True)
class Tool:
    """A function that may be called; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class ChatRequest:
    """A chat or prefill request. `choice` is auto, none, required or a tool's name; `schema` None means
    free text, {} any JSON object."""

    messages: tuple[Message, ...]
    model: str = "main"
    stream: bool = False
    include_usage: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    choice: str = "auto"
    schema: dict[str, Any] | None = None
    cache_key: str = ""
    live: bool = True
    save_prefix: int = 0


def chat_request(value: object) -> ChatRequest:
    """Raises BadRequest."""
    body = _object(value, "the body")
    tools = tuple(_tool(each) for each in _list(body.get("tools"), "tools"))
    priority = _text(body.get("priority"), "priority", "live")
    if priority not in ("live", "aux"):
        raise BadRequest("read priority", f"{priority!r} is neither live nor aux")
    stop = body.get("stop")
    stops = [stop] if isinstance(stop, str) else _list(stop, "stop")
    if len(stops) > 16 or not all(isinstance(each, str) for each in stops):
        raise BadRequest("read stop", "it is no list of at most 16 texts")
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    options = _object(body.get("stream_options") or {}, "stream_options")
    return ChatRequest(
        messages=messages_of(body),
        model=_text(body.get("model"), "model", "main"),
        stream=bool(body.get("stream")),
        include_usage=bool(options.get("include_usage")),
        max_tokens=None if limit is None else int(_number(limit, "max_tokens", 1, 1e6)),
        temperature=_optional(body, "temperature", 0, 2),
        top_p=_optional(body, "top_p", 0, 1),
        seed=None
        if body.get("seed") is None
        else int(_number(body["seed"], "seed", -(2**63), 2**64)),
        stop=tuple(each for each in stops if each),
        tools=tools,
        choice=_choice(body.get("tool_choice"), tools),
        schema=_schema(body.get("response_format")),
        cache_key=_text(body.get("prompt_cache_key"), "prompt_cache_key", "")[:200],
        live=priority == "live",
        save_prefix=int(_number(body.get("save_prefix") or 0, "save_prefix", 0, MESSAGES)),
    )


def messages_of(body: dict[str, Any]) -> tuple[Message, ...]:
    """Raises BadRequest unless there is at least one message."""
    raw = _list(body.get("messages"), "messages")
    if not 0 < len(raw) <= MESSAGES:
        raise BadRequest("read messages", f"there are {len(raw)}; send 1 to {MESSAGES}")
    return tuple(_message(each, index) for index, each in enumerate(raw))


def texts_of(body: object) -> list[str]:
    """The `input` of an embeddings request."""
    given = _object(body, "the body").get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise BadRequest("read input", "it is neither a text nor a list of texts")
    if len(texts) > 2048:
        raise BadRequest("read input", f"{len(texts)} texts; send at most 2048 at a time")
    return texts


def multipart(content_type: str, body: bytes) -> dict[str, bytes]:
    """The fields of a multipart/form-data body (RFC 7578). Raises BadRequest."""
    boundary = ""
    for part in content_type.split(";")[1:]:
        key, _, value = part.strip().partition("=")
        if key.lower() == "boundary":
            boundary = value.strip('"')
    if not boundary or len(boundary) > 200:
        raise BadRequest("read the form", "its content type names no boundary")
    mark = b"--" + boundary.encode("latin-1", "replace")
    pieces = (b"\r\n" + body).split(b"\r\n" + mark)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise BadRequest("read the form", "its closing boundary is missing")
    fields: dict[str, bytes] = {}
    for piece in pieces[1:-1]:
        head, separator, content = piece.partition(b"\r\n\r\n")
        if not separator:
            raise BadRequest("read the form", "a part has no end of its headers")
        fields[_part_name(head)] = content
    return fields


def _part_name(head: bytes) -> str:
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            for item in value.split(";")[1:]:
                key, _, text = item.strip().partition("=")
                if key.lower() == "name":
                    return text.strip('"')
    raise BadRequest("read the form", "a part has no name")


def _message(value: object, index: int) -> Message:
    where = f"messages[{index}]"
    body = _object(value, where)
    role = body.get("role")
    if role not in ROLES:
        raise BadRequest(f"read {where}", f"role {role!r} is none of {', '.join(ROLES)}")
    calls = tuple(_call(each, where) for each in _list(body.get("tool_calls"), "tool_calls"))
    role = "system" if role == "developer" else role
    return Message(role, _content(body.get("content"), where), calls)


def _content(value: object, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    parts = _list(value, f"{where}.content")
    texts = [each.get("text") for each in parts if isinstance(each, dict)]
    if len(texts) != len(parts) or not all(isinstance(each, str) for each in texts):
        raise BadRequest(f"read {where}", "only text can be read here, no pictures and no sound")
    return "".join(str(each) for each in texts)


def _call(value: object, where: str) -> Call:
    body = _object(value, where)
    function = _object(body.get("function"), f"{where}.tool_calls.function")
    name = _text(function.get("name"), "function.name", "")
    return Call(
        name, _text(function.get("arguments"), "arguments", "{}"), _text(body.get("id"), "id", "")
    )


def _tool(value: object) -> Tool:
    body = _object(_object(value, "tools").get("function"), "tools.function")
    name = _text(body.get("name"), "function.name", "")
    if not name or len(name) > 64 or not all(c.isalnum() or c in "_-." for c in name):
        raise BadRequest("read tools", f"{name!r} is no name of a function")
    parameters = body.get("parameters") or {"type": "object", "properties": {}}
    return Tool(
        name,
        _text(body.get("description"), "description", ""),
        _object(parameters, f"parameters of {name}"),
    )


def _choice(value: object, tools: tuple[Tool, ...]) -> str:
    if value is None:
        return "auto"
    if isinstance(value, dict):
        value = _object(value.get("function"), "tool_choice.function").get("name")
        if value not in [tool.name for tool in tools]:
            raise BadRequest("read tool_choice", f"no tool is named {value!r}")
        return str(value)
    if value not in ("auto", "none", "required"):
        raise BadRequest("read tool_choice", f"{value!r} is not auto, none, required or a function")
    if value == "required" and not tools:
        raise BadRequest("read tool_choice", "a tool is required and none is given")
    return str(value)


def _schema(value: object) -> dict[str, Any] | None:
    if value is None:
        return None
    body = _object(value, "response_format")
    kind = body.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return {}
    if kind == "json_schema":
        inner = _object(body.get("json_schema"), "response_format.json_schema")
        return _object(inner.get("schema"), "response_format.json_schema.schema")
    raise BadRequest("read response_format", f"type {kind!r} is not text, json_object, json_schema")


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRequest(f"read {name}", "it is no JSON object")
    return value


def _list(value: object, name: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadRequest(f"read {name}", "it is no list")
    return value


def _text(value: object, name: str, default: str) -> str:
    if value is None:
        return default
    if not isinstance(value, str):
        raise BadRequest(f"read {name}", "it is no text")
    return value


def _number(value: object, name: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise BadRequest(f"read {name}", f"{value!r} is no number from {low:g} to {high:g}")
    return value


def _optional(body: dict[str, Any], name: str, low: float, high: float) -> float | None:
    return None if body.get(name) is None else float(_number(body[name], name, low, high))


def compact(value: object) -> str:
    """JSON text as the models were taught it: one line, a space after colons and commas."""
    return json.dumps(value, ensure_ascii=False)


@dataclass
class SpeechRequest:
    """What to say and how."""

    text: str
    voice: str = ""
    model: str = "piper"
    format: str = "wav"
    speed: float = 1.0
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pauses:
    """Seconds of silence that end what a person says: `usual`; where the words are looked at, `sooner` when
    they are surely complete, `later` when they surely break off."""

    usual: float = PAUSE
    adaptive: bool = False

    @property
    def sooner(self) -> float:
        return min(self.usual, max(SOONEST, self.usual * 2 / 3))

    @property
    def later(self) -> float:
        return max(LATEST, self.usual * 2)

    def after(self, said: str | None) -> float:
        """The silence that ends a recording whose words were judged finished, unfinished or neither."""
        if not self.adaptive or said not in ("finished", "unfinished"):
            return self.usual
        return self.sooner if said == "finished" else self.later


def pauses_of(query: dict[str, str]) -> Pauses:
    """`pause`, and `adaptive` where it may follow the words. Raises BadRequest."""
    try:
        given = float(query.get("pause", PAUSE))
    except ValueError as error:
        raise BadRequest("read pause", f"{query['pause']!r} is no number") from error
    usual = _number(given, "pause", 0.1, 10.0)
    return Pauses(usual, query.get("adaptive") == "true")


def speech_request(value: object) -> SpeechRequest:
    """Raises BadRequest."""
    body = _object(value, "the body")
    text = body.get("input")
    if not isinstance(text, str):
        raise BadRequest("read input", "it is no text")
    request = SpeechRequest(
        text=text,
        voice=_text(body.get("voice"), "voice", ""),
        model=_text(body.get("model"), "model", "piper"),
        format=_text(body.get("response_format"), "response_format", "wav"),
        speed=_number(body.get("speed") or 1.0, "speed", 0.25, 4.0),
    )
    if request.format not in ("wav", "pcm"):
        raise BadRequest("read response_format", f"{request.format!r} is neither wav nor pcm")
    if not all(c.isalnum() or c in "-+_" for c in request.voice):
        raise BadRequest("read voice", f"{request.voice!r} is no name of a voice")
    return request
