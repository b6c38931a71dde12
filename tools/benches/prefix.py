"""How much of each request the local model really computes: over a conversation of 30 turns with tool
rounds through exod, and from a cold start with and without the prefix that was saved on disk."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exo.core.base.client import Client
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.base.unix import UnixConnection
from exo.tools.bench import Figure, Say
from exo.tools.supervisor import Supervisor
from exo.tools.turns import run_turn

TALK = (
    "What should I cook tonight?",
    "what time is it?",
    "I like the sea more than the mountains.",
    "set a timer for 20 minutes for the bread",
    "Tell me something about lighthouses.",
    "note: the spare key is with the neighbour",
)
TURNS = 30
PACK = "The person likes short answers, lives by the sea and bakes bread on Sundays. " * 32


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """One conversation, then `rounds` cold starts of each sort (default 3)."""
    rounds = rounds or 3
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        home = Home(Path(folder)).make()
        yield from _conversation(home, say)
        yield from _cold(home, rounds, say)


def _conversation(home: Home, say: Say) -> Iterator[Figure]:
    sent = cached = tools = 0
    with Supervisor(home, ["exod", "models"]) as services:
        services.wait_ready()
        client = Client(home.exod_socket, 30.0)
        session = client.call("session.create")["session"]
        for n in range(TURNS):
            outcome = run_turn(client, session, TALK[n % len(TALK)])
            if outcome.stop_reason not in ("end", "length"):
                raise ExoError("bench prefix", f"turn {n + 1}: {outcome.error}")
            sent += outcome.usage["prompt_tokens"]
            cached += outcome.usage["cached_tokens"]
            tools += len(outcome.actions)
            say(f"turn {n + 1} of {TURNS}: {outcome.usage['prompt_tokens']} tokens sent")
    yield Figure("turns, of which with a tool round", tools, f"of {TURNS}")
    yield Figure("prompt tokens sent", sent, "tokens")
    yield Figure("prompt tokens computed / sent", (sent - cached) / sent, "", "< 0.15")


def _cold(home: Home, rounds: int, say: Say) -> Iterator[Figure]:
    """First token after the process started; the model file itself is loaded beforehand, by a request
    of another conversation, so that only the prompt is compared."""
    saved = home.cache / "prefix"
    times: dict[bool, list[float]] = {True: [], False: []}
    tokens = 0
    for n in range(2 * rounds + 1):
        keep = n % 2 == 0 and n > 0
        if not keep and saved.exists():
            shutil.rmtree(saved)
        with Supervisor(home, ["models"]) as services:
            services.wait_ready()
            _first_token(home, [{"role": "user", "content": "Hello."}], "warm-up", 0)
            messages = [{"role": "system", "content": PACK}, {"role": "user", "content": "Hello."}]
            seconds, tokens = _first_token(home, messages, "cold", 1)
            if n > 0:
                times[keep].append(seconds)
            say(f"cold start {n} of {2 * rounds}: {seconds * 1000:.0f} ms, saved prefix: {keep}")
    without, with_ = sorted(times[False])[rounds // 2], sorted(times[True])[rounds // 2]
    yield Figure("tokens of the prompt of a cold start", tokens, "tokens")
    yield Figure("first token without the saved prefix", without * 1000, "ms")
    yield Figure("first token with the saved prefix", with_ * 1000, "ms")
    yield Figure("with / without", with_ / without, "x")


def _first_token(
    home: Home, messages: list[dict[str, str]], key: str, fixed: int
) -> tuple[float, int]:
    body: dict[str, Any] = {"messages": messages, "stream": True, "max_tokens": 4}
    body |= {"prompt_cache_key": key, "stream_options": {"include_usage": True}}
    if fixed:
        body["save_prefix"] = fixed
    link = UnixConnection(home.models_socket, 120.0)
    begun, first, tokens = time.monotonic(), 0.0, 0
    link.request(
        "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
    )
    for line in link.getresponse():
        if not line.startswith(b"data: {"):
            continue
        chunk = json.loads(line[6:])
        if "error" in chunk:
            raise ExoError("bench prefix", str(chunk["error"]))
        if not first and any(c["delta"].get("content") for c in chunk["choices"]):
            first = time.monotonic() - begun
        tokens = (chunk.get("usage") or {}).get("prompt_tokens", tokens)
    link.close()
    return first, tokens
