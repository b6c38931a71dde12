"""The HTTP routes of exo-models (OpenAI's, and a few more). Owns how requests and answers look on the
wire; what computes stands behind Backend.

Invariant: every refused request gets {"error": {"code", "message", "type"}}; after a stream has begun
an error is its last event."""

from __future__ import annotations

import base64
import os
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from exo.core.base.errors import ExoError
from exo.core.base.httpd import HttpError, Request, Response, json_response
from exo.models.audio import wav_bytes
from exo.models.backend import (
    Backend,
    CallArguments,
    CallOpened,
    ChatEvent,
    Finished,
    Heard,
    Listener,
    Text,
)
from exo.models.questions import decide_request, fit_request
from exo.models.replies import (
    DONE,
    BadRequest,
    ChatShape,
    error_data,
    error_reply,
    event,
    tool_call,
)
from exo.models.requests import (
    ChatRequest,
    Pauses,
    chat_request,
    messages_of,
    multipart,
    pauses_of,
    speech_request,
    texts_of,
)

BODY_LIMIT = 48 * 1024 * 1024  # two minutes of 48 kHz 32-bit stereo
VOICE_STALL = 120.0  # seconds that a stream of sound may pause


class Routes:
    """The handler for HttpServer."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._table: dict[tuple[str, str], Callable[[Request], Awaitable[Response]]] = {
            ("GET", "/health"): self._health,
            ("GET", "/v1/models"): self._models,
            ("POST", "/v1/chat/completions"): self._chat,
            ("POST", "/v1/prefill"): self._prefill,
            ("POST", "/v1/tokenize"): self._tokenize,
            ("POST", "/v1/embeddings"): self._embeddings,
            ("POST", "/v1/decide"): self._decide,
            ("POST", "/v1/systemone"): self._decide,
            ("POST", "/v1/decide/fit"): self._fit,
            ("POST", "/v1/audio/transcriptions"): self._transcriptions,
            ("POST", "/v1/audio/activity"): self._activity,
            ("POST", "/v1/audio/speech"): self._speech,
        }

    async def __call__(self, request: Request) -> Response:
        handler = self._table.get((request.method, request.path))
        try:
            if handler is None:
                raise self._unknown(request)
            return await handler(request)
        except (ExoError, HttpError) as error:
            return error_reply(error)

    def _unknown(self, request: Request) -> HttpError:
        if any(path == request.path for _, path in self._table):
            return HttpError(405, "bad_method", f"{request.path} does not take {request.method}")
        return HttpError(404, "not_found", f"there is no {request.path}")

    async def _health(self, request: Request) -> Response:
        return json_response({"status": "ok", "pid": os.getpid(), **self.backend.health()})

    async def _models(self, request: Request) -> Response:
        return json_response({"object": "list", "data": self.backend.models()})

    async def _chat(self, request: Request) -> Response:
        asked = chat_request(await request.json())
        events = self.backend.chat(asked)
        # the first event is awaited here, so that a refusal still has a status of its own
        try:
            first = await anext(events)
        except BaseException:
            await _close(events)
            raise
        shape = ChatShape(asked.model)
        if asked.stream:
            return Response(_stream(shape, asked, first, events), 200, "text/event-stream")
        async with aclosing(_joined(first, events)) as joined:  # type: ignore[type-var]
            return await _whole(shape, joined)

    async def _prefill(self, request: Request) -> Response:
        total, evaluated, cached = await self.backend.prefill(chat_request(await request.json()))
        return json_response(
            {"prompt_tokens": total, "evaluated_tokens": evaluated, "cached_tokens": cached}
        )

    async def _tokenize(self, request: Request) -> Response:
        body = await request.json()
        if not isinstance(body, dict) or not ("messages" in body or "text" in body):
            raise BadRequest("read the body", "it has neither messages nor text")
        model, text = str(body.get("model") or "main"), body.get("text")
        messages = messages_of(body) if "messages" in body else None
        if messages is None and not isinstance(text, str):
            raise BadRequest("read text", "it is no text")
        tokens, window = await self.backend.tokenize(model, messages, text or "")
        return json_response({"tokens": tokens, "window": window})

    async def _embeddings(self, request: Request) -> Response:
        body = await request.json()
        texts = texts_of(body)
        assert isinstance(body, dict)  # texts_of looked
        form = body.get("encoding_format") or "float"
        if form not in ("float", "base64"):
            raise BadRequest("read encoding_format", f"{form!r} is neither float nor base64")
        model = str(body.get("model") or "embedding")
        vectors, tokens, cut = await self.backend.embed(model, texts)
        data = [
            {"object": "embedding", "index": index, "embedding": _vector(vector, form)}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens, "truncated": cut}
        return json_response({"object": "list", "data": data, "model": model, "usage": usage})

    async def _decide(self, request: Request) -> Response:
        answers = await self.backend.decide(decide_request(await request.json()))
        return json_response({"model": "exo-decide", "answers": answers})

    async def _fit(self, request: Request) -> Response:
        return json_response(await self.backend.fit(fit_request(await request.json())))

    async def _transcriptions(self, request: Request) -> Response:
        if request.query.get("stream") == "true":
            return await self._listened(request)
        heard, form = await self._hear(request, words=True)
        if form == "text":
            return Response(heard.text.encode(), 200, "text/plain; charset=utf-8")
        return json_response({"text": heard.text, "language": heard.language, **_spans(heard)})

    async def _activity(self, request: Request) -> Response:
        heard, _ = await self._hear(request, words=False)
        return json_response(_spans(heard))

    async def _listened(self, request: Request) -> Response:
        """Raw sound up, events down at the same time: when somebody begins to speak, stops, the text."""
        pauses, pieces = pauses_of(request.query), _raw(request)
        if pieces is None:
            raise BadRequest("stream a transcription", "it is no audio/pcm", "send raw samples")
        # a model that is missing is refused here, with a status of its own
        listener = await self.backend.listen(request.query.get("language", ""), True)
        return Response(_moments(listener, pieces, pauses), 200, "text/event-stream")

    async def _hear(self, request: Request, words: bool) -> tuple[Heard, str]:
        """What was said, and the response_format asked for."""
        fields: dict[str, bytes] = {}
        pieces = _raw(request)
        if pieces is None:
            raw = await request.body()
            kind = request.headers.get("content-type", "").lower()
            if kind.startswith("multipart/form-data"):
                # the header as it came: a boundary is case-sensitive
                fields = multipart(request.headers["content-type"], raw)
                if "file" not in fields:
                    raise BadRequest("read the form", "it has no field named file")
                raw = fields["file"]
            pieces = _one(await self.backend.read_wav(raw))
        language = fields.get("language", b"").decode("utf-8", "replace")
        language = language or request.query.get("language", "")
        listener = await self.backend.listen(language, words)
        try:
            async for piece in pieces:
                await listener.feed(piece)
            heard = await listener.finish()
        finally:
            await listener.close()
        form = fields.get("response_format", b"json").decode("utf-8", "replace")
        if form not in ("json", "text", "verbose_json"):
            raise BadRequest("read response_format", f"{form!r} is not json, text or verbose_json")
        return heard, form

    async def _speech(self, request: Request) -> Response:
        asked = speech_request(await request.json())
        rate, pieces = await self.backend.speak(asked)
        headers = {"X-Sample-Rate": str(rate)}
        if asked.format == "pcm":
            return Response(pieces, 200, f"audio/pcm;rate={rate}", headers)
        pcm = bytearray()
        async with aclosing(pieces) as each:  # type: ignore[type-var]
            async for piece in each:
                pcm += piece
        return Response(wav_bytes(bytes(pcm), rate), 200, "audio/wav", headers)


async def _close(events: AsyncIterator[Any]) -> None:
    if close := getattr(events, "aclose", None):
        await close()


def _raw(request: Request) -> AsyncIterator[bytes] | None:
    """The samples of a body of audio/pcm as they arrive; None for a body of another kind."""
    kind = request.headers.get("content-type", "").lower()
    if not kind.startswith("audio/pcm"):
        return None
    parameters = [each.strip() for each in kind.split(";")[1:]]
    if any(each.startswith("rate=") and each != "rate=16000" for each in parameters):
        raise BadRequest("read audio/pcm", "its rate is not 16000", "send a WAV instead")
    return request.chunks(VOICE_STALL)


async def _moments(
    listener: Listener, pieces: AsyncIterator[bytes], pauses: Pauses
) -> AsyncIterator[bytes]:
    """Events of one recording; OpenAI's names where it has one."""
    speaking = False
    try:
        async for piece in pieces:
            await listener.feed(piece)
            if listener.speaking(pauses) != speaking:
                speaking = not speaking
                yield event({"type": "speech.started" if speaking else "speech.ended"})
        heard = await listener.finish()
        more = {"text": heard.text, "language": heard.language, **_spans(heard)}
        yield event({"type": "transcript.text.done", **more})
    except (ExoError, HttpError) as error:
        yield event(error_data(error)[1])
    finally:
        await listener.close()


async def _one(piece: bytes) -> AsyncIterator[bytes]:
    yield piece


async def _joined(first: ChatEvent, rest: AsyncIterator[ChatEvent]) -> AsyncIterator[ChatEvent]:
    try:
        yield first
        async for each in rest:
            yield each
    finally:
        await _close(rest)


async def _stream(
    shape: ChatShape, asked: ChatRequest, first: ChatEvent, rest: AsyncIterator[ChatEvent]
) -> AsyncIterator[bytes]:
    """The chunks as OpenAI sends them; closing this closes the model's side."""
    try:
        yield shape.chunk({"role": "assistant", "content": ""})
        async with aclosing(_joined(first, rest)) as events:  # type: ignore[type-var]
            async for each in events:
                if isinstance(each, Text):
                    yield shape.chunk({"content": each.text})
                elif isinstance(each, CallOpened):
                    call = tool_call(each.index, each.name, "", each.id)
                    yield shape.chunk({"tool_calls": [call]})
                elif isinstance(each, CallArguments):
                    part = {"index": each.index, "function": {"arguments": each.text}}
                    yield shape.chunk({"tool_calls": [part]})
                else:
                    yield shape.chunk({}, each.reason)
                    if asked.include_usage:
                        yield shape.usage_chunk(each.usage)
                    yield DONE
    except (ExoError, HttpError) as error:
        yield event(error_data(error)[1])


async def _whole(shape: ChatShape, events: AsyncIterator[ChatEvent]) -> Response:
    text: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    last: Finished | None = None
    async for each in events:
        if isinstance(each, Text):
            text.append(each.text)
        elif isinstance(each, CallOpened):
            calls[each.index] = tool_call(each.index, each.name, "", each.id)
        elif isinstance(each, CallArguments):
            calls[each.index]["function"]["arguments"] += each.text
        else:
            last = each
    if last is None:
        raise ExoError("write the reply", "the model ended without a word why")
    return Response(shape.whole("".join(text), list(calls.values()), last.reason, last.usage))


def _spans(heard: Heard) -> dict[str, Any]:
    speech = [{"start": round(start, 3), "end": round(end, 3)} for start, end in heard.speech]
    return {"duration": round(heard.duration, 3), "speech": speech}


def _vector(vector: list[float], form: str) -> list[float] | str:
    if form == "float":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
