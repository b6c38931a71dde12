"""What the kinds of programs share: words and their files, flags and their roles, what comes in by a pipe,
rules of the table. Owns the view of one command.

Invariant: a word that is not sure never makes an action milder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from exo.core.context.redact import redact
from exo.tools.gate.lexer import TEMP
from exo.tools.gate.shell import Command, Script, Word
from exo.tools.gate.table import split

if TYPE_CHECKING:
    from exo.tools.gate.classify import Judge

Entry = dict[str, Any]
_BIN = re.compile(r"/(usr/)?(local/)?bin/\w")
_OWN_BIN = ("/.venv/bin", "/venv/bin", "/node_modules/.bin")
_GIVEN = frozenset("@*123456789")
_LISTS = ("ls", "dir", "stat", "file", "du", "tree", "locate", "readlink", "realpath")
_TELL = ("cat", "pgrep", "pidof", "lsof", "head", "tail", "grep", "awk", "ps", "cut", "fuser", "ss")
_PUTS = re.compile(r"-o|--?out(put)?([-_]?(dir|file|path|directory))?|-d|--dest(ination)?|--prefix")
_OUT = re.compile(r"(?:^|[-:_])(deploy|publish|release|upload|push)$")
_DEEP = ("rg", "ag", "ack")  # without a file they read the whole folder
_ROLES = (("writes", "write"), ("files", "read"), ("unknown", "doubt"))


class Parts:
    """One command, its words split by the entry in use."""

    def __init__(self, judge: Judge, script: Script, command: Command, cwds: list[str]) -> None:
        self.to, self.script, self.command, self.cwds = judge, script, command, cwds
        self.table, self.name, self.text = judge.table, "", ""
        self.args: list[Word] = []
        self.use({})

    def use(self, entry: Entry) -> None:
        self.flags, self.plain, self.words = split(entry, self.args)

    def doubt(self, why: str) -> None:
        self.to.doubt(f"{why}: {self.text}")

    def add(self, effect: str, shape: str = "") -> None:
        shape = shape or " ".join([*self.plain[:2], *sorted({flag for flag, _ in self.flags})])
        self.to.add(effect, self.text, f"{self.name} {shape} in {self.cwds[0]}")

    def sent(self, effect: str) -> None:
        """An effect of the table; what leaves this machine is looked at."""
        if effect in self.table.effects and self.table.effects[effect].exposure != "private":
            self.to.sends = True
            self.to.said.append(self.text)
            self.leaks()
        self.add(effect)

    def leaks(self) -> None:
        for word in self.args:
            path = word.text.rpartition("@")[2].rpartition("=")[2]
            if redact(word.text) != word.text:
                self.to.secrets.append(f"in the words of {self.name}")
            elif path and "://" not in word.text and "secret" in self.marks(path):
                self.to.secrets.append(path)

    def has(self, pattern: str) -> bool:
        return any(re.match(pattern, flag) for flag, _ in self.flags)

    def given(self, names: Any) -> list[Word]:
        return [value for flag, value in self.flags if flag in names and value is not None]

    def marks(self, path: str) -> set[str]:
        return self.to.facts.places.marks(path, self.cwds[0])

    def variable(self, name: str, value: Word | None = None) -> None:
        """A variable is set; some change what runs, but for values that are known to be harmless."""
        words, text = self.table.words, value.text if value is not None and value.sure else "?"
        if name == "PATH" and value is not None and set(value.names) <= {"PATH"}:
            own = [part for part in value.text.split(":") if part.endswith(_OWN_BIN)]
            rest = [part for part in value.text.split(":") if part not in (*own, "$PATH", "")]
            bad = any("inside" not in self.marks(part) for part in own)
            bad = bad or not re.fullmatch(words["calm_values"], ":".join(rest))
        elif re.fullmatch(words["tool_variables"], name):
            name = text.split(" ")[0].rpartition("/")[2]
            builds = self.table.programs.get(name, {}).get("otherwise") == "build"
            cross = re.fullmatch(r"([\w-]+-)?(gcc|g\+\+|clang(\+\+)?|cc|ld|ar)(-[\d.]+)?", name)
            bad = not (builds or cross) and name not in (
                "ccache",
                "bash",
                "sh",
                "python",
                "python3",
            )
            bad = bad or "/" in text and not _BIN.match(text)
        elif re.fullmatch(words["folder_variables"], name):
            parts = [part for part in text.split(":") if part]
            bad = text == "?" or any(not self.marks(p) & {"inside", "scratch"} for p in parts)
            bad = bad and not (value is not None and set(value.names) == {name})
            bad = bad or "/tmp" in text and name != "TMPDIR"
        else:
            risky = re.fullmatch(words["unsafe_variables"], name) is not None
            bad = risky and not re.fullmatch(words["calm_values"], text)
        if bad:
            self.doubt(f"{name} is set, which changes what runs")

    def tame(self, word: Word) -> bool:
        """A word that is sure, or can only be a name that listing programs gave."""
        inner = [self.script.commands[number].words for number in word.inner]
        names = self.table.names
        return word.sure or not word.names and all(w[0].text in names for w in inner if w)

    def _telling(self, entry: Entry, effect: str) -> None:
        """Flags whose names say that more is done than the program is known for (--apply, --purge)."""
        quiet = effect in ("look", "read", "fetch")
        strict = quiet and entry.get("kind") == "plain" and len(entry) == 2
        if not (quiet or effect in ("keep", "build", "undoable")):
            return
        tries = self.has("-s$|" + "|".join(self.table.words["trying"])) or "plan" in self.plain
        if quiet and not strict and tries:
            return
        words = self.table.words["changing_flags" if strict else "losing_flags"]
        for flag, value in self.flags:
            parts = flag.strip("-").split("-") if len(flag) > 3 else []
            off = value is not None and value.text in ("never", "false", "no", "0", "none")
            if parts[:1] not in ([], ["no"]) and set(parts) & set(words.split()) and not off:
                self.doubt(f"what {flag} does")
        if strict:  # where a reader puts what it found
            for given, word in zip(self.args, [*self.args[1:], Word("")], strict=False):
                name, equals, rest = given.text.partition("=")
                target = replace(given, text=rest) if equals else word
                if (
                    re.fullmatch(r"--out(put)?(-?file)?|--logfile|-o", name)
                    and "/" in target.text
                    and target.text[:1] != "-"
                ):
                    self.file("write", target)

    def _beyond(self) -> None:
        """What programs that build and format change outside the folder."""
        words = self.table.words
        targets = {"install", "uninstall", "install-strip", "install-all", "install/strip"}
        installs = bool(targets & set(self.plain)) or self.has("--install")
        if self.name in ("cmake", "ninja", "meson", "make", "gmake") and installs:
            starts = ("DESTDIR=", "PREFIX=", "--prefix=", "--destdir=")
            texts = [word.text for word in self.args]
            named = [text.partition("=")[2] for text in texts if text.startswith(starts)]
            pairs = zip(texts, texts[1:], strict=False)
            named += [text for flag, text in pairs if flag in ("--prefix", "--destdir")]
            if not named or any(not self.marks(text) & {"inside", "scratch"} for text in named):
                self.doubt("it installs for the whole machine")
        if self.name == "cmake" and re.search(
            r" -E (rm|remove\w*|rename|copy\w*|env)\b", self.text
        ):
            self.doubt("what it removes or copies")
        if self.name not in words["formatters"].split():
            return
        if self.has("--check|--diff|-l$|-d$|--list-different|-n$|--dry-run|--stdin"):
            return
        writes = {
            "eslint": "--fix",
            "stylelint": "--fix",
            "prettier": "--write|-w$",
            "gofmt": "-w$",
        }
        writes |= {"shfmt": "-w$", "clang-format": "-i$", "autopep8": "-i$|--in-place"}
        if self.name in writes and not self.has(writes[self.name]):
            return
        if self.name == "ruff" and self.plain[:1] == ["check"] and not self.has("--fix"):
            return
        for word in self.words:
            if word.text[:1] in "/~." and not self.marks(word.text) & {"inside", "scratch"}:
                self.file("write", word)

    def _puts_out(self) -> None:
        """What a build writes elsewhere than in its folder."""
        for word, value in zip(self.args, [*self.args[1:], Word("")], strict=False):
            flag, _, rest = word.text.partition("=")
            target = Word(rest, word.sure) if rest else value
            away = target.text[:1] in ("/", "~", ".") and "inside" not in self.marks(target.text)
            if away and _PUTS.fullmatch(flag):
                self.file("write", target)

    def _tells(self, word: Word) -> bool:
        inner = [self.script.commands[number].words for number in word.inner]
        return bool(inner) and all(words and words[0].text in _TELL for words in inner)

    def file(self, effect: str, word: Word, verb: str = "") -> None:
        if effect == "delete" and re.search(re.escape(TEMP) + r"(/[^/]*\*|.*\.\.)", word.text):
            return self.doubt("which file, should mktemp have failed")
        if word.sure:
            return self.to.path(verb or self.name, effect, word, *self.cwds)
        if word.text != "/dev/fd/63" and not (effect == "read" and self.tame(word)):
            self.doubt("which file")
        return None

    def roles(self, entry: Entry) -> None:
        """What flags do with their values."""
        for flag, value in self.flags:
            for key, role in _ROLES:
                if flag in entry.get(key, ()) and role == "doubt":
                    self.doubt(f"what {flag} does")
                elif flag in entry.get(key, ()) and value is not None and value.text != "-":
                    self.file(role, value)

    def fed(self) -> list[Command]:
        return [self.script.commands[number] for number in self.command.feeds]

    def fed_text(self) -> Word | None:
        """What comes in by the pipe or a heredoc, None when it is not known."""
        if self.command.here is not None:
            return self.command.here
        out = [said(each) for each in self.fed()]
        return Word("\n".join(text or "" for text in out)) if out and None not in out else None

    def empty(self, word: Word) -> None:
        """A file loses all that it holds; logs and marks may."""
        made = word.text.endswith((".log", ".lock", ".touch", "keep", ".pid", "nohup.out"))
        self.file("write" if made else "delete", word)

    def code(self, word: Word | None, temps: Iterable[str] = ()) -> None:
        """A word that is shell code."""
        if word is None or not word.sure:
            return self.doubt("what it runs")
        return self.to.script(word.text, self.cwds, temps)

    def after(self, count: int) -> list[Word]:
        """All words from the plain word of that number on."""
        at = next(n for n, word in enumerate(self.args) if word is self.words[count])
        return self.args[at:]

    def run(self, words: list[Word]) -> None:
        """Judge a program with its words."""
        raise NotImplementedError

    def _rules(self, entry: Entry) -> None:
        """The table's effect; words and some flags name files."""
        effect = self.table.effect(entry, self.args)
        if effect == "@":
            return self._runner(entry)
        if "asks" in entry and re.search(entry["asks"], self.text):
            self.doubt("what it reaches")
        self._telling(entry, effect)
        if effect != "read" or entry.get("kind"):
            self.roles(entry)
        if self.has("|".join([*entry.get("inplace", ()), "$"])) and "inplace" in entry:
            effect = "write"
        files = self.words[entry.get("skip", 1 if "rules" in entry else 0) :]
        if effect == "look" and self.name in _LISTS:
            for word in self.words or [Word(".")]:
                self.to.touch(word, self.cwds[0], names=True)
        if (
            effect == "read"
            and not files
            and self.has(r"-\w*[rR]|--recursive") | (self.name in _DEEP)
        ):
            files = [Word(".")]
        for number, word in enumerate(files if effect in ("read", "write", "delete") else ()):
            last = "last" in entry and number == len(files) - 1 or "second" in entry and number == 1
            self.file("write" if last else effect, word)
        if self.name in ("rg", "fd", "ag") and self.has(r"--pre|--exec|-[xX]|--pager"):
            self.doubt("it runs another program")
        if effect in ("write", "delete"):
            return None
        if effect == "build" and any(map(_OUT.search, self.plain[:2])):
            effect = "push"  # mkdocs gh-deploy, maturin publish
        if effect == "build":
            self._puts_out()
            self._beyond()
        given = {*entry.get("loose", ())}
        loose = [w for w in self.args if not w.sure and not (w.names and set(w.names) <= given)]
        if given:  # numbers of processes, from programs that tell them
            loose = [word for word in loose if word.names or not self._tells(word)]
        shown = effect in ("look", "keep", "build", "read")
        if effect == "look" and "rules" not in entry:
            loose = []
        if effect == "build":  # the words of a function around it
            loose = [word for word in loose if not word.names or set(word.names) - _GIVEN]
        if not all(self.tame(word) if shown else False for word in loose):
            values = {id(value) for _, value in self.flags if effect in ("look", "keep")}
            if effect != "read" and any(id(word) not in values for word in loose):
                self.doubt("with what")
        if effect == "secret":
            self.to.secrets.append(self.text)
        for word in (
            self.words if effect == "undoable" and len(entry) == 1 + ("kind" in entry) else ()
        ):
            if "secret" in self.marks(word.text):  # xclip a.key
                self.file("read", word)
        deep = effect == "read" and (self.has(r"-\w*[rR]|--recursive") or self.name in _DEEP)
        if deep and re.search(r"(?i)token|secret|passw|api.?key|private.?key", self.text):
            far = [word.text for word in files if word.text[:1] in "/~."]
            self.to.secrets += [each for each in far if "inside" not in self.marks(each)]
        self.to.sends = self.to.sends or effect == "fetch"
        return self.sent(effect)

    _plain = _rules

    def _runner(self, entry: Entry) -> None:
        """A sub-command that runs what follows it."""
        if self.table.effect(entry, self.args) != "@":
            return self._rules(entry)
        rules = (rule.split() for rule, value in entry["rules"].items() if value == "@")
        count = next((len(rule) for rule in rules if rule == self.plain[: len(rule)]), 0)
        if len(self.words) <= count:
            return self.add("look")
        return self.run(self.after(count))


def said(command: Command) -> str | None:
    """The text that a command puts out, None when it is not known."""
    name = command.words[0].text if command.words else ""
    rest = [word for word in command.words[1:] if not re.fullmatch(r"-[neE]+", word.text)]
    if name == "cat" and command.here is not None and command.here.sure and not rest:
        return command.here.text
    if name in ("echo", "printf") and all(w.sure and "\\" not in w.text for w in rest):
        return " ".join(word.text for word in rest) + "\n"
    return None
