"""What is meant by words that go on from the turn before: "no, tomorrow", "the second one", "cancel
that", "and Italy?". Pure; the words are data (tongue.py)."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from typing import Any

from exo.core.decide import rules
from exo.core.decide.tongue import Language, fold
from exo.core.decide.when import parse

_MARK = re.compile(r"\[([\w-]{6,})[^\]]*\]")


def follow(
    line: str, tongue: Language, now: datetime.datetime, past: rules.Past
) -> rules.Plan | None:
    """The plan for `line` after `past`; None where it does not go on from it."""
    low, rows, say = fold(line).strip(" .!¿¡"), tongue.data["follow"], tongue.say
    if past.reply in (say["how_long"], say["when"]):
        return rules.command(f"{past.said.rstrip('.!? ')} {line}", tongue, now)
    done = [call for call in past.calls if call[0] in ("timer", "reminder", "remember", "forget")]
    name, args = done[-1] if done else ("", {})
    if name in ("timer", "reminder"):
        if re.fullmatch(rows["cancel"], low):
            return _plan(tongue, ("cancel", {"what": name, "which": "last"}))
        if found := re.fullmatch(f"(?:{rows['amend']}|(?P<more>{rows['more']}) (?P<time>.+))", low):
            said = found["rest"] or found["time"]
            if call := _again(name, args, said, tongue, now):
                last = [("cancel", {"what": name, "which": "last"})]
                return _plan(tongue, *([] if found["more"] else last), call)
    marks = _MARK.findall(past.reply)
    if name == "remember" and marks and re.fullmatch(rows["cancel"], low):
        return _plan(tongue, ("forget", {"id": marks[-1]}))
    lines = [each for each in past.reply.splitlines() if re.match(r"\d\. |\[", each)]
    if lines and (found := re.fullmatch(rows["nth"], low)):
        return _nth(found["nth"], lines, tongue, past)
    if found := re.fullmatch(rows["also"], low):
        start, end = found.span("rest")
        offset = len(line) - len(line.lstrip(" .!¿¡"))
        return _also(line[start + offset : end + offset], tongue, now, past.said)
    return None


def _plan(tongue: Language, *calls: rules.Call) -> rules.Plan:
    return rules.Plan("command", list(calls), language=tongue.name)


def _again(
    name: str, args: dict[str, Any], said: str, tongue: Language, now: datetime.datetime
) -> rules.Call | None:
    """The call of before with another time."""
    said = said.removeprefix("for ").removeprefix("to ").removeprefix("auf ").removeprefix("de ")
    if name == "timer" and tongue.pattern("{span}").fullmatch(said):
        return name, args | rules.timer_args(tongue.seconds(said))
    if name == "timer":
        return None
    old = datetime.datetime.fromisoformat(args["at"]).replace(tzinfo=None)
    twelve = old.date() == now.date()
    when = parse(said, now, tongue.name, twelve) or parse(
        tongue.data["follow"]["at"] + said, now, tongue.name, twelve
    )
    if when is None or when.rest.strip(" ,"):
        return None
    if when.parts <= {"date"}:  # the time of day stays
        when = replace(when, at=datetime.datetime.combine(when.at, old.time()))
    elif when.parts <= {"clock", "part"} and not twelve:  # the day stays
        when = replace(when, at=datetime.datetime.combine(old, when.at.time()))
    call = rules.reminder_call(when, args["text"])
    return call[0], {**({"repeat": args["repeat"]} if "repeat" in args else {}), **call[1]}


def _nth(word: str, lines: list[str], tongue: Language, past: rules.Past) -> rules.Plan | None:
    """One of the lines that were answered."""
    known = tongue.tables["ordinal"] | {tongue.data["follow"]["last"]: len(lines)}
    number = next((int(n) for each, n in known.items() if each[:5] == word[:5]), 0)
    if not 1 <= number <= len(lines):
        return None
    chosen, asked = lines[number - 1], past.calls[-1] if past.calls else ("", {})
    if asked[0] == "forget" and (mark := _MARK.search(chosen)):
        return _plan(tongue, ("forget", {"id": mark[1]}))
    if asked[0] == "cancel":
        return _plan(tongue, ("cancel", asked[1] | {"number": number}))
    return rules.Plan("question", said=chosen, language=tongue.name)


def _also(rest: str, tongue: Language, now: datetime.datetime, said: str) -> rules.Plan | None:
    """The question of before about something else."""
    rows, low = tongue.data["follow"], fold(said)
    forms = (
        ("whose", "place", "named") if re.search(r"['’]s$", rest) else ("place", "named", "whose")
    )
    for form in forms:
        if found := re.search(rows[form], low):
            start, end = found.span("old")
            meant = f"{said[:start]}{rest.strip(' ?')}{said[end:]}"
            meant = re.sub(r"\b(\w+) \1\b", r"\1", meant)  # "of" stands in both
            again = rules.command(meant, tongue, now)
            return again or rules.Plan("question", query=meant, language=tongue.name)
    return None
