"""What is known about programs, read from programs.toml and the person's own. Owns how entries are put
together and how a call's words are matched against them.

Invariant: a person's table adds entries and raises effects; none of ours becomes weaker by it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Any

from exo.core.gate.axes import Axes
from exo.core.gate.policy import fit, texts
from exo.tools.gate.shell import Word

UNKNOWN = "unknown"
_STRONG = (("losing", "lose"), ("posting", "post"), ("running", UNKNOWN))
_QUIET = {
    "-n",
    "-v",
    "-q",
    "-x",
    "-j",
    "-h",
    "-a",
    "--json",
    "--line-numbers",
    "--numeric",
    "--verbose",
}
_TRIES = {"-n", "--dry-run", "-nd", "-ndx"}
_LISTS = re.compile(r"--?(list|show|print|get|status|info|query|dump|check|verify)[\w-]*|-[lLvVh]")
_SECRETS = re.compile(
    r"(?i)\b(secret|token|password|credential|key|config|env|variable|var|kubeconfig)s?\b"
)
_OFF = ("false", "0", "no", "off", "none")  # --dry-run=false


@dataclass(frozen=True)
class Effect(Axes):
    """What the table says that an action does; `changes`: more than looking."""

    name: str = ""
    changes: bool = True

    @classmethod
    def of(cls, name: str, row: dict[str, Any]) -> Effect:
        return replace(cls(**row), name=name)


class Table:
    """`programs` gives each program's entry, `effects` what they mean, `words` and `files` lists."""

    def __init__(self, rows: dict[str, Any]) -> None:
        self.effects = {name: Effect.of(name, row) for name, row in rows["effects"].items()}
        self.effects |= {UNKNOWN: Effect(name=UNKNOWN)}
        self.words: dict[str, Any] = rows["words"]
        self.files: dict[str, list[str]] = rows["files"]
        self.names = frozenset(self.words["names"].split())
        self.programs: dict[str, dict[str, Any]] = {}
        for effect, names in rows["plain"].items():
            self.programs |= dict.fromkeys(names.split(), {"kind": "plain", "otherwise": effect})
        for effect, names in rows["verbs"].items():
            self.programs |= dict.fromkeys(names.split(), {"verbs": True, "otherwise": effect})
        lists = ("looking", "both", "losing", "posting", "running", "changing", "local")
        self.verbs = {name: frozenset(self.words[name].split()) for name in lists}
        for name, marks in rows["looks"].items():
            self.programs[name] = self.programs[name] | {"looks": marks.split()}
        for name in self.words["local_tools"].split():
            self.programs[name] = self.programs[name] | {"local": True}
        for name, row in rows["program"].items():
            self.programs[name] = rows["program"][row["like"]] if "like" in row else row

    def also(self, rows: dict[str, Any]) -> Table:
        """This table with a person's own entries. Raises ValueError for what does not fit."""
        table = Table.__new__(Table)
        table.__dict__ |= self.__dict__ | {"programs": dict(self.programs)}
        effects = tuple(self.effects)
        entry = {"rules": {"*": effects}, "otherwise": effects, "values": texts}
        for name, row in fit("", rows, {"program": {"*": entry}}).get("program", {}).items():
            table.programs[name] = row | {"base": self.programs.get(name)}
        return table

    def effect(self, entry: dict[str, Any], words: Sequence[Word]) -> str:
        """The effect of a program's entry for these words; "unknown" when no rule fits."""
        flags, plain, texts = split(entry, words)
        rows: list[tuple[tuple[int, int, str], str]] = []
        for rule, effect in entry.get("rules", {}).items():
            wanted = rule.split()
            steps = [word for word in wanted if word[0] not in "-."]
            options = [word for word in wanted if word[0] in "-."]
            fits = steps == plain[: len(steps)] and (rule or not plain or effect == "@")
            if fits and all(_has(flags, plain, each) for each in options):
                rows.append(((len(steps), len(options) + ("=" in rule), effect), rule))
        found = [row for row, _ in rows]
        if "looks" in entry:
            marks = {flag for flag, _ in flags}
            if marks <= {*entry["looks"], *_QUIET} and marks & {*entry["looks"]}:
                return "look"
            if "." in entry["looks"] and not plain and marks <= _QUIET:
                return "look"
        runs = any(row[2] == "@" for row in found) or self.verbs["running"] & set(plain[:3])
        if not runs and {"rules", "verbs"} & set(entry):
            if any(_has(flags, plain, each) for each in self.words["trying"]):
                return "look"
            if any(row[2] == "look" and _TRIES & set(rule.split()) for row, rule in rows):
                return "look"
        if not found:
            return self._by_verb(entry, flags, texts)
        best = max(found)[:2]
        return max((row[2] for row in found if row[:2] == best), key=self.weight)

    def _by_verb(
        self, entry: dict[str, Any], flags: Sequence[tuple[str, Word | None]], words: Sequence[Word]
    ) -> str:
        """The effect by what the first words are called; the entry's own where no verb is known."""
        own = str(entry.get("otherwise", UNKNOWN))
        if not {"rules", "verbs"} & set(entry) or own in ("secret", "look"):
            return own
        if not words and flags and "verbs" in entry:
            return "look" if all(_LISTS.fullmatch(flag) for flag, _ in flags) else own
        if "local" in entry and words and words[0].sure:
            sent = {"--remote", "--live", "--prod", "--push"} & {flag for flag, _ in flags}
            if not sent and words[0].text.partition(":")[0] in self.verbs["local"]:
                return "build"
        for last in [
            w.text.rpartition(":")[2] for w in words[:1] if re.fullmatch(r"[\w:-]+", w.text)
        ]:
            if last != words[0].text and not self._kinds(last):
                return own  # of ps:resize the last part tells
        heads = [(part, w.sure) for w in words[:4] for part in reversed(w.text.split(":"))]
        for n, (head, sure) in enumerate(heads):
            if not sure and "loose" not in entry:
                return UNKNOWN
            kinds = self._kinds(head)
            if "both" in kinds and n + 1 < len(heads) and "looking" in self._kinds(heads[n + 1][0]):
                continue
            if "looking" in kinds and kinds <= {"looking", "both"} and n < 3:
                far = self.effects[own].exposure != "private" if own in self.effects else True
                named = any(_SECRETS.search(word.text) for word in words[:3])
                return "secret" if far and named else "look"
            for kind, effect in _STRONG:
                if kind in kinds:
                    return max(own, effect, key=self.weight)
            if kinds:
                return own
        return own

    def _kinds(self, head: str) -> set[str]:
        """What kinds of verb a word may be: as a whole, else by its first part (list-units)."""
        whole = {name for name, verbs in self.verbs.items() if head in verbs and name != "local"}
        parts = re.split("[-_]", head)
        strong = {name for name, _ in _STRONG if self.verbs[name] & set(parts)}
        looks = parts[0] in self.verbs["looking"] or head.startswith("show")
        noun = parts[-1] in ("status", "list", "info", "stats", "show", "version", "logs", "help")
        looks = looks or noun and len(parts) > 1 and parts[0] not in self.verbs["changing"]
        return whole or strong or ({"looking"} if looks else set())

    def weight(self, effect: str) -> int:
        return (
            50 if effect not in self.effects or effect == UNKNOWN else self.effects[effect].weight
        )


def split(
    entry: dict[str, Any], words: Sequence[Word]
) -> tuple[list[tuple[str, Word | None]], list[str], list[Word]]:
    """(flags with their values, texts that are no flags, the same as words)."""
    takes = [*entry.get("values", ()), *entry.get("writes", ()), *entry.get("files", ())]
    flags, plain = list[tuple[str, Word | None]](), list[Word]()
    at, ended = 0, False
    while at < len(words):
        word, text = words[at], words[at].text
        at += 1
        if ended or not text.startswith("-") or text == "-":
            plain.append(word)
        elif text == "--":
            ended = True
            flags.append(("--", None))
        elif "=" in text and text.startswith("--"):
            name, _, value = text.partition("=")
            flags.append((name, replace(word, text=value)))
        elif text in takes and at < len(words):
            flags.append((text, words[at]))
            at += 1
        elif found := _clustered(text, takes):
            flags.append((text[: found + 1], None))
            rest = text[found + 1 :]
            if rest:
                flags.append((f"-{text[found]}", replace(word, text=rest.removeprefix("="))))
            elif at < len(words):
                flags.append((f"-{text[found]}", words[at]))
                at += 1
            else:
                flags.append((f"-{text[found]}", None))
        else:
            flags.append((text, None))
    return flags, [word.text for word in plain], plain


def _clustered(text: str, takes: Sequence[str]) -> int:
    """Where in a word of short flags (-sXPOST) the one stands that takes a value; 0: in none."""
    if text.startswith("--"):
        return 0
    return next((n for n, char in enumerate(text) if n and f"-{char}" in takes), 0)


def _has(flags: Sequence[tuple[str, Word | None]], plain: Sequence[str], wanted: str) -> bool:
    """Whether a flag is there: whole, shortened, or among others in one word (-xf)."""
    if wanted[0] == ".":
        return wanted in plain or "*" in plain
    short = re.fullmatch(r"-\w", wanted)
    wanted, _, only = wanted.partition("=")
    for flag, value in flags:
        if only and (value is None or value.text != only):
            continue
        if value is not None and value.text.lower() in _OFF:
            continue
        if flag == wanted or len(flag) > 3 and flag[:2] == "--" and wanted.startswith(flag):
            return True
        if short and re.fullmatch(r"-\w+", flag) and wanted[1] in flag:
            return True
    return False


@lru_cache(1)
def builtin() -> Table:
    """The table that comes with Exo."""
    text = resources.files("exo.tools.gate").joinpath("programs.toml").read_text("utf-8")
    return Table(tomllib.loads(text))
