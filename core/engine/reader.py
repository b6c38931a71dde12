"""What the engine wants to know of a sentence, and who tells it: the seat `reader`. Owns the shapes alone; words and
languages are the reader's.

Invariant: without a reader nothing is a command: every sentence goes to the model, and nothing is answered from what is
known by itself."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from exo.core.protocol.schema import Message

if TYPE_CHECKING:
    from exo.core.retrieve.candidates import Candidate
    from exo.core.retrieve.pack import Hit

Kind = Literal["command", "note", "question", "chat"]
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Past:
    """A turn that was: what was said, what was done for it, what was answered."""

    said: str
    calls: Sequence[Call] = ()
    reply: str = ""


@dataclass(frozen=True)
class Plan:
    """`calls` are tools to run before, and instead of, asking a language model; `said` is an answer that
    needs neither; `query` is what was meant where the words alone do not say it; `language` is that of a
    command."""

    kind: Kind
    calls: list[Call] = field(default_factory=list)
    said: str = ""
    query: str = ""
    language: str = "en"


class Reader:
    """The seat `reader`; this one knows no language."""

    def plan(self, text: str, now: datetime.datetime, past: Past | None = None) -> Plan:
        """What `text` asks for. `now` is wall time with its zone, `past` the turn before."""
        return Plan("question" if text.rstrip().endswith("?") else "chat")

    def pick(self, text: str, tool: str, sure: float, now: datetime.datetime) -> Plan | None:
        """What `text`, which no rule takes, asks for where a decision is `sure` (0 to 1) that it wants `tool`,
        an answer of `request.tool`; None: leave it to the model."""
        return None

    def instead(self, text: str, kind: str) -> Plan | None:
        """What is said to a request of this kind, an answer of `request.kind`, where a small model would only
        make something up; None: its reply is as good as any."""
        return None

    def spared(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages of a request without what a small model would copy instead of answering."""
        return messages

    def about_person(self, text: str, anybody: bool = False) -> str:
        """The language of a question about the person, or with `anybody` about whomever; "" for none."""
        return ""

    def choose(self, query: str, found: Sequence[Candidate]) -> Candidate | None:
        """Which of `found`, the best first, answers by itself."""
        return None

    def concerns(self, query: str, found: Iterable[Candidate]) -> bool:
        """Whether a question that names no person is about this one's world all the same."""
        return False

    def nothing(self, query: str, language: str, hits: Sequence[Hit]) -> tuple[str, bool]:
        """The words that nothing answers `query`, in `language` ("": in that of the query), with what of `hits`
        comes nearest; whether something does."""
        return self.told(language, "nothing"), False

    def told(self, language: str, text: str, /, **facts: Any) -> str:
        """The text of an answer in this language."""
        return " ".join([text.replace("_", " "), *map(str, facts.values())])

    def quoted(self, language: str, text: str, ts: int) -> str:
        """A belief of that time (ms UTC) as an answer."""
        return text


def past(messages: list[Message], replied: bool = False) -> Past | None:
    """The last turn before the one whose words stand last among the person's; the last that has a reply, if wanted."""
    starts = [n for n, message in enumerate(messages) if message.role == "user"]
    while len(starts) > 1:
        first, *turn = messages[starts[-2] : starts.pop()]
        replies = [m.text for m in turn if m.role == "assistant" and not m.calls]
        if replies or not replied:
            calls = [(call.tool, call.args) for message in turn for call in message.calls or []]
            return Past(first.text, calls, replies[-1] if replies else "")
    return None
