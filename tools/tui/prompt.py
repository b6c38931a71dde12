"""The line in which one types: completion of /commands and @paths, and what was typed before."""

from __future__ import annotations

import os
from typing import Any

from exo.tools.chat import Chat
from textual.binding import Binding
from textual.suggester import Suggester
from textual.widgets import Input, Static


class _Suggest(Suggester):
    def __init__(self, chat: Chat) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._chat = chat

    async def get_suggestion(self, value: str) -> str | None:
        count, found = self._chat.complete(value)
        return value[: len(value) - count] + found[0] if found else None


class Prompt(Input):
    """Tab completes as far as it is certain and shows what there is; up and down go through what was typed."""

    BINDINGS = [
        Binding("tab", "complete", "complete", show=False),
        Binding("up", "earlier(1)", "earlier", show=False),
        Binding("down", "earlier(-1)", "later", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(placeholder="say something, or /help")
        self._chat: Chat | None = None
        self._typed: list[str] = []
        self._back = 0

    def begin(self, chat: Chat) -> None:
        """Complete for this conversation."""
        self._chat, self.suggester = chat, _Suggest(chat)
        self.focus()

    def keep(self, line: str) -> None:
        """Remember what was typed."""
        self._back = 0
        if self._typed[-1:] != [line]:
            self._typed.append(line)

    def action_earlier(self, step: int) -> None:
        self._back = min(max(0, self._back + step), len(self._typed))
        self.value = self._typed[-self._back] if self._back else ""
        self.cursor_position = len(self.value)

    def action_complete(self) -> None:
        if self._chat is None:
            return
        at = self.cursor_position
        count, found = self._chat.complete(self.value[:at])
        if not found:
            return
        start = self.value[: at - count]
        lead = os.path.commonprefix(found)
        certain = lead + (" " if len(found) == 1 and not lead.endswith("/") else "")
        if certain:
            self.value = start + certain + self.value[at:]
            self.cursor_position = len(start) + len(certain)
        self._hint("  ".join(found[:12]) if len(found) > 1 else "")

    def watch_value(self, value: Any) -> None:
        if self.is_mounted and not value:
            self._hint("")

    def _hint(self, text: str) -> None:
        hint = self.screen.query_one("#hint", Static)
        hint.update(text)
        hint.display = bool(text)
