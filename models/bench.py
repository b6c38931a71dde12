"""What the installed models do on this machine, beside the bare libraries in the same run. Owns the
measuring alone: figures are printed and never tested, and what compares is a ratio."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.models.audio import from_pcm, resample, to_pcm
from exo.models.backend import Finished, Text
from exo.models.catalog import Row
from exo.models.local import LocalBackend
from exo.models.requests import ChatRequest, Message, SpeechRequest

PROMPT = "Tell me in two or three sentences how bread is made from flour, water, salt and yeast. "
SPEECH = "The quick brown fox jumps over the lazy dog, and then it goes home to sleep."
TOKENS = 64


def bench() -> list[dict[str, Any]]:
    """Rows of {name, value, unit, note}. Models that are not here are left out."""
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        return asyncio.run(_bench(Home(Path(folder)).make()))


async def _bench(home: Home) -> list[dict[str, Any]]:
    backend = LocalBackend(home, Settings(home.settings_file))
    rows: list[dict[str, Any]] = []
    try:
        for role, measure in (
            ("main", _chat),
            ("embedding", _embedding),
            ("speech", _speech),
            ("transcription", _transcription),
        ):
            row = backend.catalog.resolve(role)
            if backend.catalog.present(row):
                rows += await measure(backend, row)
        for each in backend.health()["loaded"]:
            rows.append(_row(f"{each['name']}: load", each["load_s"], "s"))
            rows.append(_row(f"{each['name']}: memory", each["ram_mb"], "MB"))
        rows.append(_row("process: resident with all of them", backend.health()["rss_mb"], "MB"))
    finally:
        await backend.close()
    return rows


async def _chat(backend: LocalBackend, row: Row) -> list[dict[str, Any]]:
    await backend.tokenize("main", None, "load")
    text = PROMPT * 16
    messages = (Message("system", text), Message("user", PROMPT))
    began = time.monotonic()
    tokens, _, _ = await backend.prefill(ChatRequest(messages, cache_key="a"))
    reading = tokens / (time.monotonic() - began)
    # the same prompt of the library alone, in this process, with the same threads
    first, speed, cached = await _reply(
        backend, ChatRequest(messages, cache_key="a", max_tokens=TOKENS, temperature=0)
    )
    bare = await asyncio.to_thread(_bare, backend, row, messages)
    name = row.name
    return [
        _row(
            f"{name}: prompt",
            reading,
            "tokens/s",
            f"{reading / bare['reading']:.2f} of the bare library",
        ),
        _row(
            f"{name}: reply",
            speed,
            "tokens/s",
            f"{speed / bare['writing']:.2f} of the bare library",
        ),
        _row(f"{name}: first token, prefix kept", first, "s", f"{cached} of {tokens} tokens kept"),
        _row(f"{name}: first token, bare and cold", bare["first"], "s"),
    ]


async def _reply(backend: LocalBackend, request: ChatRequest) -> tuple[float, float, int]:
    """(seconds to the first text, tokens a second after it, cached tokens)."""
    began, first = time.monotonic(), 0.0
    async for event in backend.chat(request):
        if isinstance(event, Text) and not first:
            first = time.monotonic()
        if isinstance(event, Finished):
            wrote = max(1, event.usage.completion - 1) / max(1e-6, time.monotonic() - first)
            return first - began, wrote, event.usage.cached
    return 0.0, 0.0, 0


def _bare(backend: LocalBackend, row: Row, messages: tuple[Message, ...]) -> dict[str, float]:
    """llama_cpp.Llama itself: the same prompt, its own chat template and sampler."""
    import llama_cpp

    model = llama_cpp.Llama(
        str(backend.catalog.path(row) / row.file(".gguf")),
        n_ctx=4096,
        n_threads=backend.threads,
        n_threads_batch=backend.threads,
        verbose=False,
    )
    try:
        asked: Any = [{"role": each.role, "content": each.text} for each in messages]
        began, first, count = time.monotonic(), 0.0, 0
        for piece in model.create_chat_completion(
            asked, max_tokens=TOKENS, temperature=0.0, stream=True
        ):
            if piece["choices"][0]["delta"].get("content"):  # type: ignore[index, union-attr]
                first, count = first or time.monotonic(), count + 1
        ended = time.monotonic()
        prompt = model.n_tokens - count
        return {
            "reading": prompt / (first - began),
            "writing": max(1, count - 1) / max(1e-6, ended - first),
            "first": first - began,
        }
    finally:
        model.close()


async def _embedding(backend: LocalBackend, row: Row) -> list[dict[str, Any]]:
    await backend.embed("embedding", ["load"])
    began = time.monotonic()
    for _ in range(20):
        await backend.embed("embedding", [PROMPT])
    one = (time.monotonic() - began) / 20
    return [_row(f"{row.name}: one sentence", one * 1000, "ms")]


async def _speech(backend: LocalBackend, row: Row) -> list[dict[str, Any]]:
    await _said(backend, "Load.")
    began = time.monotonic()
    rate, pcm = await _said(backend, SPEECH)
    took, length = time.monotonic() - began, len(pcm) / 2 / rate
    return [_row(f"{row.name}: seconds for one of speech", took / length, "s/s")]


async def _transcription(backend: LocalBackend, row: Row) -> list[dict[str, Any]]:
    rate, pcm = await _said(backend, SPEECH)
    sound = to_pcm(resample(from_pcm(pcm), rate))
    seconds = len(sound) / 32000
    for _ in range(2):  # the first loads
        listener = await backend.listen("en", True)
        began = time.monotonic()
        await listener.feed(sound)
        heard = await listener.finish()
        took = time.monotonic() - began
        await listener.close()
    return [_row(f"{row.name}: seconds for one of speech", took / seconds, "s/s", repr(heard.text))]


async def _said(backend: LocalBackend, text: str) -> tuple[int, bytes]:
    rate, pieces = await backend.speak(SpeechRequest(text))
    return rate, b"".join([piece async for piece in _all(pieces)])


async def _all(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield piece


def _row(name: str, value: float, unit: str, note: str = "") -> dict[str, Any]:
    return {"name": name, "value": round(value, 4), "unit": unit, "note": note}
