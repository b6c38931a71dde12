"""One decision: rules first, then the person's providers in their order, then the safe answer. Owns the
time-outs, the calibration and what the record is told; knows no model.

Invariant: `decide` raises for a setting alone, never for a provider, and waits for each no longer than its time-out; what it
answers is never less careful than what the rules said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from exo.core.base.errors import ExoError
from exo.core.base.settings import Settings
from exo.core.decide.calibration import Calibration
from exo.core.decide.providers import LONGEST, Answers, Provider
from exo.core.decide.question import MECHANISMS, MILLION, Decision, Mechanism, per_million

Record = Callable[[dict[str, Any]], None]
EVEN = 0.5  # of a question of the moment: the threshold, up to which the likeliest answer is none


@dataclass
class Decider:
    """`providers` are asked for at each decision, since a person may change them; `record` takes the facts of each decision, with the state and the options of a question of the moment as
    text: whoever writes them down makes hashes of those; `settings` are those of a session ("": of a new one)."""

    _providers: Callable[[], Sequence[Provider]]
    _calibration: Calibration
    _record: Record
    _settings: Callable[[str], Awaitable[Settings]]

    async def decide(
        self, mechanism: Mechanism, state: str, ruled: str = "", patience: float = 0, **about: Any
    ) -> Decision:
        """The answer to one question. See `decide_all`."""
        rules = {mechanism.name: ruled}
        return (await self.decide_all([mechanism], state, rules, patience, **about))[mechanism.name]

    async def decide_all(
        self,
        mechanisms: Sequence[Mechanism],
        state: str,
        ruled: Mapping[str, str] | None = None,
        patience: float = 0,
        **about: Any,
    ) -> dict[str, Decision]:
        """Answers to several questions about one state, each provider asked once. `ruled` are the rules'
        answers ("": they have none); `patience` seconds instead of the providers' own time-outs, where
        nobody waits for the answer: only then are slow providers asked. `about` goes into the record."""
        ruled = ruled or {}
        begun = time.monotonic()
        state = state[:LONGEST]
        found: dict[str, Decision] = {}
        settings = await self._settings(about.get("session", ""))
        for each in mechanisms:
            said = ruled.get(each.name, "")
            if said and (said not in each.careful or said == each.careful[-1]):
                sure = dict.fromkeys(each.options, 0) | {said: MILLION}
                found[each.name] = Decision(said, sure, provider="rules")
        for provider in self._providers():
            if provider.slow and not patience:
                continue
            # unsure is an answer: only the main model is asked again
            open_ = {
                each.name: each
                for each in mechanisms
                if each.name not in found or (provider.slow and found[each.name].abstained)
            }
            answers = await _asked(provider, state, open_, patience) if open_ else {}
            for name, raw in answers.items():
                least = settings.number(f"threshold.{name}") if name in MECHANISMS else EVEN
                found[name] = self._judged(name, raw, provider.name, least)
        spent = round((time.monotonic() - begun) * 1000)
        for each in mechanisms:
            one = found.get(each.name) or _nobody(each)
            safe = ruled.get(each.name, "") or each.safe
            answer = safe if one.abstained else each.settle(ruled.get(each.name, ""), one.answer)
            found[each.name] = one = replace(one, answer=answer, ms=spent)
            about |= {"mechanism": each.name, "own": each.name in MECHANISMS, "state": state}
            self._record({**about, **vars(one)})
        return found

    def _judged(self, name: str, raw: Mapping[str, float], provider: str, least: float) -> Decision:
        sure = self._calibration.apply(provider, name, raw)
        best = max(sure, key=sure.__getitem__)
        counts = per_million(sure), sure[best] <= least, provider
        return Decision(best, *counts, raw=per_million(raw))


async def _asked(
    provider: Provider, state: str, questions: Mapping[str, Mechanism], patience: float
) -> Answers:
    """What it answers; nothing when it fails or takes too long."""
    wait = patience or provider.timeout
    try:
        return await asyncio.wait_for(provider.ask(state, questions, wait), wait)
    except (ExoError, TimeoutError, OSError):
        return {}


def _nobody(mechanism: Mechanism) -> Decision:
    """Nobody answered: every option is as likely as the others."""
    even = dict.fromkeys(mechanism.options, 1 / len(mechanism.options))
    return Decision("", per_million(even), True)
