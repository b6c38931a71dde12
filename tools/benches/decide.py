"""What a decision costs and is worth: milliseconds a question through the socket at 2, 10 and 77 options, the
memory beside the embedding model alone, sparrow-decider in the same run where it is installed; with
`--data` the figures on CLINC150, which is not ours to ship."""

from __future__ import annotations

import importlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.base.unix import get, post
from exo.core.decide.live import READ
from exo.tools.bench import Figure, Say
from exo.tools.supervisor import Supervisor

Pick = Callable[[str, dict[str, str]], str]  # (state, options) -> the option chosen
COUNTS = (2, 10, 77)
STATES = (
    "wake me at half past six tomorrow",
    "what did I say about the boiler last spring",
    "no, I meant the other dentist",
    "from now on keep your answers short",
    "the spare key is with the neighbour",
)
TOPICS = [
    "alarm",
    "boiler",
    "dentist",
    "garden",
    "music",
    "travel",
    "money",
    "health",
    "recipe",
    "weather",
    "school",
    "letter",
]


def run(rounds: int, say: Say, data: str = "") -> Iterator[Figure]:
    """`rounds` questions at each size (default 40)."""
    rounds = rounds or 40
    peer = _peer(say)
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        home = Home(Path(folder)).make()
        with Supervisor(home, ["models"]) as services:
            services.wait_ready()
            yield from _cost(home, rounds, say)
            if data:
                yield from _worth(home, data, peer, say)
    if peer is not None:
        for count in COUNTS:
            options = _options(count)
            times = [_timed(partial(peer, state, options)) for state in _states(rounds)]
            yield Figure(f"sparrow-decider, {count} options, p50", statistics.median(times), "ms")


def _cost(home: Home, rounds: int, say: Say) -> Iterator[Figure]:
    for state in _states(50):  # warm, and large enough inputs that the heap has its shape
        _post(home, "/v1/embeddings", {"input": [state]})
    before = float(get(home.models_socket, "/health")["rss_mb"])
    bodies = [{"input": [state]} for state in _states(rounds)]
    alone = [_timed(partial(_post, home, "/v1/embeddings", body)) for body in bodies]
    yield Figure("embedding of the state alone, p50", statistics.median(alone), "ms")
    for count in COUNTS:
        say(f"{count} options")
        options = _options(count)
        first = _timed(partial(ask, home, "warm", options))
        yield Figure(f"{count} options, the first time", first, "ms")
        times = [_timed(partial(ask, home, state, options)) for state in _states(rounds)]
        yield Figure(f"{count} options, p50", statistics.median(times), "ms")
    asked = {each.name: each.wire() | {"mechanism": each.name} for each in READ}
    times = []
    for state in _states(rounds):
        body = {"state": state, "questions": asked}
        times.append(_timed(partial(_post, home, "/v1/decide", body)))
    yield Figure("the three questions of a message, one pass, p50", statistics.median(times), "ms")
    after = float(get(home.models_socket, "/health")["rss_mb"])
    yield Figure("memory over the embedding model alone", after - before, "MB", "< 10")


def _worth(home: Home, data: str, peer: Pick | None, say: Say) -> Iterator[Figure]:
    say("a head for CLINC150's intents; its sentences are embedded once and kept")
    from exo.models.decide import PACKAGE
    from exo.models.training.evaluate import OPTIONS, head_figures, unseen

    aims = {"in-scope accuracy": "0.94", "out-of-scope recall": "0.72", "ece": "< 0.02"}
    for name, value in head_figures(Path(data)).items():
        yield Figure(f"CLINC150 test, head: {name}", value, "", aims.get(name.split(" (")[0], ""))
    say(f"{OPTIONS} bare names of intents, chosen from without labels")
    words = f"CLINC150 test, {OPTIONS} bare names:"
    # exo-decide has seen these intents in training: what it does on unseen ones stands in exo-decide.json
    told = json.loads((PACKAGE / "exo-decide.json").read_text())
    for name, value in told["match"]["unseen_of_50"].items():
        yield Figure(f"CLINC150 val, 50 unseen intents, {name}", value, "")
    for name, value in told["match"]["plain_cosine_of_50"].items():
        yield Figure(f"the same by the plain cosine, {name}", value, "")
    yield Figure(
        f"{words} exo-decide (intents seen)", unseen(Path(data), lambda s, o: ask(home, s, o)), ""
    )
    if peer is not None:
        yield Figure(f"{words} sparrow-decider", unseen(Path(data), peer), "")


def ask(home: Home, state: str, options: dict[str, str]) -> str:
    """The option that exo-decide picks without a head."""
    criteria = {name: text or None for name, text in options.items()}
    question = {"type": "choice", "criteria": criteria}
    found = _post(home, "/v1/decide", {"state": state, "questions": {"q": question}})
    return str(found["answers"]["q"]["choice"])


def _peer(say: Say) -> Pick | None:
    try:
        decider: Any = importlib.import_module("sparrow_decider").Decider.load()
    except ImportError as error:
        say(f"without sparrow-decider: {error}; install the extra `bench`")
        return None

    def pick(state: str, options: dict[str, str]) -> str:
        criteria = {name: text or name.replace("_", " ") for name, text in options.items()}
        question = {"type": "choice", "instructions": "What is wanted?", "criteria": criteria}
        return str(decider.ask(state, {"q": question})["q"]["choice"])

    return pick


def _options(count: int) -> dict[str, str]:
    return {
        f"{TOPICS[n % len(TOPICS)]} {n}": f"asks about {TOPICS[n % len(TOPICS)]}"
        for n in range(count)
    }


def _states(count: int) -> list[str]:
    return [f"{STATES[n % len(STATES)]} {n}" for n in range(count)]


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def _post(home: Home, target: str, body: dict[str, Any]) -> dict[str, Any]:
    status, raw = post(home.models_socket, target, body, timeout=60.0)
    if status != 200:
        raise ExoError(f"bench decide, {target}", raw.decode("utf-8", "replace")[:200])
    return dict(json.loads(raw))
