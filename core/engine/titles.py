"""Titles for sessions, worded by the aux model while nobody waits.

Until then, and when the model is no help, a session is called by its first words. Invariant: no title
is worded while a turn runs; a turn that starts stops the wording of one."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from exo.core.base.errors import ExoError
from exo.core.engine.sessions import Sessions, title_of
from exo.core.protocol.schema import SessionUpdated
from exo.core.router.model import Model, Request, words
from exo.core.server.hub import Hub

_HEAD = 600  # characters of the first exchange that the model sees, of each side
_STRIP = " \t\"'`*#_„“”«»‘’‹›「」『』《》.。:：-–—"


async def word(sessions: Sessions, hub: Hub, model: Model, idle: float) -> None:
    """Word what has no title yet, once `idle` seconds have passed; to be cancelled when something starts."""
    await asyncio.sleep(idle)
    prompt = (Path(__file__).with_name("prompts") / "title.md").read_text().strip()
    with contextlib.suppress(ExoError):  # the first words stay; the next rest tries again
        for session in sessions.untitled():
            said = []
            for message in sessions.messages(session):
                if message.text and message.role != "tool":
                    said.append(f"{message.role}: {message.text[:_HEAD]}")
            title = ""
            if said:
                talk = "\n".join(said[:2])
                title = clean(await _ask(model, prompt, f"{talk}\n\nTitle:"))
            with hub.commit() as add:
                sessions.retitle(session, title)
                if title:
                    add(session, SessionUpdated(title))


async def _ask(model: Model, prompt: str, talk: str) -> str:
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": talk}]
    return await words(model, "aux", Request(messages, max_tokens=24))


def clean(text: str) -> str:
    """One line of at most 40 characters without quotes and marks; "" when nothing is left."""
    for line in text.splitlines():
        if title := _one(line):
            return title_of(title)
    return ""


def _one(line: str) -> str:
    line = "".join(c for c in line if c.isprintable()).strip(_STRIP)
    head, _, rest = line.partition(":")
    if head.lower() in ("title", "titel", "titre", "título"):
        line = rest
    return "".join(c for c in line if c not in '"“”„«»').strip(_STRIP)
