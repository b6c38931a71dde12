"""The shell's grammar, as far as it decides what runs. Owns commands, pipes, blocks and assignments;
knows no program and no file.

Invariant: `parse` never raises and takes time linear in the text; what it does not understand is a fault
or a word that is not `sure`, never left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from exo.tools.gate.lexer import TEMP, VALUE, Command, Field, Script, State, Stop, Word, Words

__all__ = ["Command", "Script", "Word", "parse", "uncalled"]

NESTED = 100  # blocks within each other
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


@dataclass
class _Level:
    """An open block: what closes it, and where its pipeline and the pipeline's last part began."""

    close: str
    first: int
    part: int
    scope: int
    name: str = ""


def parse(text: str, known: Mapping[str, str]) -> Script:
    """The commands of `text`; `known` are variables of the environment. Never raises."""
    script = Script()
    often = {name for name, n in Counter(_ASSIGN.findall(text[:200_000])).items() if n > 1}
    flow = re.search(r"&&|\||\(|\b(?:if|for|while|until|case|function|eval|source)\b", text)
    values = {name: [Word(value)] for name, value in known.items()}
    if re.search(r"\b(?:cd|pushd|popd)\b", text):
        values.pop("PWD", None)
    state = State(script, values | {"IFS": [Word(" \t\n")]}, often, flow is not None)
    if re.search(r"[\0\ud800-\udfff]|\$\\\n", text):
        script.faults.append("it has characters that a shell does not take as they stand")
    try:
        _Reader(text, state).commands()
    except Stop as stop:
        script.faults.append(str(stop))
    return script


def uncalled(script: Script) -> set[str]:
    """Functions whose names stand nowhere but where they are made, shown or unset: none of their commands runs."""
    heads = {each.words[0].text for each in script.commands if each.words}
    if heads & {"source", ".", "set", "eval"} or script.faults:
        return set()
    idle = {name for name in script.functions if re.fullmatch(r"\w+", name)}
    for command in script.commands:
        shows = command.words and command.words[0].text in ("declare", "typeset", "type", "unset")
        others = [value for _, value in (*command.assigned, *command.redirects)]
        words = [
            *others,
            *([] if shows else command.words),
            *([command.here] if command.here else ()),
        ]
        said = " ".join(word.text for word in words)
        idle -= {name for name in set(re.findall(r"\w+", said)) if name != command.body}
    return idle - {"command_not_found_handle"}


class _Reader(Words):
    """Reads the commands of one text."""

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
                    raise Stop("a bracket stands where none belongs")
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
                        command = Command(scope=levels[-1].scope, block=True)
                    elif level.close != op or len(levels) > 1:
                        raise Stop("a block or bracket is not closed")
                    else:
                        self._heredocs()
                        return
                continue
            starts = not (command.words or command.assigned or command.redirects)
            if starts and (found := _KEYWORD.match(text, at)):
                self.at = found.end()
                sure = sure and found[0] in ("{", "}", "!", "time")
                self._keyword(found[0], levels)
                command.block = found[0] in _OPEN.values()
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
                raise Stop(f"{text[at]!r} stands where it does not belong")
            command.words += words

    def _end(self, command: Command, level: _Level, op: str) -> None:
        """A command is over: note it, what it reads, and the variables that it set."""
        state, out = self.state, self.state.script.commands
        if command.words or command.redirects or command.assigned:
            command.after = op
            command.body = next((name for name in state.open if name), "")
            out.append(command)
            level.name = ""  # f() [[ x ]]; what follows is no part of it
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
                    raise Stop("a case without in")
                self.at = found.end()
                self._patterns()
        elif word in _OPEN.values():
            self._close(levels, word)

    def _open(self, levels: list[_Level], close: str, scope: int) -> None:
        out, name = self.state.script.commands, levels[-1].name
        levels[-1].name = ""
        if len(levels) > NESTED:
            raise Stop("it is nested too deeply")
        levels.append(_Level(close, len(out), len(out), scope, name))
        self.state.open.append(name)
        levels[-1].name = ""

    def _close(self, levels: list[_Level], word: str) -> None:
        if len(levels) < 2 or levels[-1].close != word:
            raise Stop(f"{word} closes nothing")
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
            raise Stop("a loop without a variable")
        self.at, values = found.end(), list[Word]()
        while self._blanks() or _OPERATOR.match(self.text, self.at) is None:
            if self.at >= len(self.text) or not (words := self.word()):
                raise Stop("a loop is not closed")
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
                    raise Stop("a pattern is no word")
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
                raise Stop("[[ is not closed")

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
        if len(values) == 1 and self._fresh(values[0]):
            values = [Word(TEMP)]
        if name in state.often and state.flow or sum(len(word.text) for word in values) > VALUE:
            values = [Word("", sure=False, names=(name,))]
        elif not sure:
            values = [replace(word, sure=False) for word in values]
        state.values[name] = values
        if values == [Word(TEMP)]:
            state.script.temps.add(name)

    def _fresh(self, word: Word) -> bool:
        """Whether a word is what mktemp makes in the usual place, and nothing else."""
        there = self.state.values.get("TMPDIR") in (None, [Word("/tmp")])
        if word.text or word.names or len(word.inner) != 1 or not there:
            return False
        command = self.state.script.commands[word.inner[0]]
        texts = [each.text for each in command.words if each.sure]
        usual = r"-[dqt]+|--directory|--suffix=[\w.-]+|/tmp/[\w.-]+"
        plain = usual + (r"|[\w.-]+" if {"-t", "-dt", "-td"} & set(texts) else "")
        fits = len(texts) == len(command.words)
        fits = fits and all(re.fullmatch(plain, each) for each in texts[1:])
        return fits and texts[:1] == ["mktemp"] and not command.redirects

    def _redirect(self, command: Command, op: str) -> None:
        self._blanks()
        if op in ("<<", "<<-"):
            found = re.compile(r"[^\s;|&<>()]+").match(self.text, self.at)
            if found is None:
                raise Stop("a heredoc without a word")
            self.at = found.end()
            word = re.sub(r"['\"\\]", "", found[0])
            self.waiting.append((command, word, word != found[0], op == "<<-"))
            return
        words = self.word()
        if len(words) != 1:
            raise Stop("a redirection without a file")
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
                place = Field()
                reader = _Reader(body, self.state)
                while reader.at < len(body):
                    reader.inside(place, "")
                command.here = (place.words() or [Word("")])[0]
        self.waiting = []
