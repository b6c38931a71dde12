"""Words of the shell: quotes, variables, substitutions, braces, patterns. Owns what becomes of a word;
leaves the commands in a substitution to its sub-class.

Invariant: a piece that is not known makes the word unsure; every step is counted, so that no text takes
more than its length."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TypeVar

DEPTH = 24  # substitutions within each other
STEPS = 20_000  # words, operators and pieces of words
TEMP = "/tmp/mktemp.XXXXXXXX"  # what mktemp gives
VALUE = 4096  # characters of a variable that are followed
CHOICES = 32  # words that a brace or a loop may stand for

_PLAIN = re.compile(r"[^\s'\"\\$`|&;<>()*?\[{~]+|~")
_QUOTED = re.compile(r"[^\"\\$`}]+|\}")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9?#$!@*-]")
_BRACES = re.compile(r"\{[^\s{}'\"\\$`;|&<>()]*,[^\s{}'\"\\$`;|&<>()]*\}")
_RANGE = re.compile(r"\{\d+\.\.\d+\}")
_ODD_BRACES = re.compile(r"\{[^\s;|&]*(?:,|\.\.)[^\n]*\}")
_ARITHMETIC = re.compile(r"[\w\s+\-*/%<>=!&|^~?:;,.$#\[\]{}]+|[()]")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|[0-7]{1,3}|c.|.)", re.S)
_TILDE = re.compile(r"~([\w.-]*)(?=[/\s;|&()<>:]|\Z)")
_Part = TypeVar("_Part", str, int)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "e": "\x1b",
    "a": "\a",
    "b": "\b",
    "v": "\v",
    "f": "\f",
}


@dataclass(frozen=True)
class Word:
    """`sure`: exactly this text is passed. Else `names` are unknown variables in it, `inner` the commands
    whose output is in it. `choice`: one of several; `glob`: a pattern; `files`: of a loop over files."""

    text: str
    sure: bool = True
    glob: bool = False
    choice: bool = False
    names: tuple[str, ...] = ()
    inner: tuple[int, ...] = ()


@dataclass
class Command:
    """One program with its words. `feeds` are the commands whose output it reads, `here` a heredoc or
    here-string, `after` the operator that follows, `scope` the subshell it runs in, `body` the function that
    it is part of; `block`: its redirections are those of a block that ends before it."""

    words: list[Word] = field(default_factory=list)
    redirects: list[tuple[str, Word]] = field(default_factory=list)
    assigned: list[tuple[str, Word]] = field(default_factory=list)
    here: Word | None = None
    feeds: range = range(0)
    piped: bool = False
    after: str = ""
    scope: int = 0
    body: str = ""
    block: bool = False


@dataclass
class Script:
    """All commands that may run, in their order; `faults` say what was not understood; `scopes` gives
    each subshell's parent; `temps` are variables that hold a fresh name from mktemp."""

    commands: list[Command] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    temps: set[str] = field(default_factory=set)
    scopes: list[int] = field(default_factory=lambda: [0])


class Stop(Exception):
    """The text cannot be followed further."""


@dataclass
class State:
    """What nested texts share."""

    script: Script
    values: dict[str, list[Word]]
    often: set[str]  # variables set in more than one place
    flow: bool
    steps: int = 0
    depth: int = 0
    open: list[str] = field(default_factory=list)  # names of the functions around

    def step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > STEPS:
            raise Stop("it is too long to judge")


class Field:
    """A word in the making."""

    def __init__(self) -> None:
        self.heads, self.pieces = [""], list[str]()
        self.word = Word("")
        self.some = False  # also an empty quote makes a word

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.some = True

    def mark(self, text: str, **more: object) -> None:
        self.add(text)
        self.word = replace(self.word, **more)  # type: ignore[arg-type]

    def unsure(self, text: str, names: tuple[str, ...] = (), inner: tuple[int, ...] = ()) -> None:
        word = self.word
        self.mark(text, sure=False, names=_few(word.names + names), inner=_few(word.inner + inner))

    def several(self, texts: list[str]) -> None:
        if not self.word.sure:
            return self.add(texts[0])
        heads = self.texts()
        if len(heads) * len(texts) > CHOICES or sum(map(len, heads)) > VALUE:
            return self.unsure(texts[0])
        self.heads, self.pieces, self.some = [a + b for a in heads for b in texts], [], True
        return None

    def texts(self) -> list[str]:
        tail = "".join(self.pieces)
        return [head + tail for head in self.heads]

    def words(self) -> list[Word]:
        return [replace(self.word, text=text) for text in self.texts()] if self.some else []


class Words:
    """Reads words of one text, from `at` on."""

    def __init__(self, text: str, state: State) -> None:
        self.text, self.at, self.state = text, 0, state
        self.waiting: list[tuple[Command, str, bool, bool]] = []  # heredocs

    def commands(self, end: str = "") -> None:
        """Everything until `end`."""
        raise NotImplementedError

    def word(self, split: bool = True) -> list[Word]:
        """The word here, several when braces or variables make several; [] when there is none."""
        text, place, done = self.text, Field(), list[Word]()
        tilde = _TILDE.match(text, self.at)
        if tilde:
            self.at = tilde.end()
            home = self.state.values.get("HOME", [Word("/")])[0].text
            if tilde[1]:
                place.unsure(tilde[0], names=("~",))
            else:
                place.add(home)
        while self.at < len(text):
            self.state.step()
            char = text[self.at]
            if found := _PLAIN.match(text, self.at):
                self.at = found.end()
                place.add(found[0])
            elif char == "'":
                end = text.find("'", self.at + 1)
                if end < 0:
                    raise Stop("a quote is not closed")
                place.add(text[self.at + 1 : end])
                self.at = end + 1
            elif char == '"':
                self.at += 1
                place.add("")
                self.inside(place, '"')
            elif char == "\\":
                following = text[self.at + 1 : self.at + 2]
                if following != "\n":
                    place.add(following)
                self.at += 2
            elif char in "$`":
                self._dollar(place, done if split else None)
            elif char in "*?[":
                self.at += 1
                place.mark(char, glob=True)
            elif char == "{":
                self._braces(place)
            elif char in "<>" and text.startswith("(", self.at + 1):
                self.at += 2
                place.unsure("/dev/fd/63", inner=self._nested())
            else:
                break
        return done + place.words()

    def _braces(self, place: Field) -> None:
        if found := _BRACES.match(self.text, self.at):
            place.several(found[0][1:-1].split(","))
        elif found := _RANGE.match(self.text, self.at):
            place.mark("*", glob=True)
        elif _ODD_BRACES.match(self.text, self.at, self.at + 200):
            place.unsure("{", names=("{",))
        else:
            place.add("{")
        self.at = found.end() if found else self.at + 1

    def inside(self, place: Field, end: str) -> None:
        """Text in double quotes, in ${...} or of a heredoc, until `end`."""
        text = self.text
        self._deeper(1)
        while self.at < len(text):
            self.state.step()
            char = text[self.at]
            if char == end:
                self.at += 1
                return self._deeper(-1)
            if char == "\\":
                following = text[self.at + 1 : self.at + 2]
                plain = following if following in '$`"\\' else char + following
                place.add("" if following == "\n" else plain)
                self.at += 2
            elif char in "$`":
                self._dollar(place, None, True)
            elif char == '"':
                self.at += 1
                if end:
                    self.inside(place, '"')
            elif found := _QUOTED.match(text, self.at):
                piece = found[0].partition(end)[0] if end == "}" else found[0]
                self.at += len(piece)
                place.add(piece)
        if end:
            raise Stop("a quote or brace is not closed")
        return self._deeper(-1)

    def _deeper(self, by: int) -> None:
        self.state.depth += by
        if self.state.depth > DEPTH:
            raise Stop("it is nested too deeply")

    def _dollar(self, place: Field, done: list[Word] | None, quoted: bool = False) -> None:
        """What begins with $ or a backtick; `done` gets the words before it when it makes several."""
        text, at = self.text, self.at
        if text[at] == "`":
            found = re.compile(r"`((?:[^`\\]|\\.)*)`", re.S).match(text, at)
            if found is None:
                raise Stop("a backtick is not closed")
            self.at = found.end()
            code = re.sub(r"\\([$`\\])" if not quoted else r"\\([$`\\\"])", r"\1", found[1])
            place.unsure("", inner=type(self)(code, self.state)._nested(""))
        elif text.startswith("$((", at) and (closed := self._arithmetic(at + 1)):
            self.at = closed
            place.add("0")
        elif text.startswith("$(pwd)", at) and "PWD" in self.state.values:
            self.at += 6
            self._variable(place, "PWD", done, quoted)
        elif text.startswith("$(", at):
            self.at += 2
            place.unsure("", inner=self._nested())
        elif text.startswith("${", at):
            self._parameter(place, done, quoted)
        elif found := _NAME.match(text, at + 1):
            self.at = found.end()
            self._variable(place, found[0], done, quoted)
        elif text.startswith("$'", at) and not quoted:
            found = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.S).match(text, at)
            if found is None:
                raise Stop("a quote is not closed")
            self.at = found.end()
            place.add(_ESCAPE.sub(_unescape, found[1]))
        elif text.startswith('$"', at) and not quoted:
            self.at += 1
        else:
            self.at += 1
            place.add("$")

    def _nested(self, end: str = ")") -> tuple[int, ...]:
        """Parse a substitution; the numbers of its commands."""
        state = self.state
        self._deeper(1)
        begin = len(state.script.commands)
        waiting, self.waiting = self.waiting, []
        self.commands(end)
        self.waiting = waiting
        self._deeper(-1)
        return tuple(range(begin, len(state.script.commands)))[:50]

    def _parameter(self, place: Field, done: list[Word] | None, quoted: bool) -> None:
        found = re.compile(r"\$\{(#?)(!?)([A-Za-z_]\w*|[0-9?#$!@*-])?").match(self.text, self.at)
        self.at = found.end() if found else self.at
        length, indirect, name = found.groups() if found else ("", "", None)
        if name and self.text.startswith("}", self.at) and not indirect:
            self.at += 1
            if length:
                place.add("0")
            else:
                self._variable(place, name, done, quoted)
            return
        default = not (length or indirect) and self.text.startswith((":-", "-"), self.at)
        rest = Field()
        self.inside(rest, "}")
        if default and name and self._known(name):
            self._variable(place, name, done, quoted)
            return
        word = rest.word
        place.unsure(f"${name}", names=(name or "?", *word.names), inner=word.inner)

    def _known(self, name: str) -> bool:
        """Whether a variable has one value for certain, so that no default takes its place."""
        values = self.state.values.get(name, [])
        return len(values) == 1 and values[0].sure and bool(values[0].text)

    def _variable(self, place: Field, name: str, done: list[Word] | None, quoted: bool) -> None:
        values = self.state.values.get(name)
        if values is None:
            if name in "?#$-":
                return place.add("0")
            return place.unsure(f"${name}", names=(name,))
        for value in values:
            place.mark(
                "",
                sure=place.word.sure and value.sure,
                names=_few(place.word.names + value.names),
                inner=_few(place.word.inner + value.inner),
                glob=place.word.glob or value.glob or not quoted and "*" in value.text,
            )
        if len(values) > 1:
            place.several([value.text for value in values])
            place.mark("", choice=True)
            return None
        only = values[0].text
        parts = re.split(r"[ \t\n]+", only) if done is not None and not quoted else [only]
        for part in parts[:-1]:
            place.add(part)
            assert done is not None
            done += [word for word in place.words() if word.text or not word.sure]
            place.__init__()  # type: ignore[misc]
        place.add(parts[-1])
        place.some = bool(
            quoted or "".join(place.pieces) or len(place.heads) > 1 or not values[0].sure
        )
        return None

    def _arithmetic(self, at: int) -> int:
        """Where a ((...)) that begins here ends; 0 when it is none, or may run something."""
        if not self.text.startswith("((", at):
            return 0
        depth, at = 0, at + 1
        while found := _ARITHMETIC.match(self.text, at):
            self.state.step()
            if "$(" in self.text[at : found.end() + 1]:
                return 0
            depth += {"(": 1, ")": -1}.get(found[0], 0)
            at = found.end()
            if not depth:
                return at + 1 if self.text.startswith(")", at) else 0
        return 0


def _few(parts: tuple[_Part, ...]) -> tuple[_Part, ...]:
    return tuple(dict.fromkeys(parts))[:CHOICES]


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xu" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) % 256)
    return _ESCAPES.get(code, code if code[0] != "c" else "\x01")
