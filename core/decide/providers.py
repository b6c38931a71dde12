"""Who can be asked: exo-decide beside us, the language model there, a server of the same shape elsewhere. Owns the
wire; what leaves the device is redacted first. Invariant: `ask` returns probabilities or raises ExoError."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from exo.core.base.errors import ServiceError, SettingError
from exo.core.base.settings import Settings
from exo.core.base.unix import post
from exo.core.context.redact import redact
from exo.core.decide.question import Mechanism
from exo.core.toolbox.workers import in_thread

Answers = dict[str, dict[str, float]]  # by question; one that is missing was not answered
LONGEST = 4000  # characters of a state
MODELS, HOSTED, SLOW = 0.5, 2.0, 20.0  # seconds


class Provider(Protocol):
    """`slow` ones are not asked while a turn waits; `timeout` in seconds."""

    name: str
    timeout: float
    slow: bool

    async def ask(self, state: str, questions: Mapping[str, Mechanism], wait: float) -> Answers:
        """Raises ExoError."""


class Local:
    """exo-decide in exo-models or, as `main`, the language model there, which is slow."""

    def __init__(self, models_socket: Path, name: str = "local") -> None:
        self._socket, self.name, self.slow = models_socket, name, name == "main"
        self.timeout = SLOW if self.slow else MODELS

    async def ask(self, state: str, questions: Mapping[str, Mechanism], wait: float) -> Answers:
        asked = {name: {**each.wire(), "mechanism": name} for name, each in questions.items()}
        body = {"model": self.name, "state": state, "questions": asked}
        status, raw = await in_thread(lambda: post(self._socket, "/v1/decide", body, timeout=wait))
        return _answers(status, raw, questions)


class Hosted:
    """A server of /v1/systemone: opt-in, and given the state without secrets."""

    name = "hosted"
    timeout = HOSTED
    slow = False

    def __init__(self, url: str, key: str, model: str) -> None:
        """`key` names an environment variable, "" where the server wants none. Raises SettingError."""
        if not url:
            do = "name the server there, or take hosted out of decide.providers"
            raise SettingError("setting decide.url", "it is empty", do)
        self._url = url.rstrip("/")
        self._key = key
        self._model = model

    async def ask(self, state: str, questions: Mapping[str, Mechanism], wait: float) -> Answers:
        import httpx

        asked = {name: each.wire() for name, each in questions.items()}
        body = {"model": self._model, "state": redact(state), "questions": asked}
        key = os.environ.get(self._key, "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            async with httpx.AsyncClient(timeout=wait) as client:
                reply = await client.post(f"{self._url}/v1/systemone", json=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServiceError("ask the decision server", type(error).__name__) from error
        return _answers(reply.status_code, reply.content, questions)


def providers(settings: Settings, models_socket: Path) -> list[Provider]:
    """The person's providers in their order. Raises SettingError."""
    found: list[Provider] = []
    for name in settings.words("decide.providers"):
        if name in ("local", "main"):
            found.append(Local(models_socket, name))
        elif name == "hosted":
            told = [settings.text(f"decide.{each}") for each in ("url", "key", "model")]
            found.append(Hosted(*told))
        elif name != "rules":
            do = "name some of rules, local, hosted, main"
            raise SettingError("setting decide.providers", f"{name!r} is none", do)
    return found


def _answers(status: int, raw: bytes, questions: Mapping[str, Mechanism]) -> Answers:
    what = "ask for a decision"
    if status != 200:
        raise ServiceError(what, f"status {status}")
    try:
        answers: dict[str, Any] = json.loads(raw)["answers"]
        return {
            name: each.read(answers[name]) for name, each in questions.items() if name in answers
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ServiceError(what, f"the answer does not fit: {error}") from error
