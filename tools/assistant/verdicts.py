"""Signals of the person become entries of the record, each once: at the end of every turn, and at once where the person
says so in words. Owns when the record is read for them; what is a signal stands in signals.py.

Invariant: an entry `verdict` refers to the decision and to the words that judge it, so that it is forgotten with either;
it is durable before the reply says that it was noted. What a crash kept from being written is written at the next turn's end."""

from __future__ import annotations

from dataclasses import dataclass

from exo.core.base.errors import ExoError
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.core.plugins.registry import Core, PluginContext
from exo.core.toolbox.registry import HIDDEN, Context
from exo.tools.assistant.signals import KINDS, TOOL, Signal, signals, turns
from exo.tools.assistant.tongue import told

RECENT, TURNS = 256, 6  # entries and turns that are looked at


@dataclass(frozen=True)
class Verdicts:
    """What it works with."""

    core: Core

    def register(self, ctx: PluginContext) -> None:
        ctx.register_action(self.verdict, TOOL, toolset=HIDDEN)
        ctx.register_hook("on_turn_end", self.on_turn_end)

    async def verdict(self, context: Context, answer: str = "") -> str:
        """Note what the person says of the turn before: what it should have been, or that it was wrong. Who else
        calls it notes nothing: only their own words in the record count."""
        found = await self._note(context.session)
        if not any(each.via == "words" for each in found):
            return told(context.language, "was_nothing")
        return told(context.language, f"was_{answer or 'wrong'}")

    async def on_turn_end(self, session_id: str) -> None:
        """Read what the turn says of the one before it."""
        if self.core.memory is not None:
            await self._note(session_id)

    async def _note(self, session: str) -> list[Signal]:
        if self.core.memory is None:
            raise ExoError("note it", "nothing is recorded here")
        await self.core.memory.drain()
        return await self.core.memory.run(lambda memory: note(memory.ledger, session))


def note(ledger: Ledger, session: str) -> list[Signal]:
    """Write the verdicts that recent turns of a session give and that are not there yet, in one durable commit; returns
    those that the last turn gives. What is implied never follows what stands already; the same said again is one."""
    last = turns(ledger.newest(RECENT, KINDS), session)[-TURNS:]
    found, said = list(signals(last)), dict[str, tuple[str, ...]]()
    stands: dict[str, set[str]] = {}  # decision -> the words that judged it
    for entry in ledger.referring({each.on.id for each in found}):
        if entry.kind == "verdict" and len(entry.refs) == 2:
            stands.setdefault(entry.refs[0], set()).add(entry.refs[1])
    drafts = []
    for each in found:
        because, mark = stands.setdefault(each.on.id, set()), (each.verdict, each.answer)
        again, said[each.on.id] = said.get(each.on.id) == mark, mark
        if not again and not (because if each.via != "words" else because & {each.because.id}):
            drafts.append(Draft("verdict", each.body(), (each.on.id, each.because.id)))
            because.add(each.because.id)
    if drafts:
        ledger.append(*drafts)
    return [each for each in found if each.because is last[-1].said]
