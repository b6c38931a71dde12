"""From a judgement to a verdict, through the person's policies. Pure.

Invariant: what is irreversible, public and about others is asked at least, whatever a policy, an override
or a session's rule says; what is not understood is never allowed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from exo.tools.gate.axes import Axes, Judgement, Part
from exo.tools.gate.policy import OUTCOMES, Policy


@dataclass(frozen=True)
class Verdict:
    """`outcome` is allow, log, ask or deny; `rule` what decided it; `grant` the rule that an allow_always
    would write, "" when there can be none."""

    outcome: str
    axes: Axes
    summary: str
    rule: str
    grant: str = ""


def decide(judgement: Judgement, policy: Policy, granted: Collection[str] = ()) -> Verdict:
    """The strictest outcome of all parts; `granted` are the session's rules of earlier allow_always."""
    rows = [_part(part, policy) for part in judgement.parts] or [("allow", "looks")]
    names = judgement.names
    firm = []
    if not judgement.understood:
        rows.append((policy.ask["unknown"], "unknown"))
    if judgement.secrets:
        firm.append((policy.ask["confidential"], "confidential"))
    if judgement.axes.cost == "money" and not policy.month_cents:
        firm.append(("ask", "budget"))
    firm += [("ask", f"reserved {name}") for name in _named(names, policy.reserved)]
    firm += [("deny", f"denied {name}") for name in _named(names, policy.denied)]
    if judgement.axes.exposure != "private" and (why := _posting(judgement.said, policy)):
        firm.append(("deny", why))
    outcome, rule = _strictest([*rows, *firm])
    grant = judgement.shape if outcome == "ask" and not firm and not judgement.axes.floor else ""
    if grant and grant in granted:
        outcome, rule, grant = "log", "allowed in this session", ""
    return floor(Verdict(outcome, judgement.axes, judgement.summary, rule, grant))


def floor(verdict: Verdict) -> Verdict:
    """The operator's floor: the last word on every verdict."""
    if verdict.axes.floor and verdict.outcome in ("allow", "log"):
        return replace(verdict, outcome="ask", rule="floor", grant="")
    return verdict


def _part(part: Part, policy: Policy) -> tuple[str, str]:
    """The matrix's outcome, or that of the overrides for this part's tool, program or host."""
    found = [
        (policy.overrides[name], f"override {name}")
        for name in sorted(part.names)
        if name in policy.overrides
    ]
    return _strictest(found) if found else policy.outcome(part.axes, part.changes)


def _strictest(rows: list[tuple[str, str]]) -> tuple[str, str]:
    return max(rows, key=lambda row: OUTCOMES.index(row[0]))


def _named(names: Collection[str], wanted: Collection[str]) -> list[str]:
    known = {name.partition(":")[2] if ":" in name else name for name in names}
    return sorted(set(wanted) & (known | set(names)))


def _posting(said: str, policy: Policy) -> str:
    if policy.longest and len(said) > policy.longest:
        return f"posting: longer than {policy.longest} characters"
    words = [word for word in policy.never if word.casefold() in said.casefold()]
    return f"posting: it says {words[0]!r}" if words else ""
