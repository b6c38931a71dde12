"""What every Exo understands without a language model, as a plugin: it takes the seat `reader`, and brings the tools that
commands call."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from typing import Any

from exo.core.engine.reader import Past, Plan, Reader
from exo.core.plugins import PluginContext
from exo.core.retrieve.candidates import Candidate
from exo.core.retrieve.pack import Hit
from exo.tools.assistant import answer, pick, rules, talk, tongue
from exo.tools.assistant.commands import Commands
from exo.tools.assistant.tools import Builtin
from exo.tools.assistant.verdicts import Verdicts


def register(ctx: PluginContext) -> None:
    """Take the seat and offer the tools."""
    if ctx.core is None:
        raise ValueError("the assistant works in a running exod")
    ctx.register_reader(Tongues())
    Builtin(ctx.core).register(ctx)
    Commands(ctx.core).register(ctx)
    Verdicts(ctx.core).register(ctx)


class Tongues(Reader):
    """Reads by the tables of language/."""

    def plan(self, text: str, now: datetime.datetime, past: Past | None = None) -> Plan:
        return rules.plan(text, now, past)

    def pick(self, text: str, tool: str, sure: float, now: datetime.datetime) -> Plan | None:
        return pick.pick(text, tool, sure, now)

    def instead(self, text: str, kind: str) -> Plan | None:
        return talk.instead(text, kind)

    def spared(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return talk.spared(messages)

    def about_person(self, text: str, anybody: bool = False) -> str:
        return rules.about_person(text, anybody)

    def choose(self, query: str, found: Sequence[Candidate]) -> Candidate | None:
        return answer.choose(query, found)

    def concerns(self, query: str, found: Iterable[Candidate]) -> bool:
        return answer.concerns(query, found)

    def nothing(self, query: str, language: str, hits: Sequence[Hit]) -> tuple[str, bool]:
        return answer.nothing(query, language, hits)

    def told(self, language: str, text: str, /, **facts: Any) -> str:
        return tongue.told(language, text, **facts)

    def quoted(self, language: str, text: str, ts: int) -> str:
        """With its day where the words count from it ("today")."""
        if not re.search(tongue.language(language).data["expects"]["dated"], tongue.fold(text)):
            return tongue.told(language, "told", text=text)
        day = datetime.datetime.fromtimestamp(ts / 1000, datetime.UTC)
        return tongue.told(
            language, "told_on", text=text, date=tongue.moment(day, language)["date"]
        )
