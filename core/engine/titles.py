"""Titles for sessions, worded by the aux model while nobody waits.

Until then, and when the model is no help, a session is called by its first words. Invariant: no title
is worded while a turn runs; a turn that starts stops the wording of one."""

from __future__ import annotations

import asyncio
import contextlib

from exo.core.base.errors import ExoError
from exo.core.engine.sessions import Sessions, title_of
from exo.core.protocol.schema import SessionUpdated
from exo.core.router.model import Model, Request, Text
from exo.core.server.hub import Hub

_HEAD = 600  # characters of the first exchange that the model sees, of each side
_STRIP = " \t\"'`*#_„“”«»‘’‹›「」『』《》.。:：-–—"


class Titles:
    """`rest` when nothing runs, `pause` when something starts."""

    def __init__(
        self, sessions: Sessions, hub: Hub, model: Model, prompt: str, idle: float
    ) -> None:
        """`idle` is the seconds of rest before a title is worded; 0 for never."""
        self._sessions, self._hub, self._model = sessions, hub, model
        self._prompt, self._idle = prompt, idle
        self._task: asyncio.Task[None] | None = None

    def rest(self) -> None:
        """Word what has no title yet, once `idle` seconds have passed undisturbed."""
        self.pause()
        if self._idle:
            self._task = asyncio.create_task(self._run())

    def pause(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        self.pause()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        await asyncio.sleep(self._idle)
        with contextlib.suppress(ExoError):  # the first words stay; the next rest tries again
            for session in self._sessions.untitled():
                title = clean(await self._word(session))
                with self._hub.commit() as add:
                    self._sessions.retitle(session, title)
                    if title:
                        add(session, SessionUpdated(title))

    async def _word(self, session: str) -> str:
        """What the model answers, "" for a session without words."""
        said = [m for m in self._sessions.messages(session) if m.text and m.role != "tool"][:2]
        if not said:
            return ""
        talk = "\n".join(f"{m.role}: {m.text[:_HEAD]}" for m in said)
        messages = [
            {"role": "system", "content": self._prompt},
            {"role": "user", "content": f"{talk}\n\nTitle:"},
        ]
        text = ""
        async for event in self._model.stream("aux", Request(messages, max_tokens=24)):
            if isinstance(event, Text):
                text += event.text
        return text


def clean(text: str) -> str:
    """One line of at most 40 characters without quotes and marks; "" when nothing is left."""
    lines = (_one(line) for line in text.splitlines())
    return next((title_of(line) for line in lines if line), "")


def _one(line: str) -> str:
    line = "".join(c for c in line if c.isprintable()).strip(_STRIP)
    head, _, rest = line.partition(":")
    if head.lower() in ("title", "titel", "titre", "título"):
        line = rest
    return "".join(c for c in line if c not in '"“”„«»').strip(_STRIP)
