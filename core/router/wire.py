"""One request to one provider over HTTP: streams its answer, turns every failure into a ModelError. Owns
connections and silence; the shape of requests and answers is each transport's, and which provider is
asked is the router's.

Invariant: a stream gives events, then either one Done or one ModelError, wherever it breaks off. A key is
in the headers of its request and nowhere else. httpx is imported on the first request, because it costs
12 MB of memory that an idle daemon does not need."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from exo.core.base import errors
from exo.core.base.clock import Clock
from exo.core.base.errors import ModelError, ModelGone
from exo.core.base.unix import short_path
from exo.core.protocol.schema import Usage
from exo.core.router.catalog import ModelRow, Provider
from exo.core.router.cooldown import WRONG, Key, retry_after
from exo.core.router.model import Done, ModelEvent, RawCall, Reason, Request
from exo.core.router.sse import EventReader

if TYPE_CHECKING:
    import httpx

Json = dict[str, Any]
Kind = tuple[type[ModelError], str, str]  # type, code, what to do
CONNECT = 10.0  # seconds for name, connection and TLS together
DRAIN = 0.2  # seconds for the end of a body after its last event, so that the connection is kept
HEAD = 64 * 1024  # bytes of an answer that is no stream of events: enough for any error page

_STATUS = {  # words for an error that comes without an HTTP status of its own
    "invalid_request_error": 400,
    "authentication_error": 401,
    "insufficient_quota": 402,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "busy": 429,
    "overloaded_error": 529,
}
_NO_EVENT = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
_OVERFLOW = re.compile(
    r"context.?(length|window|size|overflow)|maximum context|exceed_context|prompt is too long"
    r"|input is too long|too many (input )?tokens|reduce the length",
    re.I,
)


class Reply:
    """Puts the events of an answer together. `read` gets the data of one event; each transport has
    its own."""

    def __init__(self, row: ModelRow) -> None:
        self._row = row
        self._usage = Usage()
        self.calls: list[RawCall] = []  # as far as they have come
        self.reason: Reason | None = None  # once the model said why it stopped
        self.closed = False  # nothing more will come

    def read(self, data: str) -> list[ModelEvent]:
        """Raises Refusal for an error, ValueError and its like for what is no event of this kind."""
        raise NotImplementedError

    @property
    def whole(self) -> bool:
        """Whether a stream that ends here ends well."""
        return bool(self.reason) or self.closed

    def done(self) -> Done:
        for call in self.calls:
            call.arguments = call.arguments or "{}"
        ended = self.reason if self.reason in ("length", "refused") else "end"
        return Done("calls" if self.calls else ended, self.calls, self._usage)

    def count(
        self, prompt: int, completion: int, cached: int, written: int, cost: float | None = None
    ) -> None:
        """Note the usage; where the provider says no cost, it is computed from the list price."""
        if cost is None:
            cost = self._row.cost(prompt, completion, cached, written)
        self._usage = Usage(prompt, completion, cached, cost)


class Refusal(Exception):
    """An error that the provider wrote into its answer."""

    def __init__(self, error: Any) -> None:
        super().__init__("refused")
        self.error = error


@dataclass
class Transport:
    """One provider. Subclasses say how a request looks and how an answer reads. `_connect` replaces the
    network, for tests."""

    path: ClassVar[str]
    reply: ClassVar[type[Reply]]
    provider: Provider
    _state: Path
    _silence: float
    _clock: Clock
    _connect: httpx.AsyncBaseTransport | None = None
    _client: httpx.AsyncClient | None = None
    _keep: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __post_init__(self) -> None:
        self._silence = self.provider.silence or self._silence
        self._what = f"ask the model server {self.provider.name}"
        self._do = "see whether it runs and the network is there"
        if self.provider.socket:
            self._do = "it is started again by itself; ask again, or run `exo doctor`"

    def headers(self, key: Key) -> dict[str, str]:
        raise NotImplementedError

    def body(self, model: str, request: Request, role: str) -> dict[str, Any]:
        raise NotImplementedError

    async def stream(
        self, model: str, request: Request, role: str, key: Key
    ) -> AsyncGenerator[ModelEvent, None]:
        """Yield the reply's events, exactly one Done last. Raises ModelError."""
        reply, events = self.reply(self.provider.model(model)), EventReader()
        head = b""
        with self._readable(key, reply):
            body = self.body(model, request, role)
            async with self._send("POST", self.path, key, body) as answer:
                if not answer.is_success:
                    raise await self._refused(answer, key)
                pieces = answer.aiter_bytes()
                async for piece in pieces:
                    head += piece[: HEAD - len(head)]
                    for event in _events(reply, events.feed(piece)):
                        yield event
                    if reply.closed:
                        await _drain(pieces)
                        break
        if not reply.closed:
            for event in self._rest(reply, events, head, key):
                yield event
        yield reply.done()

    async def ask(self, method: str, path: str, key: Key, body: Json | None = None) -> Json:
        """A request with a plain answer. Raises ModelError."""
        with self._readable(key):
            async with self._send(method, path, key, body) as answer:
                if not answer.is_success:
                    raise await self._refused(answer, key)
                return dict(json.loads(await answer.aread()))

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        self._keep.close()

    # ---- connection ------------------------------------------------------------------------------

    def _send(
        self, method: str, path: str, key: Key, body: Json | None = None
    ) -> contextlib.AbstractAsyncContextManager[httpx.Response]:
        headers = {"content-type": "application/json", **self.headers(key)}
        # what a tool printed may hold half a character pair, which UTF-8 cannot
        raw = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace") if body else None
        return self._http().stream(method, path, content=raw, headers=headers)

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            network = self._connect
            if network is None and self.provider.socket:
                name = self._keep.enter_context(short_path(self._state / self.provider.socket))
                network = httpx.AsyncHTTPTransport(uds=name)
            self._client = httpx.AsyncClient(
                transport=network,
                base_url=self.provider.base,
                timeout=httpx.Timeout(self._silence, connect=CONNECT, pool=None),
                trust_env=self.provider.base.startswith("https"),  # a proxy is for the outside
            )
        return self._client

    # ---- failures --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _readable(self, key: Key, reply: Reply | None = None) -> Iterator[None]:
        """Failures of the network as ModelErrors; one after the model said why it stopped is none."""
        import httpx

        try:
            yield
        except Refusal as refusal:
            raise self._fault(refusal.error, None, None, key) from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, *_NO_EVENT) as error:
            if isinstance(error, ModelError):
                raise
            if reply is not None and reply.whole:
                return
            if isinstance(error, httpx.ReadTimeout):
                why = f"it said nothing for {self._silence:g} s"
                raise self._gone(why, key, errors.ModelSilent) from None
            unread = "its answer does not read: " if isinstance(error, _NO_EVENT) else ""
            raise self._gone(unread + (str(error) or type(error).__name__), key) from None

    def _gone(self, why: str, key: Key, kind: type[ModelGone] = ModelGone) -> ModelGone:
        return kind(self._what, _clean(why, key), self._do)

    def _rest(self, reply: Reply, events: EventReader, head: bytes, key: Key) -> list[ModelEvent]:
        """The end of a stream that no last event closed. Raises ModelError unless the model had said
        why it stopped."""
        # a body without any event: an error, a whole answer, or a page of somebody else
        rest = events.end() if events.seen else [head.decode("utf-8", "replace")]
        out: list[ModelEvent] = []
        with self._readable(key), contextlib.suppress(*_NO_EVENT):
            out = list(_events(reply, rest))
        if reply.whole:
            return out
        text = _words(head.decode("utf-8", "replace"))
        if text and not events.seen:
            raise self._gone(f"it sent no stream of events but {text!r}", key)
        raise self._gone("its answer broke off", key)

    async def _refused(self, answer: httpx.Response, key: Key) -> ModelError:
        raw = b""
        with contextlib.suppress(Exception):  # a broken page still has its status
            async for piece in answer.aiter_bytes():
                raw += piece
                if len(raw) > HEAD:
                    break
        text = raw.decode("utf-8", "replace")
        try:
            error = json.loads(text)
        except ValueError:
            error = _words(text)
        seconds = retry_after(answer.headers, text, self._clock.now_ms())
        return self._fault(error, answer.status_code, seconds, key)

    def _fault(self, error: Any, status: int | None, seconds: float | None, key: Key) -> ModelError:
        """The provider's error, typed. `status` None: it came without one, its words tell."""
        if isinstance(error, list):
            error = error[0] if error else ""
        inner = error.get("error") or error if isinstance(error, dict) else error
        error = inner if isinstance(inner, dict) else {"message": str(inner)}
        words = [str(error.get(name)).lower() for name in ("code", "type", "status")]
        text = _clean(str(error.get("message") or error.get("detail") or words[1]), key)
        if status is not None and not self.provider.socket:
            text = f"HTTP {status}: {text}"
        if status is None:
            numbers = [int(word) for word in words if re.fullmatch("[45][0-9]{2}", word)]
            numbers += [_STATUS[word] for word in words if word in _STATUS]
            status = numbers[0] if numbers else 500
        kind, code, do = _kind(status, words, text, seconds)
        if code == "key_refused" and key.variable:
            do = f"check the key in {key.variable}"
        elif self.provider.socket and kind is ModelGone:
            do = self._do
        fault = kind(self._what, text, do, code=code)
        fault.status, fault.retry_after = status, seconds
        return fault


def _kind(status: int, words: list[str], text: str, seconds: float | None) -> Kind:
    """What a provider's error is. A limit that says when it is lifted is no account
    that is used up."""
    if "model_missing" in words or "model_corrupt" in words or status == 404:
        return errors.ModelMissing, "", ""
    told = status in (400, 422, 500) and _OVERFLOW.search(" ".join([*words, text]))
    if told or status == 413:  # llama.cpp says 500
        return errors.ContextOverflow, "", ""
    quota = seconds is None and status not in WRONG and "quota" in " ".join([*words, text]).lower()
    if status == 402 or quota:
        return ModelError, "quota", "see the account's balance and limits"
    if status in (401, 403):
        return ModelError, "key_refused", ""
    gone = ModelGone if status >= 500 or status in (408, 409, 425) else ModelError
    return (errors.ModelBusy if status == 429 else gone), "", ""


def _clean(text: str, key: Key) -> str:
    """One line of at most 500 characters without the key, whole or in part."""
    if key.value:
        text = text.replace(key.value, "[key]")
    if len(key.value) >= 16:  # some servers quote the start of a key
        text = re.sub(re.escape(key.value[:8]) + r"[^\s\"',;]*", "[key]", text)
    return " ".join(text.split())[:500]


def _words(page: str) -> str:
    """What a page says, without its marks."""
    text = re.sub(r"(?is)<(script|style).*?</\1>|<[^>]*>", " ", page)
    return " ".join(text.split())[:200]


def _events(reply: Reply, found: list[str]) -> Iterator[ModelEvent]:
    """What follows the end of a reply is not read."""
    for data in found:
        if data.strip() and not reply.closed:
            yield from reply.read(data)


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN):
            async for _ in pieces:
                pass
