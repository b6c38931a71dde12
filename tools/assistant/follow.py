"""What is meant by words that go on from the turn before: "no, tomorrow", "the second one", "cancel
that", "and Italy?". Pure; the words are data (tongue.py)."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace

from exo.core.engine.reader import Call, Past, Plan
from exo.tools.assistant import answer, offer, pick, rules
from exo.tools.assistant.tongue import Language, fold, language, regex
from exo.tools.assistant.when import parse

_MARK = re.compile(r"\[([\w-]{6,})[^\]]*\]")
_LINE = re.compile(r"\d\. |\[")  # what a list that was answered consists of
_CLOCK = re.compile(r"\d\d:\d\d(?::\d\d)?")  # when it rings, of a reminder first, of a timer last
_PREFIX = re.compile(r"(?:for|to|auf|de) ")
LONGEST_REPLY = 4000  # letters that are looked at; a list of ours is shorter
_TOLD = ("told", "told_on", "nearest", "remember")
_DONE = ("timer", "reminder", "remember", "forget")


def follow(line: str, tongue: Language, now: datetime.datetime, past: Past) -> Plan | None:
    """The plan for `line` after `past`; None where it does not go on from it."""
    turn = _Turn(line.strip(" .!¿¡"), tongue, now, replace(past, reply=past.reply[:LONGEST_REPLY]))
    return (
        turn.change()
        or turn.reset()
        or turn.keep()
        or turn.choose()
        or turn.of_them()
        or turn.also()
    )


def judged(verdict: Plan, now: datetime.datetime, past: Past) -> Plan:
    """A verdict on the turn before, with what can be done about it."""
    turn = _Turn(
        "", language(verdict.language), now, replace(past, reply=past.reply[:LONGEST_REPLY])
    )
    found = turn.judged(str(verdict.calls[0][1].get("answer", "")))
    return replace(verdict, calls=[*verdict.calls, *found.calls]) if found else verdict


@dataclass(frozen=True)
class _Turn:
    line: str
    tongue: Language
    now: datetime.datetime
    past: Past

    def change(self) -> Plan | None:
        """What was done last is taken back, done otherwise, or once more."""
        done = [call for call in self.past.calls if call[0] in _DONE]
        if not done:
            return None
        name, back = done[-1][0], self.back(done[-1])
        if self._said("cancel") and name != "forget":
            return self._plan(back)
        if name not in _DONE[:2]:
            return None
        other, more = self._said("amend"), self._said("more")
        if other and (call := self._again(done[-1], other["rest"])):
            return self._plan(back, call)
        if more and (call := self._again(done[-1], more["rest"])):
            return self._plan(call)
        return None

    def back(self, done: Call) -> Call:
        """What takes `done` back."""
        name = done[0]
        marks = _MARK.findall(self.past.reply)
        if name == "remember" and marks:
            return "forget", {"id": marks[-1]}
        clocks = _CLOCK.findall(self.past.reply)[:: 1 if name == "reminder" else -1]
        until = {"until": clocks[0]} if clocks else {}  # what has rung since is not taken back
        return "cancel", {"what": name, "which": "last"} | until

    def judged(self, answer: str) -> Plan | None:
        """What is offered once the turn before was said to have been something else (`answer`; "": it was wrong)."""
        said, say = self.past.said.strip(), self.tongue.say
        done = [call for call in self.past.calls if call[0] in ("timer", "reminder", "remember")]
        if done and answer != "command":
            return offer.ask(say["shall_undo"], self.tongue, self.now, self.back(done[-1]))
        if len(said) > rules.LONGEST or {name for name, _ in self.past.calls} - {
            "note",
            offer.TOOL,
        }:
            return None
        if answer == "question" and said:
            meant: Call = ("recall", {"query": said.strip(" ?¿")})
            return offer.ask(say["shall_look"], self.tongue, self.now, meant)
        if answer == "note" and said and not said.endswith("?"):
            meant = ("remember", {"text": said[:1].upper() + said[1:]})
            return pick.asked(meant, self.tongue, self.now)
        if answer == "command" and (found := rules.ordered(said, self.now)):
            return pick.asked(found.calls[0], language(found.language), self.now)
        return None

    def reset(self) -> Plan | None:
        """The timer that was asked for is to run otherwise: "how long is left?", "make it twenty"."""
        lines = [each for each in self.past.reply.splitlines() if _LINE.match(each)]
        asked = [call for call in self.past.calls if call[0] == "timers"]
        other = self._said("amend")
        if not asked or asked[0][1].get("what") != "timer" or len(lines) != 1 or other is None:
            return None
        said = _PREFIX.sub("", other["rest"], count=1)
        if self.tongue.pattern("{number}").fullmatch(said):
            return self._plan(("set_time", {"count": self.tongue.value("number", said)}))
        if self.tongue.pattern("{span}").fullmatch(said):
            return self._plan(("set_time", {"seconds": self.tongue.seconds(said)}))
        return None

    def keep(self) -> Plan | None:
        """What was said before is to be remembered, if it was a statement."""
        said = self.past.said.strip()
        if self.past.calls or said.endswith("?") or not self._said("keep"):
            return None
        return self._plan(("remember", {"text": said[:1].upper() + said[1:]}))

    def choose(self) -> Plan | None:
        """One of the lines that were answered."""
        lines = [each for each in self.past.reply.splitlines() if _LINE.match(each)]
        found = self._said("nth")
        if not lines or found is None:
            return None
        word, last = found["nth"][:5], self.tongue.data["follow"]["last"]
        known = self.tongue.tables["ordinal"] | {last: float(len(lines))}
        numbers = [int(n) for each, n in known.items() if each[:5] == word]
        if not numbers or numbers[0] > len(lines):
            return None
        chosen = lines[numbers[0] - 1]
        name, args = self.past.calls[-1] if self.past.calls else ("", {})
        mark = _MARK.search(chosen)
        if name == "forget" and mark:
            return self._plan(("forget", {"id": mark[1]}))
        if name == "cancel":
            return self._plan(("cancel", args | {"number": numbers[0]}))
        return Plan("question", said=chosen, language=self.tongue.name)

    def also(self) -> Plan | None:
        """The question of before about something else."""
        found, said = self._said("also"), self.past.said
        done = {name for name, _ in self.past.calls} - {"recall"}  # an order is no question
        if found is None or done or len(said) > rules.LONGEST:
            return None
        rest = self.line[slice(*found.span("rest"))].strip(" ?")
        if regex(self.tongue.data["about"]["asks"]).match(fold(rest)):
            return None  # one of its own
        forms = ["place", "named", "whose"]
        if regex(r"['’]s$").search(rest):
            forms = ["whose", "place", "named"]
        for form in forms:
            if old := regex(self.tongue.data["follow"][form]).search(fold(said)):
                meant = said[: old.start("old")] + rest + said[old.end("old") :]
                meant = regex(r"\b(\w+) \1\b").sub(r"\1", meant)  # "of" stands in both
                again = rules.command(meant, self.tongue, self.now)
                return again or Plan("question", query=meant, language=self.tongue.name)
        return None

    def of_them(self) -> Plan | None:
        """A question about whom or what the turn before was about, by a pronoun alone: "and how old is she?"."""
        rows, say = self.tongue.data["follow"], self.tongue.say
        ours = tuple(say[each].split("{")[0] for each in _TOLD)
        low = fold(self.line)
        found = regex(rows["pronoun"]).search(low)
        asks = regex(self.tongue.data["about"]["asks"]).match(low)
        if not found or not asks or not self.past.reply.startswith(ours):
            return None
        if not (subject := self._subject()):
            return None
        whose = rows["of"].format(subject) if found["whose"] else subject
        meant = self.line[: found.start()] + whose + self.line[found.end() :]
        again = rules.command(meant, self.tongue, self.now)
        return again or Plan("question", query=meant, language=self.tongue.name)

    def _subject(self) -> str:
        """A name of both what was asked, or told, before and what was answered, or the thing asked about."""
        told = [args["text"] for name, args in self.past.calls if name == "remember"]
        said = told[-1] if told else self.past.said
        known = said if told else self.past.reply.partition(": ")[2].strip(" “”")
        rows = self.tongue.data
        # by English: nouns too, in a language that writes them large
        found = answer.people(known, language("en"))
        found = {each for each in found if not regex(rows["about"]["person"]).fullmatch(each)}
        for word in re.findall(r"[\w-]+", said):
            if fold(word) in found:
                return word[:1].upper() + word[1:]
        if regex(rows["follow"]["pronoun"]).search(fold(said)):  # still of the same one
            return found.pop().capitalize() if len(found) == 1 else ""
        thing = regex(rows["follow"]["thing"]).search(fold(said))
        return said[slice(*thing.span())] if thing else ""

    def _said(self, form: str) -> re.Match[str] | None:
        return regex(self.tongue.data["follow"][form]).fullmatch(fold(self.line))

    def _plan(self, *calls: Call) -> Plan:
        return Plan("command", list(calls), language=self.tongue.name)

    def _again(self, done: Call, said: str) -> Call | None:
        """What was done, with another time."""
        name, args = done
        said = _PREFIX.sub("", said, count=1)
        if name == "timer":
            seconds = 0.0
            if self.tongue.pattern("{span}").fullmatch(said):
                seconds = self.tongue.seconds(said)
            elif self.tongue.pattern("{number}").fullmatch(said):  # in what was counted before
                unit = max(each for each in (3600, 60, 1) if args["seconds"] % each == 0)
                seconds = self.tongue.value("number", said) * unit
            return (name, args | rules.timer_args(seconds)) if 1 <= seconds < 1e9 else None
        old = datetime.datetime.fromisoformat(args["at"]).replace(tzinfo=None)
        today = old.date() == self.now.date()
        forms = (said, self.tongue.data["follow"]["at"] + said)
        found = [parse(form, self.now, self.tongue.name, twelve=today) for form in forms]
        when = found[0] or found[1]
        if when is None or when.rest.strip(" ,"):
            return None
        if when.parts <= {"date"}:  # the time of day stays
            when = replace(when, at=datetime.datetime.combine(when.at, old.time()))
        elif when.parts <= {"clock", "part"} and not today:  # the day stays
            when = replace(when, at=datetime.datetime.combine(old, when.at.time()))
        again, changed = rules.reminder_call(when, args["text"])
        keys = {"repeat", "every"}
        kept = {} if keys & changed.keys() else {key: args[key] for key in keys & args.keys()}
        return again, kept | changed
