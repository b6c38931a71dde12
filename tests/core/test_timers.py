"""Timers, reminders and tasks in a running engine: by the words of a person, over restarts, kills and upgrades."""

from __future__ import annotations

import datetime
from typing import Any

from exo.tools.clock import FakeClock

NOW = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday


def test_reminders_ring_repeat_and_survive_a_restart(run: Any) -> None:
    clock = FakeClock(round(NOW.timestamp() * 1000))

    async def first(bench: Any) -> None:
        session = await bench.session()

        async def remind(**args: str) -> dict[str, Any]:
            return dict(await bench.call("tool.run", session=session, tool="reminder", args=args))

        made = await remind(at="18:30", text="tea", repeat="daily")
        assert made["text"] == "Reminder set for Monday, 30 November 2026, 18:30 (UTC), daily: tea"
        assert (await remind(at="tomorrow 9:00", text="once"))["ok"]
        assert not (await remind(at="never", text="x"))["ok"]
        assert not (await remind(at="18:30", text=" "))["ok"]
        assert not (await remind(at="18:30", text="x", repeat="sometimes"))["ok"]

    run(first, clock=clock)
    clock.advance(2 * 86400)  # nothing ran for two days

    async def second(bench: Any) -> None:
        await bench.until(lambda e: e["type"] == "notice" and "once" in e["body"]["text"])
        said = [row["body"]["text"] for row in bench.events("notice")]
        assert said == ["Reminder: tea", "Reminder: once"]  # each once, however often it was missed
        assert bench.events("notice")[0]["body"]["code"] == "reminder"
        [left] = bench.timers.pending()
        assert (
            left.label == "tea" and clock.local(left.due).isoformat() == "2026-12-02T18:30:00+00:00"
        )

    run(second, clock=clock)
