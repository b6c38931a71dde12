"""A question back: "Shall I …?", "For how long?". Owns what its answer does, and for how long and for what it still counts.

It is asked by a tool of its own, so that the turn's record holds the whole call that was shown; a "yes" runs that call and
reads nothing again. Invariant: only a question of this process that is the very last thing said is open, by its seal and
not by its words; after `HOLDS` seconds, or once its time is past, it does nothing but ask anew or say so."""

from __future__ import annotations

import datetime
import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from exo.core.engine.reader import Call, Past, Plan
from exo.tools.assistant.tongue import Language, fold, language, regex

TOOL = "ask"  # of the tool that says the question
HOLDS = 300.0  # seconds in which it may be answered
_KEY = secrets.token_bytes(16)
ASKED = 1000  # seals that are kept in mind
_ASKED: dict[str, bool] = {}  # seal of what was asked -> whether that was once, oldest first
_EDGES = " ,.!?:;-–¿¡"


def _nonce() -> str:
    return secrets.token_hex(4)


@dataclass(frozen=True)
class Offer:
    """The question `text`, asked at `at` (ISO, with its zone): whether to make the call `tool` with `args`, or,
    without a tool, for what completes the order `said`."""

    text: str
    language: str
    at: str
    tool: str = ""
    args: dict[str, Any] = field(default_factory=dict)
    said: str = ""
    nonce: str = field(default_factory=_nonce)  # each is asked once: commands.py

    @property
    def call(self) -> Call:
        return self.tool, dict(self.args)

    @property
    def seal(self) -> str:
        told = json.dumps(asdict(self), sort_keys=True).encode()
        return hashlib.blake2b(told, key=_KEY, digest_size=8).hexdigest()

    def late(self, now: datetime.datetime) -> bool:
        """Whether too much time went by, or the clock was set back before it."""
        passed = now - datetime.datetime.fromisoformat(self.at)
        return not 0 <= passed.total_seconds() <= HOLDS

    def again(self) -> Offer:
        """The same question, to be asked once more."""
        return replace(self, nonce=_nonce())

    def plan(self) -> Plan:
        """The plan that asks it."""
        told = {key: value for key, value in asdict(self).items() if value}
        call = TOOL, told | {"seal": self.seal}
        return Plan("command", [call], said=self.text, language=self.language)


def ask(text: str, tongue: Language, now: datetime.datetime, call: Call) -> Plan:
    """Ask whether to make `call`."""
    at = now.isoformat(timespec="seconds")
    return Offer(text, tongue.name, at, *call).plan()


def complete(said: str, plan: Plan, now: datetime.datetime) -> Plan:
    """Ask what `plan` asks, for what completes the order `said`."""
    at = now.isoformat(timespec="seconds")
    return Offer(plan.said, plan.language, at, said=said).plan()


def once(seal: str) -> bool:
    """Note that the question of this seal is asked; False where it was before. Then a model has copied it, and it is
    open no more, whoever words it."""
    first = seal not in _ASKED
    _ASKED[seal] = first
    while len(_ASKED) > ASKED:
        del _ASKED[next(iter(_ASKED))]
    return first


def asks(plan: Plan) -> bool:
    """Whether all that a plan does is to ask back."""
    return [name for name, _ in plan.calls] == [TOOL]


def open_in(past: Past | None) -> Offer | None:
    """The question that the turn before asked and that nothing has been said to yet."""
    if past is None or not past.calls or past.calls[-1][0] != TOOL:
        return None
    args: dict[str, Any] = dict(past.calls[-1][1])
    seal = args.pop("seal", "")
    try:
        found = Offer(**args)
        good = secrets.compare_digest(found.seal, seal) and _ASKED.get(seal, True)
    except (TypeError, ValueError):  # somebody else's call
        return None
    return found if good and past.reply.endswith(found.text) else None


def over(call: Call, now: datetime.datetime) -> bool:
    """Whether the time that a call names is past."""
    if call[0] != "reminder":
        return False
    at = datetime.datetime.fromisoformat(str(call[1]["at"]))
    return at <= (now if at.tzinfo else now.replace(tzinfo=None))


def answer(offer: Offer, line: str, now: datetime.datetime, words: dict[str, Any]) -> Plan | None:
    """The plan for a yes or a no to an offer of a call; None for anything else. `words` are those of its language."""
    low, tongue = fold(line).strip(_EDGES), language(offer.language)
    if regex(words["no"]).fullmatch(low):
        return Plan("command", said=words["left_alone"], language=tongue.name)
    if not regex(words["yes"]).fullmatch(low):
        return None
    if over(offer.call, now):
        return Plan("command", said=tongue.say["over"], language=tongue.name)
    if offer.late(now):
        return ask(again(offer.text, tongue), tongue, now, offer.call)
    return Plan("command", [offer.call], language=tongue.name)


def again(text: str, tongue: Language) -> str:
    """A question that is asked anew, because its answer came late."""
    late = tongue.say["late"]
    return f"{late} {text.removeprefix(f'{late} ')}"
