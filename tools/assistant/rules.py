"""What a request is, by rules alone: commands that need no language model are recognised here, with
their arguments; so are questions about the person. Pure; the words are data (tongue.py). Anything not
recognised for certain is left to the model.

Invariant: a sentence of which a part is not understood is no command."""

from __future__ import annotations

import datetime
import re
from functools import lru_cache
from typing import Any

from exo.core.engine.reader import Call, Kind, Past, Plan
from exo.tools.assistant import clause, dates, offer, talk
from exo.tools.assistant.tongue import NAMES, Language, fold, language, regex
from exo.tools.assistant.when import When, parse

LONGEST = 400  # letters of a command
_OWN_WORDS = (
    "note",
    "remember",
    "forget",
)  # what follows is kept as it was said, with its question mark


CAREFUL = ("forget", "cancel", "undo")  # nothing brings back what they take
_MYSELF = {"me", "mich", "mir", "mi", "myself"}
_NONE = {"no", "kein", "keine", "keinen", "ningun", "ninguna"}
_LIGHT = {"device", "undo", "stop", "repeat", "time", "timers", "add_time"}
_QUESTION = re.compile(
    r"\?\s*$|^\W*(?:who|what|when|where|why|how|which|is|are|do|does|did|can|could|wer|was|wann|wo\w{0,4}|warum|wie"
    r"|welche[rs]?|que|quien|cuando|donde|como|cual)\b",
)


def plan(text: str, now: datetime.datetime, past: Past | None = None) -> Plan:
    """Return what `text` asks for; no calls and nothing said when a language model has to word the
    answer. `now` is wall time with its zone, `past` the turn before."""
    line = " ".join(text.split())
    if len(line) > LONGEST:
        return Plan("chat")
    from exo.tools.assistant.follow import (
        follow,
        judged,
    )  # which reads by the rules, and so does pick
    from exo.tools.assistant.pick import answered

    for name in NAMES:
        if found := command(line, language(name), now):
            if found.calls == [("repeat", {})] and (asked := offer.open_in(past)):
                return asked.again().plan()  # the answer is still to come
            if past and [tool for tool, _ in found.calls] == ["verdict"]:
                return judged(found, now, past)
            return found if found.calls else offer.complete(line, found, now)
    if past and (found := answered(past, line, now)):
        return found
    for name in NAMES if past else ():
        if past and (found := follow(line, language(name), now, past)):
            return found
    if found := talk.answer(line) or dates.answer(line, now):
        return found
    for name in NAMES:
        if regex(language(name).data["follow"]["told"]).fullmatch(fold(line).strip(" .!¡")):
            return Plan("chat", said=language(name).say["no_keep"], language=name)
    if found := _maybe_reminder(line, now):
        return found
    asks = _QUESTION.search(fold(line)) or about_person(line, anybody=True)
    return Plan("question" if asks else "chat")


def about_person(text: str, anybody: bool = False) -> str:
    """The language of a question that wants to know a fact of the person who asks, or with `anybody` of
    whomever; "" when it is none: advice is not."""
    line = fold(" ".join(text.split()))
    for name in NAMES:
        asks, person, advice = _about(language(name))
        if asks.match(line) and (anybody or person.search(line)) and not advice.search(line):
            return name
    return ""


@lru_cache
def _about(tongue: Language) -> tuple[re.Pattern[str], ...]:
    rows = tongue.data["about"]
    return tuple(re.compile(rows[each]) for each in ("asks", "person", "advice"))


@lru_cache
def _rules(tongue: Language) -> list[tuple[dict[str, Any], re.Pattern[str]]]:
    return [
        (row, re.compile(tongue.form(form))) for row in tongue.data["rules"] for form in row["said"]
    ]


def command(line: str, tongue: Language, now: datetime.datetime) -> Plan | None:
    """The command that `line` is in this language."""
    low, polite = fold(line), tongue.data["polite"]
    after = polite["after"] + "$"
    start = len(low) - len(regex(f"^{polite['before']}").sub("", low))
    bare = low.rstrip(" !").endswith("?") and not regex(polite["asks"]).search(low)
    line, low = line[start:], low[start:]
    if regex(polite["able"]).match(low):
        return None
    low = regex(after).sub("", low)
    head = tongue.head.match(low)  # polite, or of a dialect; "baje" is asked, "bajé" is told
    if head and line[head.end() - 1].isascii():
        line, low = (f"{tongue.heads[head[0]]}{each[head.end() :]}" for each in (line, low))
    asked = regex(after).sub("", low.rstrip("?.! "))
    for row, form in _rules(tongue):
        found = form.fullmatch(low if row["tool"] in _OWN_WORDS else asked)
        if found and row["tool"] == "recall" and fold(found["query"]).strip(" ?.") in _MYSELF:
            continue  # of everything there is too much to tell
        if found and row["tool"] == "forget" and idle(tongue, asked):
            continue
        named = (found[group] or "" for group in form.groupindex) if found else ()
        if row["tool"] == "cancel" and any(fold(each).split(" ")[0] in _NONE for each in named):
            continue  # "cancel no timers"
        if found and not (row["tool"] == "add_time" and tongue.seconds(found["span"]) >= 86400):
            kind: Kind = row.get("kind", "command")
            call = _call(row, found, line, tongue)
            if bare and row["tool"] in CAREFUL:  # "cancel the reminder?"
                from exo.tools.assistant.pick import asked as asked_whether

                return asked_whether(call, tongue, now)
            return Plan(kind, [call], language=tongue.name)
    line = line[: len(asked)]
    return (
        _timer(line, asked, tongue)
        or _reminder(line, asked, tongue, now)
        or _beside(line, tongue, now)
    )


def ordered(line: str, now: datetime.datetime) -> Plan | None:
    """The command that a question is, taken for an order: "can I set a timer for five minutes?"."""
    line = line.rstrip(" ?!.")
    for name in NAMES:
        tongue = language(name)
        low = fold(line)
        start = len(low) - len(regex(f"^{tongue.data['polite']['before']}").sub("", low))
        asked = regex(tongue.data["polite"]["able"]).match(low[start:])
        found = command(line[start + (asked.end() if asked else 0) :].strip(), tongue, now)
        if found and found.calls and found.calls[0][0] != "verdict":
            return found
    return None


def able(line: str, tongue: Language) -> bool:
    """Whether a sentence asks if a thing can be done: "can I set a timer?"."""
    low = regex(f"^{tongue.data['polite']['before']}").sub("", fold(line))
    return bool(regex(tongue.data["polite"]["able"]).match(low))


@lru_cache
def _idioms(tongue: Language) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in tongue.data["forget"]["idle"]))


def idle(tongue: Language, low: str) -> bool:
    """Whether what has the words of an order to forget is none: "forget it", "never forget that ..."."""
    return bool(_idioms(tongue).search(low))


def _beside(line: str, tongue: Language, now: datetime.datetime) -> Plan | None:
    """An order of what can be taken back at once, with a reason before or behind it: "go to sleep, I won't need
    you till lunch", "I can't see a thing, brighter please"."""
    parts = re.split(r"[,;.!]+ ", line, maxsplit=1)
    for said, reason in (parts, parts[::-1]) if len(parts) == 2 else ():
        low = fold(reason).strip(" .!")
        if reason is parts[0] and fold(said).startswith("what"):  # "..., what now" asks for nothing
            continue
        whole = "?" not in said and low and len(f"{said} {reason}".split()) > 3
        if whole and regex(tongue.data["polite"]["reason"]).fullmatch(low):
            found = command(said, tongue, now)
            if found and found.calls and {tool for tool, _ in found.calls} <= _LIGHT:
                return found
    return None


def _call(row: dict[str, Any], found: re.Match[str], line: str, tongue: Language) -> Call:
    args: dict[str, Any] = dict(row.get("args", {}))
    for group in found.re.groupindex:
        start, end = found.span(group)
        name, word = group.rstrip("23456789"), line[start:end].strip()
        if start < 0 or name == "percent":
            continue
        if name == "span":
            args["seconds"] = tongue.seconds(fold(word))
        elif name in ("number", "level"):  # up to ten it is of ten, else of a hundred
            value = tongue.value(name, fold(word))
            whole = name == "level" or group != "number" or found["percent"] or value > 10
            args["value"] = min(100, round(value if whole else value * 10))
        else:
            args[name] = word
    if fold(args.get("label", "")).startswith(tongue.data["follow"]["last"]):
        args = {"which": "last", "what": args["what"]}
    if "what" in args:
        timers = tongue.data["timer"]["names"]
        what, alarm = fold(args["what"]), regex(tongue.data["list"]["alarm"])
        args["what"] = what and (
            "timer" if what in timers else "alarm" if alarm.match(what) else "reminder"
        )
    if row["tool"] == "timers" and (what := _kind(found[0], tongue)):
        args["what"] = what
    if row["tool"] in ("remember", "note"):
        args["text"] = clause.statement(line[: found.end("text")], found.start("text"), tongue)
    if row["tool"] == "remember":  # a sentence of its own
        args["text"] = args["text"][:1].upper() + args["text"][1:]
    return row["tool"], args


def _kind(low: str, tongue: Language) -> str:
    """Which of timers and reminders a question for what is set wants to hear of; "" for both: an alarm may be either."""
    said = {
        kind for kind, form in tongue.data["list"].items() if regex(rf"\b(?:{form})\b").search(low)
    }
    named = said - {"left"}
    if named in ({"timer"}, {"reminder"}):
        return named.pop()
    return "timer" if said == {"left"} else ""


def _timer(line: str, low: str, tongue: Language) -> Plan | None:
    rows = tongue.data["timer"]
    word = regex(rf"\b(?:{rows['said']})\b").search(low)
    if word is None or regex(rows["talk"]).match(low) or regex(rows["denied"]).search(low):
        return None
    spans = [found.span() for found in tongue.pattern("{span}").finditer(low)]
    if not spans and regex(rows["ask"]).fullmatch(low):
        return Plan("command", said=tongue.say["how_long"], language=tongue.name)
    left = low
    for start, end in spans:
        left, line = (f"{each[:start]}{' ' * (end - start)}{each[end:]}" for each in (left, line))
    filler = rf"\b(?:{rows['filler']})\b"
    label, left = "", left.rstrip(" ,.")
    if found := regex(rf"\b{rows['label']}$").search(left):
        start, end = found.span("label")
        words = line[start:end].split()
        while words and regex(rows["filler"]).fullmatch(fold(words[-1])):
            words.pop()
        label, left = " ".join(words), left[: found.start()]
    rest = " ".join(regex(rf"{filler}|[,.:!-]").sub(" ", left).split())
    if rest and not label and re.search(rf"\b{re.escape(rest)}$", low[: word.start()].strip(" -")):
        place = low.index(rest)  # "set a pasta timer"
        label, rest = line[place : place + len(rest)], ""
    seconds = [tongue.seconds(low[start:end]) for start, end in spans]
    counts = set(fold(label).split()) & (tongue.tables["number"].keys() - {"a", "an", "another"})
    if counts or regex(rows["unsure"]).search(fold(label)):
        return None  # "five or ten minutes", "one hundred and twenty minutes"
    if rest or not seconds or not all(1 <= each < 1e9 for each in seconds):
        return None
    calls = [("timer", timer_args(each, label)) for each in seconds]
    return Plan("command", calls, language=tongue.name)


def timer_args(seconds: float, label: str = "") -> dict[str, Any]:
    args: dict[str, Any] = {"seconds": int(seconds) if seconds == int(seconds) else seconds}
    return args | ({"label": label} if label else {})


def _reminder(line: str, low: str, tongue: Language, now: datetime.datetime) -> Plan | None:
    rows = tongue.data["reminder"]
    for form in [*rows["said"], *rows["alarm"], *rows["ring"], *rows["weak"]]:
        found = regex(form).fullmatch(low)
        if found is None:
            continue
        before, body = (line[slice(*found.span(group))] for group in ("before", "body"))
        if before and not (
            (early := parse(before, now, tongue.name)) and not early.rest.strip(", ")
        ):
            continue
        morning = form in rows["alarm"]  # unless more was said
        wakes = morning or form in rows["ring"]
        whole = [f"{before} {body}".strip(), *[tongue.data["follow"]["at"] + body] * wakes]
        if wakes and not before and tongue.pattern("{span}").fullmatch(fold(body)):
            args = timer_args(tongue.seconds(fold(body)), tongue.say["alarm"])
            return Plan("command", [("timer", args)], language=tongue.name)
        times = filter(None, (parse(each, now, tongue.name, not morning) for each in whole))
        when = min(times, key=lambda each: len(each.rest), default=None)
        if when is None:
            if form in rows["said"] and regex(rows["ask"]).match(fold(body)):
                return Plan("command", said=tongue.say["when"], language=tongue.name)
            continue
        text = when.rest.strip(" ,.!?:")
        lead = regex(rows["lead"]).match(fold(text))
        if form in rows["weak"] and not regex(rows["weak_lead"]).match(fold(text)):
            continue
        told = lead is not None and lead[0] == rows.get("told")
        text = text[lead.end() if lead else 0 :].strip(" ,.!?:")
        text = told and clause.main(text, tongue) or clause.infinitive(text, tongue)
        if wakes and regex(rf"(?:(?:{rows['filler']})\b ?)*").fullmatch(fold(text)):
            text = tongue.say["alarm"]
            if when.parts == {"span"}:
                return Plan("command", [("timer", timer_args(when.seconds))], language=tongue.name)
        elif wakes and lead is None:
            continue
        if text and not text.isdigit():
            return Plan("command", [reminder_call(when, text)], language=tongue.name)
    return None


def _maybe_reminder(line: str, now: datetime.datetime) -> Plan | None:
    """The question whether to remind, for what is said with a span before it alone: "in 40 minutes take the cake out"."""
    from exo.tools.assistant.pick import asked

    for tongue in map(language, NAMES):
        form = tongue.data["reminder"].get("bare")
        found = form and tongue.pattern(form).fullmatch(fold(line).rstrip(" .!"))
        if found and "?" not in line:
            when = parse(line[: found.start("text")], now, tongue.name)
            text = line[slice(*found.span("text"))]
            if when and when.parts == {"span"} and not when.rest.strip(" ,"):
                return asked(reminder_call(when, text), tongue, now)
    return None


def reminder_call(when: When, text: str) -> Call:
    """A reminder's call; a span under a minute is a timer's."""
    if 1 <= when.seconds < 60:
        return "timer", timer_args(when.seconds, text)
    step = "minutes" if when.at.tzinfo is None else "seconds"
    args = {"at": when.at.isoformat(timespec=step), "text": text}
    if when.every:
        return "reminder", args | {"every": when.every}
    return "reminder", args | ({"repeat": when.repeat} if when.repeat else {})
