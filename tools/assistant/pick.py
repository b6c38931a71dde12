"""An order that no form takes, where a decision (`request.tool`) says which tool it wants: its slots are cut from the
sentence with the same tables and the same grammar of times as those of the forms. Pure; the words are data (pick.toml).

Invariant: what is not sure, not complete or not easily undone is asked about; nothing runs of a sentence that denies,
asks or tells of what others did."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from exo.core.engine.reader import Call, Past, Plan
from exo.tools.assistant import clause, offer, rules
from exo.tools.assistant.tongue import (
    NAMES,
    Language,
    duration,
    fold,
    language,
    moment,
    regex,
    told,
)
from exo.tools.assistant.when import named, parse

RUN = 0.8  # of the calibrated probability: above it a complete order runs (README.md says how it was found)
ASK = 0.6  # above it the person is asked first
DAYS = 30 * 86400  # seconds: the longest timer
_EDGES = " ,.!?:;-–¿¡"
_DONE: dict[str, Call] = {
    "time": ("time", {}),
    "timers": ("timers", {}),
    "undo": ("undo", {}),
    "stop": ("stop", {}),
    "repeat": ("repeat", {}),
    "battery": ("device", {"action": "battery"}),
    "sleep": ("device", {"action": "sleep"}),
    "mute": ("device", {"action": "mute", "value": 1}),
    "unmute": ("device", {"action": "mute", "value": 0}),
    "volume.up": ("device", {"action": "volume", "delta": 10}),
    "volume.down": ("device", {"action": "volume", "delta": -10}),
    "brightness.up": ("device", {"action": "brightness", "delta": 10}),
    "brightness.down": ("device", {"action": "brightness", "delta": -10}),
}
_TEXTS = {
    "note": ("note", "text"),
    "remember": ("remember", "text"),
    "forget": ("forget", "id"),
    "recall": ("recall", "query"),
}


@lru_cache
def _data() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("pick.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Filled:
    """`call` is whole; without one `missing` names the question for what is not said ("": it is not
    understood); `ordered`, whether words of an order stand around the slots."""

    call: Call | None = None
    missing: str = ""
    ordered: bool = True


def pick(text: str, tool: str, sure: float, now: datetime.datetime) -> Plan | None:
    """What to do for an order that wants `tool` with the probability `sure`; None: leave it to the model."""
    line = " ".join(text.split())
    data = _data()
    if sure <= ASK or len(line) > rules.LONGEST:
        return None
    missing: list[tuple[str, Language]] = []
    for tongue in spoken(line):
        if _vetoed(line, tool, data[tongue.name]):
            return None
        idle = tool == "forget" and rules.idle(tongue, fold(line))
        if idle or rules.able(line, tongue):
            return None
        filled = fill(line, tool, tongue, now)
        if filled.call:
            if not filled.ordered:
                return None
            if sure > RUN and tool not in rules.CAREFUL:
                return Plan("command", [filled.call], language=tongue.name)
            return asked(filled.call, tongue, now)
        missing.append((filled.missing, tongue))
    if sure <= RUN or not all(slot for slot, _ in missing):
        return None
    slot, tongue = missing[0]
    what = Plan("command", said=tongue.say[slot], language=tongue.name)
    return offer.complete(line, what, now)


def _vetoed(line: str, tool: str, words: dict[str, Any]) -> bool:
    """Whether a sentence denies, asks or tells what `tool` would do."""
    low, data = fold(line).strip(_EDGES), _data()
    if regex(words["never"]).search(low):
        return True
    if tool == "recall" and not regex(words["kept"]).search(low):
        return True  # a plain question: what is known may answer it
    tells = tool not in data["telling"] and regex(words["tells"]).search(low)
    tells = tells or regex(words["talks"]).search(low)
    if tool in data["own"] and regex(rf"\b(?:{words['elsewhere']})\b").search(low):
        return True
    return bool(tells or tool in data["setting"] and regex(words["denies"]).search(low))


def asked(call: Call, tongue: Language, now: datetime.datetime) -> Plan:
    """The question whether to make `call`."""
    name, args = call
    data, facts = _data()[tongue.name], dict(args)
    if name == "device":
        name = str(args["action"])
        if name == "mute":
            name = "mute" if args["value"] else "unmute"
        elif name in ("volume", "brightness"):
            name += ".set" if "value" in args else ".up" if args["delta"] > 0 else ".down"
    elif name in ("timer", "add_time"):
        label = str(args.get("label", ""))
        facts["label"] = told(tongue.name, "label", label=label) if label else ""
        facts["span"] = duration(args["seconds"], tongue.name)
    elif name == "reminder":
        name = "alarm" if args["text"] == tongue.say["alarm"] else name
        at = datetime.datetime.fromisoformat(args["at"])
        at = at if at.tzinfo else at.replace(tzinfo=now.tzinfo)
        again = f"every {args['every']}m" if "every" in args else args.get("repeat", "")
        facts |= moment(at, tongue.name, again)
    elif name == "cancel":
        facts["what"] = data["what"][args["what"]]
        if args.get("label"):
            facts["what"] += f" ({args['label']})"
    elif name in ("forget", "recall"):
        facts["text"] = args["id" if name == "forget" else "query"]
    return offer.ask(data["shall"][name].format(**facts), tongue, now, call)


def answered(past: Past, line: str, now: datetime.datetime) -> Plan | None:
    """The plan for `line` where it answers the question that the turn before asked; None where it does not."""
    found = offer.open_in(past)
    if found is None:
        return None
    tongue = language(found.language)
    if found.tool:
        return offer.answer(found, line, now, _data()[found.language])
    denied = regex(tongue.data["timer"]["denied"]).search(fold(line))
    if denied or line.endswith("?") or not _bare(line, tongue, now):  # a sentence of its own
        return None
    said = found.said.rstrip(".!? ")
    plan = rules.command(f"{said} {line}", tongue, now)
    if plan is None or not plan.calls:
        tool = "timer" if found.text == tongue.say["how_long"] else "reminder"
        filled = fill(f"{said} {line}", tool, tongue, now)
        plan = Plan("command", [filled.call], language=tongue.name) if filled.call else None
    if plan is None or not found.late(now):
        return plan
    what = asked(plan.calls[0], tongue, now)
    return offer.ask(offer.again(what.said, tongue), tongue, now, plan.calls[0])


def _bare(line: str, tongue: Language, now: datetime.datetime) -> bool:
    """Whether `line` is a span or a time and little else: "ten minutes please", not "the film took two hours"."""
    low = fold(line)
    when = parse(line, now, tongue.name)
    rests = [tongue.pattern("{span}").sub(" ", low), fold(when.rest) if when else low]
    fillers = {*_data()[tongue.name]["fillers"].split()}
    return any({*re.findall(r"[\w']+", rest)} <= fillers for rest in rests)


def spoken(line: str) -> Sequence[Language]:
    """The languages that `line` may be in, the likeliest alone where its words tell it."""
    words = re.findall(r"[\w']+", fold(line))
    counts = {
        name: sum(word in known for word in words)
        for name in NAMES
        for known in [set(_data()[name]["words"].split())]
    }
    most = max(counts.values())
    return [language(name) for name in NAMES if counts[name] == most]


def fill(line: str, tool: str, tongue: Language, now: datetime.datetime) -> Filled:
    """The call of `tool` with the slots that `line` has."""
    low = fold(line)
    data = _data()[tongue.name]
    if tool in _DONE:
        name, args = _DONE[tool]
        if (
            tool.endswith((".up", ".down"))
            and (value := _value(low, tongue, data["to"])) is not None
        ):
            name, args = "device", {"action": tool.partition(".")[0], "value": value}
        return Filled((name, dict(args)))
    if tool in ("volume.set", "brightness.set"):
        value = _value(low, tongue)
        action = {"action": tool.partition(".")[0], "value": value}
        return Filled() if value is None else Filled(("device", action))
    if tool == "cancel":
        return _cancel(low, tongue, data)
    if tool in ("timer", "add_time"):
        return _span(line, low, tool, tongue, data)
    if tool in ("alarm", "reminder"):
        return _reminder(line, tool, tongue, data, now)
    if tool in _TEXTS:
        text, cut = stripped(line, data[tool])
        if regex(language(tongue.name).data["follow"]["told"]).fullmatch(low.strip(_EDGES)):
            return Filled()
        if not text or not cut and not (tool == "note" and regex(data["list"]).search(low)):
            return Filled()
        if tool in ("remember", "note") and text in line:
            text = clause.statement(line[: line.index(text) + len(text)], line.index(text), tongue)
        if tool == "remember":
            text = text[:1].upper() + text[1:]
        name, key = _TEXTS[tool]
        return Filled((name, {key: text}))
    return Filled()


def stripped(line: str, forms: Sequence[str]) -> tuple[str, bool]:
    """(`line` without what the forms find at its head and its end, whether there was any)."""
    text, cut, changed = line.strip(_EDGES), False, True
    while changed:
        changed = False
        for form in forms:
            low = fold(text)
            found = regex(rf"(?:{form})(?!\w)").match(low)
            if found is None or not found.end():
                ends = [
                    each
                    for each in regex(rf"(?<!\w)(?:{form})").finditer(low)
                    if each.end() == len(low)
                ]
                found = ends[0] if ends and ends[0].start() < len(low) else None
            if found and found.end() > found.start():
                text = f"{text[: found.start()]} {text[found.end() :]}".strip(_EDGES)
                cut = changed = True
    lead = regex(r"(?:that|to|about|of|dass|daran|que|de|wegen)\b ?").match(fold(text))
    text = text[lead.end() :] if lead else text
    return text.strip(_EDGES), cut


def _span(line: str, low: str, tool: str, tongue: Language, data: dict[str, Any]) -> Filled:
    spans = [found.span() for found in tongue.pattern("{span}").finditer(low)]
    if not spans:
        return (
            Filled(missing="how_long")
            if tool == "timer" and not regex(r"\d").search(low)
            else Filled()
        )
    (start, end), *others = spans
    seconds = tongue.seconds(low[start:end])
    if others or not 1 <= seconds <= DAYS:
        return Filled()
    if tool == "add_time":
        return Filled(("add_time", {"seconds": rules.timer_args(seconds)["seconds"]}))
    left = f"{low[:start]}{' ' * (end - start)}{low[end:]}"
    if regex(r"\d").search(left) or regex(rf"\b(?:{data['several']})\b").search(left):
        return Filled()  # more than one is wanted
    label = ""
    for form in data["label"]:
        if (found := regex(form).search(left)) and found["label"] not in data["words"].split():
            label = line[slice(*found.span("label"))]
            break
    call = "timer", rules.timer_args(seconds, label)
    ordered = bool(regex(rf"(?<!\w)(?:{data['counts']})").search(low))
    return Filled(call, ordered=ordered)


def _reminder(
    line: str, tool: str, tongue: Language, data: dict[str, Any], now: datetime.datetime
) -> Filled:
    wakes = tool == "alarm"
    when = parse(line, now, tongue.name, twelve=not wakes)
    if when is None:
        return Filled() if named(line, tongue.name) else Filled(missing="when")
    text, cut = stripped(when.rest, data["strip"])
    text = clause.infinitive(text, tongue)
    if wakes or not text and regex(data["wake"]).search(fold(line)):
        text, tool = tongue.say["alarm"], "alarm"
    if not text or text.isdigit():
        return Filled()
    call = rules.reminder_call(when, text)
    if tool == "alarm" and when.parts == {"span"} and when.seconds <= DAYS:
        call = "timer", rules.timer_args(when.seconds, text)
    return Filled(call, ordered=wakes or cut)


def _cancel(low: str, tongue: Language, data: dict[str, Any]) -> Filled:
    kinds = [
        what
        for what, words in (("timer", data["timers"]), ("reminder", data["alarms"]))
        if regex(rf"\b(?:{words})\b").search(low)
    ]
    if not kinds:
        return Filled()
    if kinds == ["reminder"] and regex(tongue.data["list"]["alarm"]).search(low):
        kinds = ["alarm"]
    args = {"what": kinds[0]} | (
        {"which": "all"} if regex(rf"\b(?:{data['all']})\b").search(low) else {}
    )
    return Filled(("cancel", args))


def _value(low: str, tongue: Language, after: str = "") -> int | None:
    """Of a hundred: the one level that is said, or that is said `after` such a word; None for none, or several."""
    low = regex(r"\b(?:out )?(?:of|von|de) (?:ten|10|zehn|diez)\b").sub("", low)
    before = rf"(?<!\w){after} " if after else r"(?<!\w)"
    form = tongue.form(
        r"(?:{number}(?P<percent> ?(?:%|percent|per cent|prozent|por ?ciento))?|{level})"
    )
    found = []
    for each in regex(rf"{before}{form}(?!\w)").finditer(low):
        number, level = each["number"], each["level"]
        if level:
            found.append(tongue.value("level", level))
        elif number[0].isdigit() or tongue.value("number", number) > 1:
            value = tongue.value("number", number)
            found.append(value if each["percent"] or value > 10 else value * 10)
    return min(100, round(found[0])) if len(set(found)) == 1 else None
