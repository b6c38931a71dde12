"""How long a credential is set aside after a failure. Owns the table and its clockwork; sends nothing.

Invariant: a credential is never set aside past the time at which its provider said it would answer again,
and a request that was itself wrong sets nothing aside."""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from exo.core.base.errors import ContextOverflow, ModelError, ModelGone, ModelMissing

# row: (first, longest) seconds; doubles from failure to failure
TABLE = {
    "rate": (60.0, 600.0),  # 429 without a time; with one: that time
    "server": (15.0, 300.0),  # 500, 502, 503, 504, 529 and their like
    "network": (10.0, 120.0),  # no connection, no name, no TLS, silence, a broken stream
    "quota": (3600.0, 3600.0),  # 402, or the word quota
    "key": (3600.0, 3600.0),  # 401, 403; ends early when the key changes
}
WRONG = (400, 413, 422)  # the request itself: no other route would take it
PROBE = (60.0, 0.02)  # a lone credential is tried again after so many seconds, or this share
LONGEST = 31 * 86400.0
UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def row(error: ModelError) -> str:
    """The row of TABLE that a failure belongs to, "" for one that sets nothing aside."""
    status = error.status
    if status in WRONG or isinstance(error, ModelMissing | ContextOverflow):
        return ""
    if error.code == "quota":
        return "quota"
    if status is None:
        return "network" if isinstance(error, ModelGone) else ""
    named = {401: "key", 402: "quota", 403: "key", 429: "rate"}
    return named.get(status, "server" if status >= 500 else "")


def said(error: ModelError) -> str:
    """Why it failed and what to do, in one breath."""
    return f"{error.why} ({error.do})" if error.do else error.why


@dataclass(frozen=True)
class Key:
    """A key and the environment variable that held it. Its value shows in no repr."""

    variable: str = ""
    value: str = field(default="", repr=False)


@dataclass
class Credential:
    """What is remembered of one key of one provider. Times are the clock's monotonic seconds."""

    why: str = ""
    _until: float = -math.inf
    _row: str = ""
    _streak: int = 0
    _stamped: float = -math.inf
    _reset: float = -math.inf  # when the provider said it would answer again

    def wait(self, now: float) -> float:
        """Seconds until it may be used, 0.0 for now."""
        return max(0.0, self._until - now)

    def fail(self, error: ModelError, now: float, started: float, lone: bool) -> None:
        """Set it aside as TABLE says. `started` is when the failed request began: of several that
        failed together only one counts. `lone`: its provider has no other."""
        kind = row(error)
        if not kind:
            return
        together = kind == self._row and started <= self._stamped
        if kind != self._row:
            self._streak = 0
        elif not together:
            self._streak += 1
        first, longest = TABLE[kind]
        seconds = min(longest, first * 2.0 ** min(self._streak, 30))
        if kind == "rate":
            seconds = self._rate(error.retry_after, seconds, now, lone)
        until = now + seconds
        self._until = max(until, self._until) if together else until
        self._row, self._stamped, self.why = kind, now, said(error)

    def _rate(self, stated: float | None, unstated: float, now: float, lone: bool) -> float:
        """Seconds after a 429. Limits are often lifted early, so a lone credential is probed; each
        failed probe can only bring the stated reset nearer."""
        reset = self._reset if lone and self._reset > now else math.inf
        if stated is not None:
            reset = min(reset, now + stated)
        if not math.isfinite(reset):
            return unstated
        self._reset, remaining = reset, reset - now
        least, share = PROBE
        return min(remaining, max(least, share * remaining)) if lone else remaining


def retry_after(headers: Mapping[str, str], text: str, now_ms: int) -> float | None:
    """Seconds until the provider answers again, None when it does not say. `headers` in lower case;
    `text` is the body of the error. Dates are measured against the answer's own Date, since a board's
    clock may be wrong."""
    stated, seconds = headers.get("retry-after", ""), None
    if re.fullmatch(r"\d{1,18}(\.\d{1,9})?", stated):
        seconds = float(stated)
    elif date := _date(stated):
        seconds = date - (_date(headers.get("date", "")) or now_ms / 1000)
    elif found := re.search(r"(?:again|retry) in ((?:\d[\d.]*(?:ms|[hms]) ?)+)", text):
        parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[hms])", found[1])
        seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    return None if seconds is None else min(max(0.0, seconds), LONGEST)


def _date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
