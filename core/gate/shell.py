"""The shell's grammar, as far as it decides what runs. Owns words, pipes and what becomes of variables;
knows no program and no file.

Invariant: `parse` never raises and takes time linear in the text; what it does not understand is a fault
or a word that is not `sure`, never left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

DEPTH = 24  # substitutions within each other
NESTED = 100  # blocks within each other
STEPS = 20_000  # words, operators and pieces of words
VALUE = 4096  # characters of a variable that are followed
CHOICES = 32  # words that a brace or a loop may stand for

_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|;|\|&|\||&(?!>)|\(|\)|\n")
_REDIRECT = re.compile(
    r"(?:\d*|\{\w+\})(<<<|<<-|<<|<&|<>|>>|>&|>\||<(?!\()|>(?!\()|(?<!\d)&>>|(?<!\d)&>)"
)
_KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|for|select|while|until|do|done|case|esac|function|time|coproc|[{}!]|\[\[)"
    r"(?=[\s;|&()<>]|\Z)"
)
_OPEN = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done"}
_OPEN |= {"case": "esac", "{": "}"}
_ASSIGN = re.compile(r"(?<!\w)([A-Za-z_]\w*)(?:\[[^\]\s]*\])?\+?=")
_DECLARE = ("export", "declare", "typeset", "local", "readonly")
_SETS = ("read", "mapfile", "readarray", "getopts", "unset", "printf", "let")
_PLAIN = re.compile(r"[^\s'\"\\$`|&;<>()*?\[{~]+|~")
_QUOTED = re.compile(r"[^\"\\$`}]+|\}")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9?#$!@*-]")
_BRACES = re.compile(r"\{[^\s{}'\"\\$`;|&<>()]*,[^\s{}'\"\\$`;|&<>()]*\}")
_RANGE = re.compile(r"\{\d+\.\.\d+\}")
_ODD_BRACES = re.compile(r"\{[^\s;|&]*(?:,|\.\.)[^\n]*\}")
_ARITHMETIC = re.compile(r"[\w\s+\-*/%<>=!&|^~?:,.$#\[\]{}]+|[()]")
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
    here-string, `after` the operator that follows, `scope` the subshell it runs in."""

    words: list[Word] = field(default_factory=list)
    redirects: list[tuple[str, Word]] = field(default_factory=list)
    assigned: list[tuple[str, Word]] = field(default_factory=list)
    here: Word | None = None
    feeds: range = range(0)
    piped: bool = False
    after: str = ""
    scope: int = 0


@dataclass
class Script:
    """All commands that may run, in their order; `faults` say what was not understood; `scopes` gives
    each subshell's parent."""

    commands: list[Command] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    scopes: list[int] = field(default_factory=lambda: [0])


class _Stop(Exception):
    """The text cannot be followed further."""


@dataclass
class _Level:
    """An open block: what closes it, and where its pipeline and the pipeline's last part began."""

    close: str
    first: int
    part: int
    scope: int
    name: str = ""


@dataclass
class _State:
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
            raise _Stop("it is too long to judge")


def parse(text: str, known: Mapping[str, str]) -> Script:
    """The commands of `text`; `known` are variables of the environment. Never raises."""
    script = Script()
    often = {name for name, n in Counter(_ASSIGN.findall(text[:200_000])).items() if n > 1}
    flow = re.search(r"&&|\||\(|\b(?:if|for|while|until|case|function|eval|source)\b", text)
    values = {name: [Word(value)] for name, value in known.items()}
    state = _State(script, values | {"IFS": [Word(" \t\n")]}, often, flow is not None)
    if re.search(r"[\0\ud800-\udfff]|\$\\\n", text):
        script.faults.append("it has characters that a shell does not take as they stand")
    try:
        _Reader(text, state).commands()
    except _Stop as stop:
        script.faults.append(str(stop))
    return script


class _Field:
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


class _Reader:
    """Reads one text, from `at` on."""

    def __init__(self, text: str, state: _State) -> None:
        self.text, self.at, self.state = text, 0, state
        self.waiting: list[tuple[Command, str, bool, bool]] = []  # heredocs

    # ---- commands ----------------------------------------------------------------------------------

    def commands(self, end: str = "") -> None:
        """Everything until `end`, a closing bracket or the end of the text."""
        state, text, out = self.state, self.text, self.state.script.commands
        scope = (
            state.script.scopes[-1] if not out and not end else self._scope(0 if not out else -1)
        )
        levels = [_Level(end, len(out), len(out), scope)]
        command = Command(scope=scope)
        sure = not end  # whether what is assigned here is assigned for certain
        while True:
            state.step()
            self._blanks()
            at, level = self.at, levels[-1]
            found = _OPERATOR.match(text, at)
            op = found[0] if found else ""
            if op == "(" and not (command.words or command.assigned):
                if closed := self._arithmetic(at):
                    self.at, command.words = closed, [Word("((")]
                else:
                    self.at += 1
                    scope = self._scope(level.scope)
                    self._open(levels, ")", scope)
                    command = Command(scope=scope)
                continue
            if op == "(":
                parens = re.compile(r"\(\s*\)").match(text, at)
                if parens is None or len(command.words) != 1:
                    raise _Stop("a bracket stands where none belongs")
                level.name = command.words[0].text
                state.script.functions.add(level.name)
                self.at, command = parens.end(), Command(scope=level.scope)
                continue
            if op or at >= len(text):
                self.at += len(op)
                self._end(command, level, op)
                sure = sure and op in (";", "\n", "") or sure and op == "&&" and False
                command = Command(scope=level.scope)
                if op == "\n":
                    self._heredocs()
                if op in (";;", ";&", ";;&"):
                    self._patterns()
                if op == ")" or at >= len(text):
                    if op and level.close == ")" and len(levels) > 1:
                        self._close(levels, ")")
                        command = Command(scope=levels[-1].scope)
                    elif level.close != op or len(levels) > 1:
                        raise _Stop("a block or bracket is not closed")
                    else:
                        self._heredocs()
                        return
                continue
            starts = not (command.words or command.assigned or command.redirects)
            if starts and (found := _KEYWORD.match(text, at)):
                self.at = found.end()
                sure = sure and found[0] in ("{", "}", "!", "time")
                self._keyword(found[0], levels)
                if found[0] == "[[":
                    command.words.append(Word("[["))
                continue
            if found := _REDIRECT.match(text, at):
                self.at = found.end()
                self._redirect(command, found[1])
                continue
            declares = bool(command.words) and command.words[0].text in _DECLARE
            if (declares or not command.words) and (found := _ASSIGN.match(text, at)):
                self._assign(command, found, sure and len(levels) == 1)
                continue
            words = self.word()
            if not words and self.at == at:
                raise _Stop(f"{text[at]!r} stands where it does not belong")
            command.words += words

    def _end(self, command: Command, level: _Level, op: str) -> None:
        """A command is over: note it, what it reads, and the variables that it set."""
        state, out = self.state, self.state.script.commands
        if command.words or command.redirects or command.assigned:
            command.after = op
            out.append(command)
            names = [word.text for word in command.words]
            if names and names[0] in state.open:
                state.script.faults.append(f"{names[0]} calls itself")
            if names and names[0] in _SETS:
                for name in names[1:]:
                    if re.fullmatch(r"[A-Za-z_]\w*", name):
                        state.values[name] = [Word("", sure=False)]
        elif op in ("|", "|&", "&&", "||") and len(out) == level.part:
            state.script.faults.append(f"there is nothing before {op}")
        if level.part > level.first:
            for each in out[level.part :]:
                each.feeds = each.feeds or range(level.first, level.part)
        if op in ("|", "|&"):
            level.part = len(out)
        if op in ("|", "|&", "&") or level.part > level.first:
            for each in out[level.first :]:
                each.piped = True
        if op not in ("|", "|&"):
            level.first = level.part = len(out)

    def _keyword(self, word: str, levels: list[_Level]) -> None:
        level = levels[-1]
        if word == "function":
            if found := re.compile(r"\s*([^\s(){}]+)\s*(\(\s*\))?").match(self.text, self.at):
                level.name, self.at = found[1], found.end()
                self.state.script.functions.add(level.name)
        elif word == "[[":
            self._test()
        elif word in _OPEN:
            self._open(levels, _OPEN[word], level.scope)
            if word in ("for", "select"):
                self._loop()
            elif word == "case":
                self._blanks()
                self.word()
                found = re.compile(r"\s*in\b").match(self.text, self.at)
                if found is None:
                    raise _Stop("a case without in")
                self.at = found.end()
                self._patterns()
        elif word in _OPEN.values():
            self._close(levels, word)

    def _open(self, levels: list[_Level], close: str, scope: int) -> None:
        out, name = self.state.script.commands, levels[-1].name
        levels[-1].name = ""
        if len(levels) > NESTED:
            raise _Stop("it is nested too deeply")
        levels.append(_Level(close, len(out), len(out), scope, name))
        self.state.open.append(name)
        levels[-1].name = ""

    def _close(self, levels: list[_Level], word: str) -> None:
        if len(levels) < 2 or levels[-1].close != word:
            raise _Stop(f"{word} closes nothing")
        levels.pop()
        self.state.open.pop()

    def _scope(self, parent: int) -> int:
        scopes = self.state.script.scopes
        scopes.append(len(scopes) - 1 if parent < 0 else parent)
        return len(scopes) - 1

    def _loop(self) -> None:
        """The head of a for: its variable stands for each of the words."""
        self._blanks()
        if closed := self._arithmetic(self.at):
            self.at = closed
            return
        found = re.compile(r"(\w+)\s*(?:in\b)?").match(self.text, self.at)
        if found is None:
            raise _Stop("a loop without a variable")
        self.at, values = found.end(), list[Word]()
        while self._blanks() or _OPERATOR.match(self.text, self.at) is None:
            if self.at >= len(self.text) or not (words := self.word()):
                raise _Stop("a loop is not closed")
            values += words
        self._set(found[1], values or [Word("", sure=False, names=("@",))], True)

    def _patterns(self) -> None:
        """The patterns of one branch of a case."""
        found = re.compile(r"\s*+(?!esac\b)\(?").match(self.text, self.at)
        while found and self.at < len(self.text):
            self.at = max(self.at, found.end())
            self._blanks()
            op = _OPERATOR.match(self.text, self.at)
            if op is None:
                if not self.word():
                    raise _Stop("a pattern is no word")
            else:
                self.at = op.end()
                if op[0] == ")":
                    return
            self.state.step()

    def _test(self) -> None:
        """[[ ... ]]: only substitutions in it can run something."""
        skip = re.compile(r"[\s()<>|&;]*")
        while found := skip.match(self.text, self.at):
            self.state.step()
            self.at = found.end()
            if self.text.startswith("]]", self.at):
                self.at += 2
                return
            before = self.at
            self.word()
            if self.at == before:
                raise _Stop("[[ is not closed")

    # ---- parts of a command ------------------------------------------------------------------------

    def _blanks(self) -> bool:
        """Skip blanks and a comment; always False."""
        found = re.compile(r"(?:[ \t]|\\\n)*(?:(?<![^\s;|&()])#[^\n]*)?").match(self.text, self.at)
        self.at = found.end() if found else self.at
        return False

    def _assign(self, command: Command, found: re.Match[str], sure: bool) -> None:
        self.at, values = found.end(), [Word("")]
        rest = self.text[self.at : self.at + 1]
        if rest == "(":
            self.at += 1
            while self.text[self.at : self.at + 1] not in (")", ""):
                before = self.at
                self.word()
                self.at += self.at == before
                self.state.step()
            self.at += 1
            values = [Word("", sure=False, names=(found[1],))]
        elif rest and not rest.isspace() and _OPERATOR.match(self.text, self.at) is None:
            values = self.word(split=False) or values
        if found[0].endswith("+=") or "[" in found[0] or len(values) > 1:
            values = [replace(values[0], sure=False, names=(found[1],))]
        command.assigned.append((found[1], values[0]))
        after = re.compile(r"[ \t]*(?:[;\n&|)#]|\Z)").match(self.text, self.at)
        if after or command.words:
            self._set(found[1], values, sure)

    def _set(self, name: str, values: list[Word], sure: bool) -> None:
        state = self.state
        if name in state.often and state.flow or sum(len(word.text) for word in values) > VALUE:
            values = [Word("", sure=False, names=(name,))]
        elif not sure:
            values = [replace(word, sure=False) for word in values]
        state.values[name] = values

    def _redirect(self, command: Command, op: str) -> None:
        self._blanks()
        if op in ("<<", "<<-"):
            found = re.compile(r"[^\s;|&<>()]+").match(self.text, self.at)
            if found is None:
                raise _Stop("a heredoc without a word")
            self.at = found.end()
            word = re.sub(r"['\"\\]", "", found[0])
            self.waiting.append((command, word, word != found[0], op == "<<-"))
            return
        words = self.word()
        if len(words) != 1:
            raise _Stop("a redirection without a file")
        if op == "<<<":
            command.here = words[0]
        else:
            command.redirects.append((op, words[0]))

    def _heredocs(self) -> None:
        for command, end, quoted, tabs in self.waiting:
            mark = re.compile(rf"^{'	*' if tabs else ''}{re.escape(end)}$", re.M)
            found = mark.search(self.text, self.at)
            if found is None:
                self.state.script.faults.append("a heredoc is not closed")
            body = self.text[self.at : found.start() if found else len(self.text)]
            self.at = min(found.end() + 1, len(self.text)) if found else len(self.text)
            command.here = Word(body)
            if not quoted:
                place = _Field()
                reader = _Reader(body, self.state)
                while reader.at < len(body):
                    reader.inside(place, "")
                command.here = (place.words() or [Word("")])[0]
        self.waiting = []

    # ---- words -------------------------------------------------------------------------------------

    def word(self, split: bool = True) -> list[Word]:
        """The word here, several when braces or variables make several; [] when there is none."""
        text, place, done = self.text, _Field(), list[Word]()
        tilde = _TILDE.match(text, self.at)
        if tilde:
            self.at = tilde.end()
            home = self.state.values.get("HOME", [Word("/root")])[0].text
            place.add(f"/home/{tilde[1]}" if tilde[1] else home)
        while self.at < len(text):
            self.state.step()
            char = text[self.at]
            if found := _PLAIN.match(text, self.at):
                self.at = found.end()
                place.add(found[0])
            elif char == "'":
                end = text.find("'", self.at + 1)
                if end < 0:
                    raise _Stop("a quote is not closed")
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

    def _braces(self, place: _Field) -> None:
        if found := _BRACES.match(self.text, self.at):
            place.several(found[0][1:-1].split(","))
        elif found := _RANGE.match(self.text, self.at):
            place.mark("*", glob=True)
        elif _ODD_BRACES.match(self.text, self.at, self.at + 200):
            place.unsure("{", names=("{",))
        else:
            place.add("{")
        self.at = found.end() if found else self.at + 1

    def inside(self, place: _Field, end: str) -> None:
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
            raise _Stop("a quote or brace is not closed")
        return self._deeper(-1)

    def _deeper(self, by: int) -> None:
        self.state.depth += by
        if self.state.depth > DEPTH:
            raise _Stop("it is nested too deeply")

    def _dollar(self, place: _Field, done: list[Word] | None, quoted: bool = False) -> None:
        """What begins with $ or a backtick; `done` gets the words before it when it makes several."""
        text, at = self.text, self.at
        if text[at] == "`":
            found = re.compile(r"`((?:[^`\\]|\\.)*)`", re.S).match(text, at)
            if found is None:
                raise _Stop("a backtick is not closed")
            self.at = found.end()
            code = re.sub(r"\\([$`\\])" if not quoted else r"\\([$`\\\"])", r"\1", found[1])
            place.unsure("", inner=_Reader(code, self.state)._nested(""))
        elif text.startswith("$((", at) and (closed := self._arithmetic(at + 1)):
            self.at = closed
            place.add("0")
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
                raise _Stop("a quote is not closed")
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

    def _parameter(self, place: _Field, done: list[Word] | None, quoted: bool) -> None:
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
        rest = _Field()
        self.inside(rest, "}")
        word = rest.word
        place.unsure(f"${name}", names=(name or "?", *word.names), inner=word.inner)

    def _variable(self, place: _Field, name: str, done: list[Word] | None, quoted: bool) -> None:
        values = self.state.values.get(name)
        if values is None:
            if name in "?#$!-":
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
