"""From a judgement to a verdict, through the person's policies. Pure.

Invariant: what is irreversible, public and about others is asked at least, whatever a judge, a policy, an
override or a session's rule says; what is not understood is never allowed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

from exo.core.gate.axes import Act, Axes, Judgement, Part
from exo.core.gate.policy import OUTCOMES, Policy
from exo.core.gate.words import summary

# whoever judges: a message reaches somebody
_SAID = Part(Axes("irreversible", "shared", "none", True), "send a message")
LEAST = {"send_message": (_SAID,)}


@dataclass(frozen=True)
class Verdict:
    """`outcome` is allow, log, ask or deny; `rule` what decided it; `digest` the call's; `grant` the rule
    that an allow_always would write, "" when there can be none; `cents` what it costs where that is known."""

    act: Act
    outcome: str
    axes: Axes
    summary: str
    rule: str
    digest: str = ""
    grant: str = ""
    cents: int | None = None

    def record(self) -> dict[str, Any]:
        """What the signed record of the call says of it."""
        names = ("outcome", "axes", "rule", "digest", "cents")
        facts = asdict(self)
        code = {"code": self.act.code} if self.act.code else {}
        return {name: facts[name] for name in names if facts[name] is not None} | code


def decide(
    act: Act, judgement: Judgement, policy: Policy, granted: Collection[str] = (), spent: int = 0
) -> Verdict:
    """The strictest outcome of all parts; `granted` holds the session's rules (see `mark`), `spent` is what
    this month has cost, in cents."""
    names = judgement.names | {f"tool:{act.tool}"}
    judgement = replace(judgement, parts=judgement.parts + LEAST.get(act.tool, ()))
    axes = judgement.axes
    rows = [_part(part, policy) for part in judgement.parts] or [("allow", "looks")]
    rows += [(policy.ask["unknown"], "unknown")] * bool(judgement.doubts)
    firm = [("ask", f"needs {act.needs}")] * bool(act.needs)
    if judgement.secrets:
        firm.append((policy.ask["confidential"], "confidential"))
    if axes.cost == "money" and (why := _budget(judgement.cents, spent, policy.month_cents)):
        firm.append(("ask", why))
    firm += [("ask", f"private {folder}") for folder in _private(act, judgement, policy)]
    firm += [("ask", f"reserved {name}") for name in _named(names, policy.reserved)]
    firm += [("deny", f"denied {name}") for name in _named(names, policy.denied)]
    if axes.exposure != "private" and (why := _posting(judgement.said, policy)):
        firm.append(("deny", why))
    outcome, rule = _strictest([*rows, *firm])
    grant = _shape(act, judgement) if outcome == "ask" and not firm and not axes.floor else ""
    if grant and mark(grant) in granted:
        outcome = "log"
        rule = "allowed in this session"
        grant = ""
    line = summary(act, judgement, axes)
    return floor(Verdict(act, outcome, axes, line, rule, act.digest, grant, judgement.cents))


def floor(verdict: Verdict) -> Verdict:
    """The operator's floor: the last word on every verdict."""
    if verdict.axes.floor and verdict.outcome in ("allow", "log"):
        return replace(verdict, outcome="ask", rule="floor", grant="")
    return verdict


def mark(rule: str) -> str:
    """A rule as it is kept beside the sessions: a hash, since its words may have to be forgotten."""
    return hashlib.sha256(rule.encode(errors="surrogatepass")).hexdigest()


def _shape(act: Act, judgement: Judgement) -> str:
    """What an allow_always stands for: the same kinds of consequences in the same folder, or, where
    something was not understood, the very same call; in any case the same code."""
    if judgement.doubts or any(part.shape == "=" for part in judgement.parts):
        return f"{act.tool} = {act.digest}"
    rows = {part.shape for part in judgement.parts if part.changes}
    code = f" # {act.code}" * bool(act.code)
    return f"{act.tool}: {' | '.join(sorted(rows))} @ {act.cwd}{code}"


def _part(part: Part, policy: Policy) -> tuple[str, str]:
    """The matrix's outcome, or that of the overrides for this part's tool, program or host."""
    known = sorted(part.names & set(policy.overrides))
    found = [(policy.overrides[name], f"override {name}") for name in known]
    return _strictest(found) if found else policy.outcome(part.axes, part.changes)


def _strictest(rows: list[tuple[str, str]]) -> tuple[str, str]:
    return max(rows, key=lambda row: OUTCOMES.index(row[0]))


def _named(names: Collection[str], wanted: Collection[str]) -> list[str]:
    known = {name.partition(":")[2] if ":" in name else name for name in names}
    return sorted(set(wanted) & (known | set(names)))


def _budget(cents: int | None, spent: int, month: int) -> str:
    """Why money is not simply spent, "" when it may be as far as the budget goes."""
    if not month or cents is None:
        return "budget" if not month else "budget: the amount is not known"
    return f"budget: {spent} of {month} cents are spent" if spent + cents > month else ""


def _private(act: Act, judgement: Judgement, policy: Policy) -> list[str]:
    """The private folders that a call touches; who works in one was let in."""
    closed = [each for each in policy.folders if not _within(act.cwd, each)]
    return [each for each in closed if any(_meet(path, each) for path in judgement.touched)]


def _meet(path: str, folder: str) -> bool:
    """A path that ends with a slash stands for the names in it alone."""
    return _within(path, folder) or path[-1:] != "/" and _within(folder, path)


def _within(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _posting(said: str, policy: Policy) -> str:
    if policy.longest and len(said) > policy.longest:
        return f"posting: longer than {policy.longest} characters"
    words = [word for word in policy.never if word.casefold() in said.casefold()]
    return f"posting: it says {words[0]!r}" if words else ""
