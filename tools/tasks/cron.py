"""When something comes again: cron lines in a time zone, `@every SPAN`, `@at TIME`. Pure; knows no task and no clock.
Cron lines are cronsim's matter, which does with summer time what Debian's cron does.

Invariant: a slot is an instant in ms UTC, and each comes once."""

from __future__ import annotations

import datetime
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from exo.core.base.errors import ExoError

MACROS = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0"}
MACROS |= {"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *"}
_SPAN = re.compile(r"@every (\d{1,6}) ?([smhd])")
_UNITS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def following(line: str, after: int, zone: str, since: int = 0) -> int | None:
    """The first slot after `after` (ms UTC) of a line, None when there is none. `zone` is an IANA name. `@every`
    counts from `since`. Raises ExoError for a line or a zone that cannot be read."""
    from cronsim import CronSim, CronSimError

    line = MACROS.get(line, line)
    try:
        there = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _wrong(
            line, f"there is no time zone {zone!r}; names are like Europe/Zurich"
        ) from error
    if line.startswith("@at "):
        at = _at(line, there)
        return at if at > after else None
    if line.startswith("@"):
        span = _SPAN.fullmatch(line)
        step = int(span[1]) * _UNITS[span[2]] if span else 0
        if not step:
            raise _wrong(line, f"write @every 30m, @at 2026-12-24T18:00 or {', '.join(MACROS)}")
        return since + ((after - since) // step + 1) * step
    if len(line.split()) != 5:
        raise _wrong(line, "a line has five fields: minute hour day month weekday")
    try:
        found = next(CronSim(line, datetime.datetime.fromtimestamp(after / 1000, there)))
    except (CronSimError, OverflowError) as error:
        raise _wrong(line, str(error)) from error
    except StopIteration:
        return None
    return round(found.timestamp() * 1000)


def _at(line: str, zone: ZoneInfo) -> int:
    try:
        at = datetime.datetime.fromisoformat(line.removeprefix("@at "))
    except ValueError as error:
        raise _wrong(line, "write @at 2026-12-24T18:00") from error
    return round((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp() * 1000)


def _wrong(line: str, why: str) -> ExoError:
    return ExoError(f"read the schedule {line[:80]!r}", why)
