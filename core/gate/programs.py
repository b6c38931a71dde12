"""One command of a script: which program it is, what it runs in its turn, what its words mean. Owns the
kinds of programs that programs.toml names.

Invariant: a word that is not sure never makes an action milder; what no kind and no rule explains is a
doubt."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from exo.core.context.redact import redact
from exo.core.gate import hosts
from exo.core.gate.shell import Command, Script, Word
from exo.core.gate.table import UNKNOWN, split

if TYPE_CHECKING:
    from exo.core.gate.classify import Judge

_BIN = re.compile(
    r"(/usr(/local)?)?/s?bin|.*/(\.?venv|env)/bin|\.?venv/bin|.*node_modules/\.bin|node_modules/\.bin"
)
_SECRET_NAME = re.compile(
    r"(?i)(token|secret|passw|api_?key|private_?key|access_?key|credential|_auth$|_pat$)"
)
_VERSION = re.compile(r"(?<=[a-z])-?\d[\d.]*$")
_REMOTE = re.compile(r"^(?:[\w.+-]+@)?\[?[\w.:-]+\]?::?(?!//)(?!\\)")
_SED = re.compile(r"(?:^|[;{}\n$/!0-9])\s*[ewW](?:\s|$)|([^\w\s]).*?\1.*?\1[gpiIm0-9]*[ew]")
_OUT = (">", ">>", ">|", "&>", "&>>", "<>")


class Program:
    """`judge` tells the Judge what the command does."""

    def __init__(self, judge: Judge, script: Script, command: Command, cwds: list[str]) -> None:
        self.to, self.script, self.command, self.cwds = judge, script, command, cwds
        self.table = judge.table
        self.name, self.args, self.text = "", list[Word](), ""

    def judge(self) -> list[str]:
        """Returns the working folders that may hold for the commands after it."""
        command = self.command
        for op, target in command.redirects:
            if op in (">&", "<&") and re.fullmatch(r"\d+-?|-", target.text):
                continue
            self.file("write" if op in _OUT or op == ">&" else "read", target, op)
        for name, value in command.assigned:
            if name in self.table.words["unsafe_variables"] and (
                name != "IFS" or not command.words
            ):
                self.to.doubt(f"{name} is set, which changes what runs")
            del value
        if command.words:
            self.run(command.words, script=True)
        if self.name in ("cd", "pushd", "popd"):
            return self._moved()
        return self.cwds

    def run(self, words: list[Word], script: bool = False) -> None:
        """Judge a program with its words."""
        first = words[0]
        self.args, self.text = words[1:], " ".join(word.text for word in words)
        if not first.sure or first.choice or first.glob and first.text not in ("[", "[["):
            return self.to.doubt(f"which program it is: {self.text}")
        if first.text in self.script.functions:
            return None
        folder, slash, name = first.text.rpartition("/")
        if slash and not _BIN.fullmatch(folder):
            return self._own(first)
        self.name = name if name in self.table.programs else _VERSION.sub("", name)
        entry = self.table.programs.get(self.name)
        self.to.here = frozenset({f"program:{self.name}"})
        self.to.names |= {f"program:{self.name}", f"{self.name} {self._steps(entry or {})}".strip()}
        if entry is None:
            return self.to.doubt(f"the program {name} is not known: {self.text}")
        found = len(self.to.found)
        texts = [word.text for word in self.args]
        if texts[-1:] == ["--help"] and not any(text[:1] == "-" for text in texts[:-1]):
            return self.add("look")
        if len(texts) == 1 and texts[0] in ("--version", "-V", "--help") or texts == ["version"]:
            return self.add("look")
        if self.name not in ("test", "[", "[["):
            named = [name for word in self.args for name in word.names if _SECRET_NAME.search(name)]
            named += [
                text for text in texts if self.name == "printenv" and _SECRET_NAME.search(text)
            ]
            self.to.secrets += [f"${name}" for name in named]
        if self.name in ("env", "printenv", "set", "export", "declare") and not texts:
            self.to.carried.append("the environment")
        from_env = any(
            each.words and each.words[0].text in ("env", "printenv", "set") for each in self._fed()
        )
        if from_env and self.name in self.table.names and _SECRET_NAME.search(self.text):
            self.to.secrets.append("variables with secrets")
        self._by_kind(entry)
        base = entry.get("base")
        while base is not None:  # the person's entry never hides ours
            mine = self.to.found[found:]
            self.to.found[found:] = []
            self._by_kind(base)
            self.to.found += mine
            base = base.get("base")
        return None

    def _by_kind(self, entry: dict[str, Any]) -> None:
        kind = entry.get("kind", "rules")
        getattr(self, "_code_kind" if kind == "code" else f"_{kind}")(entry)

    def _steps(self, entry: dict[str, Any]) -> str:
        return " ".join(split(entry, self.args)[1][:1])

    # ---- words -------------------------------------------------------------------------------------

    def tame(self, word: Word) -> bool:
        """An unsure word that can only be a name that listing programs gave."""
        return not word.names and all(
            each.words and each.words[0].text in self.table.names
            for each in (self.script.commands[number] for number in word.inner)
            if each.words
        )

    def file(self, effect: str, word: Word, verb: str = "") -> None:
        verb = verb or self.name
        if not word.sure:
            if effect == "look" or effect == "read" and self.tame(word):
                return None
            if word.inner and word.text == "/dev/fd/63":
                return None
            return self.to.doubt(f"which file: {verb} {word.text}")
        self.to.path(verb, effect, word, *self.cwds)
        return None

    def add(self, effect: str, shape: str = "") -> None:
        self.to.add(effect, self.text, f"{self.name} {shape or self._shape()} in {self.cwds[0]}")

    def _shape(self) -> str:
        """Sub-command and flags, as they stand."""
        entry = self.table.programs.get(self.name, {})
        flags, plain, _ = split(entry, self.args)
        return " ".join([*plain[:2], *sorted({flag for flag, _ in flags})])

    def _fed(self) -> list[Command]:
        return [self.script.commands[number] for number in self.command.feeds]

    def _fed_text(self) -> str | None:
        """What comes in by the pipe or a heredoc, None when it is not known."""
        if self.command.here is not None:
            return self.command.here.text if self.command.here.sure else None
        out = []
        for each in self._fed():
            name = each.words[0].text if each.words else ""
            rest = [word for word in each.words[1:] if not re.fullmatch(r"-[neE]+", word.text)]
            if name == "cat" and each.here is not None and each.here.sure and not rest:
                out.append(each.here.text)
            elif name in ("echo", "printf") and all(
                word.sure and "\\" not in word.text for word in rest
            ):
                out.append(" ".join(word.text for word in rest))
            else:
                return None
        return "\n".join(out) if out else None

    # ---- kinds -------------------------------------------------------------------------------------

    def _plain(self, entry: dict[str, Any]) -> None:
        effect = str(entry["otherwise"])
        flags, _, plain = split(entry, self.args)
        for flag, value in flags:
            if value is not None and flag in entry.get("writes", ()):
                self.file("write", value)
            elif flag.startswith("-o") and flag[:2] in entry.get("writes", ()):
                self.to.doubt(f"where it writes: {self.text}")
        if any(flag in entry.get("unknown", ()) for flag, _ in flags):
            self.to.doubt(f"what it changes: {self.text}")
        if effect == "look":
            return self.add("look", self.name)
        if effect == "fetch":
            self.to.sends = True
        if any(flag in entry.get("inplace", ()) for flag, _ in flags):
            for word in plain[1:]:
                self.file("write", word)
        if entry.get("second"):
            for word in plain[1:2]:
                self.file("write", word)
        if effect in ("read", "write", "delete"):
            patterns = self.name in (
                "grep",
                "egrep",
                "fgrep",
                "rg",
                "ag",
                "ack",
                "jq",
                "yq",
                "tr",
                "zgrep",
            )
            for word in plain[1:] if patterns else plain:
                self.file(effect, word)
            for flag, value in flags:
                if value is not None and value.text and flag.startswith("--"):
                    self.file("read", value)
            if self.name in ("rg", "fd") and re.search(r"--pre\b|--exec|(?:^| )-[xX]\b", self.text):
                self.to.doubt(f"it runs another program: {self.text}")
            return None if effect != "read" else self.add("read", self.name)
        if effect != "build" and any(not word.sure for word in self.args):
            self.to.doubt(f"with what: {self.text}")
        return self._sent(effect)

    def _sent(self, effect: str) -> None:
        """An effect of the table; what leaves is looked at."""
        if self.table.effects.get(effect) and self.table.effects[effect].exposure != "private":
            self.to.sends = True
            self.to.said.append(self.text)
            self._leaks()
        self.add(effect)

    def _leaks(self) -> None:
        for word in self.args:
            if (
                any(_SECRET_NAME.search(name) for name in word.names)
                or redact(word.text) != word.text
            ):
                self.to.secrets.append(f"in {self.name}'s words")
            path = word.text.rpartition("@")[2].rpartition("=")[2]
            if (
                path
                and "://" not in word.text
                and "secret" in self.to.facts.places.marks(path, self.cwds[0])
            ):
                self.to.secrets.append(path)

    def _rules(self, entry: dict[str, Any]) -> None:
        effect = self.table.effect(entry, self.args)
        flags, _, plain = split(entry, self.args)
        loose = [
            word for word in plain if not word.sure and not (effect == "look" and self.tame(word))
        ]
        if loose or any(
            value and not value.sure for _, value in flags if effect not in ("look", "keep")
        ):
            self.to.doubt(f"with what: {self.text}")
        for flag, value in flags:
            if value is not None and flag in entry.get("writes", ()) and effect != "read":
                self.file("write", value)
        if effect in ("read", "write"):
            for word in plain[1:]:
                self.file(effect, word)
        if effect == "secret":
            self.to.secrets.append(self.text)
        self._sent(effect)

    def _copy(self, entry: dict[str, Any]) -> None:
        flags, _, plain = split(
            {"values": ("-t", "--target-directory", "-m", "-o", "-g")}, self.args
        )
        into = [v for flag, v in flags if flag in ("-t", "--target-directory") and v is not None]
        for word in plain if into else plain[:-1]:
            self.file("read", word)
            if self.name == "mv":
                self.file("write", word)
            if (
                self.name == "ln"
                and word.sure
                and "secret" in self.to.facts.places.marks(word.text, self.cwds[0])
            ):
                self.to.secrets.append(word.text)
        for word in into or plain[-1:]:
            self.file("write", word)

    def _wrapper(self, entry: dict[str, Any]) -> None:
        args, takes = self.args, entry.get("values", ())
        strings, at = entry.get("strings", ()), 0
        if args and args[0].text in entry.get("looks", ()):
            return self.add("look", self.name)
        while at < len(args) and (
            args[at].text.startswith("-") or entry.get("assigns") and "=" in args[at].text
        ):
            text = args[at].text
            name = text.partition("=")[0]
            if name in strings or text[:2] in strings:
                rest = (
                    [args[at + 1]]
                    if text in strings and at + 1 < len(args)
                    else [Word(text[2:].lstrip("="))]
                )
                return self._code(rest[0])
            if not text.startswith("-") and name in self.table.words["unsafe_variables"]:
                self.to.doubt(f"{name} is set, which changes what runs")
            at += 2 if text in takes else 1
        rest = args[at + entry.get("skip", 0) :]
        if rest:
            begun, doubts, text = len(self.to.found), len(self.to.doubts), self.text
            self.run(rest)
            looks = all(not each.effect.changes for each in self.to.found[begun:])
            if "raises" in entry and not (looks and len(self.to.doubts) == doubts):
                self.to.add(entry["raises"], text, text)
        elif self.name not in ("exec", "env", "command"):
            self.to.doubt(f"what it runs: {self.text}")
        else:
            self.add("look", self.name)
        return None

    def _code(self, word: Word) -> None:
        """A word that is shell code."""
        if not word.sure:
            return self.to.doubt(f"what it runs: {self.text}")
        return self.to.script(word.text, self.cwds)

    def _eval(self, entry: dict[str, Any]) -> None:
        words = list(split(entry, self.args)[2])
        sure = all(word.sure for word in words)
        self._code(Word(" ".join(word.text for word in words), sure))

    def _trap(self, entry: dict[str, Any]) -> None:
        plain = split(entry, self.args)[2]
        return self._code(plain[0]) if plain and plain[0].text != "-" else self.add("look")

    def _alias(self, entry: dict[str, Any]) -> None:
        for word in self.args:
            if "=" in word.text:
                self._code(Word(word.text.partition("=")[2], word.sure))

    def _shell(self, entry: dict[str, Any]) -> None:
        if "raises" in entry:
            self.to.add(entry["raises"], self.text, self.text)
        flags, _, plain = split(entry, self.args)
        if any(re.fullmatch(r"-\w*c", flag) or flag == "--command" for flag, _ in flags) and plain:
            return self._code(plain[-1] if self.name == "su" else plain[0])
        if any(flag in ("--version", "--help") for flag, _ in flags):
            return self.add("look")
        if plain and not any(re.fullmatch(r"-\w*s", flag) for flag, _ in flags):
            return self._own(plain[0], self.args)
        text = self._fed_text()
        return (
            self.to.doubt(f"what it runs: {self.text}") if text is None else self._code(Word(text))
        )

    def _source(self, entry: dict[str, Any]) -> None:
        word = self.args[0] if self.args else Word("", sure=False)
        if re.fullmatch(r"(\./)?[\w./-]*\bactivate(\.\w+)?", word.text) and word.sure:
            return self.add("keep")
        return self._own(word)

    def _own(self, word: Word, args: list[Word] | None = None) -> None:
        """A script or program of the folder's own."""
        place = self.to.facts.places
        marks = place.marks(word.text, self.cwds[0]) if word.sure else set[str]()
        if "inside" not in marks or "secret" in marks or len(self.cwds) > 1:
            return self.to.doubt(f"what it runs: {self.text}")
        if place.full(word.text, self.cwds[0]) in self.to.written and self.to.fetches:
            return self.to.doubt(f"what it runs, fresh from the network: {self.text}")
        self.name = self.name or word.text.rpartition("/")[2]
        self.to.names.add(f"program:{self.name}")
        if re.search(self.table.words["targets"], self.text, re.I):
            return self._sent("push")
        return self.add("build", word.text)

    def _code_of(self, entry: dict[str, Any]) -> tuple[Word | None, list[Word]]:
        """The code in the words, and the words that are left."""
        code, rest, at = None, list[Word](), 0
        letters = "".join(flag[1] for flag in entry["code"] if len(flag) == 2)
        while at < len(self.args):
            word = self.args[at]
            clustered = re.fullmatch(rf"-[a-zA-Z0-9]*[{letters}]", word.text)
            if (
                (word.text in entry["code"] or clustered)
                and code is None
                and at + 1 < len(self.args)
            ):
                code = self.args[at + 1]
                at += 1
            elif word.text[:2] in entry["code"] and len(word.text) > 2 and word.text[1] != "-":
                code = replace(word, text=word.text[2:])
            else:
                rest.append(word)
            at += 1
        return code, rest

    def _code_kind(self, entry: dict[str, Any]) -> None:
        code, rest = self._code_of(entry)
        flags, _, plain = split(entry, rest)
        module = next((v for flag, v in flags if flag == entry.get("module")), None)
        texts = [flag for flag, _ in flags]
        if code is None and entry.get("module") in texts and plain:
            module = plain[0]
        if code is not None:
            names = re.findall(r"['\"]([^'\"\n]{2,200})['\"]", code.text)
            if not code.sure or re.search(
                entry["asks"], code.text, re.I if self.name == "php" else 0
            ):
                self.to.doubt(f"what its code does: {self.text}")
            for name in names:
                self.file("read", Word(name))
            for word in plain:
                self.file("read", word)
                if any(flag.startswith("-i") or flag[:2] == "-p" and "i" in flag for flag in texts):
                    self.file("write", word)
            return self.add("read")
        if module is not None:
            index = next(n for n, word in enumerate(self.args) if word.text.startswith("-m"))
            if module.text in (
                "http.server",
                "json.tool",
                "venv",
                "timeit",
                "compileall",
                "pdb",
                "cProfile",
                "zipfile",
                "doctest",
                "this",
                "site",
                "platform",
                "build",
                "trace",
                "ensurepip",
            ):
                return self.add("build")
            return self.run(
                [module, *self.args[index + (1 if len(self.args[index].text) > 2 else 2) :]]
            )
        if plain and plain[0].text != "-":
            return self._own(plain[0])
        if any(flag in ("--version", "-V", "-v", "--help") for flag in texts):
            return self.add("look")
        text = self._fed_text()
        if text is None or re.search(entry["asks"], text):
            return self.to.doubt(f"what its code does: {self.text}")
        return self.add("read")

    def _awk(self, entry: dict[str, Any]) -> None:
        flags, _, plain = split(entry, self.args)
        if any(flag in ("-f", "-i", "--file") for flag, _ in flags) or not plain:
            return self.to.doubt(f"what its code does: {self.text}")
        code = re.sub(
            r"\$?\w+\s*>=?\s*-?[\d.]+|\"[^\"]*\"(?!\s*\|)|/[^/\n]*/|\|\|", "", plain[0].text
        )
        if not plain[0].sure or re.search(entry["asks"], code):
            return self.to.doubt(f"what its code does: {self.text}")
        for word in plain[1:]:
            self.file("read", word)
        return self.add("read")

    def _sed(self, entry: dict[str, Any]) -> None:
        flags, _, plain = split(entry, self.args)
        codes = [v for flag, v in flags if flag in ("-e", "--expression") and v is not None]
        files = plain if codes else plain[1:]
        for code in codes or plain[:1]:
            if not code.sure and len(code.inner) + len(code.names) != 0 or _SED.search(code.text):
                self.to.doubt(f"what its code does: {self.text}")
        if any(flag in ("-f", "--file") for flag, _ in flags):
            self.to.doubt(f"what its code does: {self.text}")
        writes = any(re.match(r"-[nrEsz]*i|--in-place", flag) for flag, _ in flags)
        for word in files:
            self.file("write" if writes else "read", word)
        return self.add("read")

    def _find(self, entry: dict[str, Any]) -> None:
        texts = [word.text for word in self.args]
        roots = []
        for word in self.args:
            if word.text[:1] in "-(!":
                break
            roots.append(word)
        name = next(
            (self.args[n + 1] for n, t in enumerate(texts[:-1]) if t in ("-name", "-path")),
            Word("*"),
        )
        negated = "-not" in texts or "!" in texts or "-o" in texts or not name.sure
        hits = [
            Word(
                f"{root.text.rstrip('/')}/{'*' if negated else name.text.lstrip('*/') and name.text}",
                root.sure,
                True,
            )
            for root in roots or [Word(".")]
        ]
        for number, text in enumerate(texts):
            if text in ("-exec", "-execdir", "-ok", "-okdir"):
                end = next(
                    (n for n in range(number + 1, len(texts)) if texts[n] in (";", "+")), len(texts)
                )
                inner: list[Word] = []
                for word in self.args[number + 1 : end]:
                    inner += (
                        hits
                        if word.text == "{}"
                        else [replace(word, sure=word.sure and "{}" not in word.text)]
                    )
                if not inner:
                    self.to.doubt(f"what it runs: {self.text}")
                else:
                    Program(self.to, self.script, self.command, self.cwds).run(inner)
            elif text == "-delete":
                for hit in hits:
                    self.file("delete", hit)
            elif text.startswith(("-fprint", "-fls")):
                self.to.doubt(f"where it writes: {self.text}")
        return self.add("look", "find")

    def _xargs(self, entry: dict[str, Any]) -> None:
        rest = list(self.args)
        while rest and rest[0].text.startswith("-"):
            taken = rest.pop(0)
            if taken.text in entry["values"] and rest:
                rest.pop(0)
            if taken.text[:2] in ("-a",) or taken.text.startswith("--arg-file"):
                return self.to.doubt(f"what it gets: {self.text}")
        if ":::" in [word.text for word in rest]:
            at = [word.text for word in rest].index(":::")
            more, rest = rest[at + 1 :], rest[:at]
        else:
            more = self._piped()
        if not rest or self.name == "parallel" and len(rest) == 1 and " " in rest[0].text:
            return (
                self.to.doubt(f"what it runs: {self.text}")
                if rest or self.name != "xargs"
                else self.add("look", "xargs")
            )
        return self.run([*rest, *more])

    def _piped(self) -> list[Word]:
        """What the programs before the pipe may hand on as words."""
        more = []
        for each in self._fed():
            name = each.words[0].text if each.words else ""
            words = each.words[1:]
            if name in ("echo", "printf"):
                for word in words:
                    more += [replace(word, text=part) for part in word.text.split()] or [word]
            elif name in ("find", "fd", "ls"):
                texts = [word.text for word in words]
                pattern = next(
                    (words[n + 1] for n, t in enumerate(texts[:-1]) if t == "-name"), Word("*")
                )
                root = words[0].text if words and words[0].text[:1] not in "-(!" else "."
                more.append(
                    Word(f"{root.rstrip('/')}/{pattern.text}", all(w.sure for w in words), True)
                )
            elif name == "git" or name in self.table.names:
                more.append(Word("./*", True, True))
            else:
                more.append(Word("?", False, names=("?",)))
        return more or [Word("?", False, names=("?",))]

    def _runner(self, entry: dict[str, Any]) -> None:
        effect = self.table.effect(entry, self.args)
        if effect != "@":
            return self._rules(entry)
        plain = split(entry, self.args)[2]
        texts = [word.text for word in plain]
        rules = (rule.split() for rule, value in entry["rules"].items() if value == "@")
        steps = next((rule for rule in rules if rule == texts[: len(rule)]), [])
        rest = self.args[self.args.index(plain[len(steps)]) :] if len(plain) > len(steps) else []
        return self.run(rest) if rest else self.add("look")

    def _run(self, entry: dict[str, Any]) -> None:
        """A runner of the folder's own targets."""
        if (effect := self.table.effect(entry, self.args)) != UNKNOWN:
            return self._rules(entry)
        flags, plain, words = split(entry, self.args)
        del effect
        if any(not word.sure and not self.tame(word) for word in self.args):
            return self.to.doubt(f"with what: {self.text}")
        if any(re.search(self.table.words["targets"], word, re.I) for word in plain):
            return self._sent("push")
        for flag, value in flags:
            if flag in ("-C", "-f", "--file", "--directory", "--prefix") and value is not None:
                if (
                    not value.sure
                    or value.text == "-"
                    or "inside" not in self.to.facts.places.marks(value.text, self.cwds[0])
                ):
                    return self.to.doubt(f"what it runs: {self.text}")
        return self.add("build")

    def _git(self, entry: dict[str, Any]) -> None:
        flags, plain, words = split(entry, self.args)
        for flag, value in flags:
            text = value.text if value else ""
            if (
                flag == "-c"
                and re.match(self.table.words["unsafe_settings"], text, re.I)
                or flag
                in (
                    "--exec",
                    "--upload-pack",
                    "--receive-pack",
                    "--exec-path",
                    "--config-env",
                    "-x",
                )
                and (value or flag == "-x")
                and plain[:1] not in (["clean"], ["rebase"])
            ):
                return self.to.doubt(f"it may run another program: {self.text}")
            if (
                flag == "-C"
                and value
                and value.sure
                and "inside" not in self.to.facts.places.marks(text, self.cwds[0])
            ) and self.table.effect(entry, self.args) != "look":
                return self.to.doubt(f"another folder than this one: {self.text}")
        effect = self.table.effect(entry, self.args)
        if effect == "@":
            return self._runner(entry)
        for flag, value in flags:
            if flag in ("--exec", "-x") and plain[:1] == ["rebase"] and value:
                self._code(value)
        if effect == "config":
            bad = len(plain) > 2 and re.match(self.table.words["unsafe_settings"], plain[1], re.I)
            effect = "system" if bad else "look" if len(plain) < 3 else "keep"
        if effect == "clone":
            effect = "keep"
            odd = len(plain) > 1 and (
                plain[1].startswith("ext::")
                or "://" in plain[1]
                and hosts.kind_of(plain[1]) == "odd"
            )
            if odd:
                return self.to.doubt(f"where it leads is not clear: {self.text}")
            for word in words[2:3]:
                self.file("write", word)
        if plain[:1] == ["push"]:
            remote = plain[1] if len(plain) > 1 else ""
            if any(word.startswith(("+", ":")) for word in plain[2:]) and effect == "push":
                effect = "post"
            if remote.startswith((".", "/", "file:")):
                effect = {"push": "keep", "post": "undoable"}.get(effect, effect)
            self.to.names.add(f"host:{hosts.host_of(remote)}")
        shown = {"look", "keep", "undoable"}
        for flag, value in flags:
            if value is not None and not value.sure and effect not in shown:
                self.to.doubt(f"with what: {self.text}")
        for word in words:
            if not word.sure and not (effect in shown and self.tame(word)):
                self.to.doubt(f"with what: {self.text}")
        if effect in ("read", "write"):
            for word in words[1:]:
                self.file("read", word)
            effect = "look" if effect == "read" else "keep"
        for flag, value in flags:
            if (
                flag in ("--output", "-o")
                and value is not None
                and plain[:1] not in (["push"], ["ls-files"])
            ):
                self.file("write", value)
        if effect == "lose" and plain[:1] == ["restore"] and "--staged" in [f for f, _ in flags]:
            effect = "keep"
        if effect == UNKNOWN:
            return self.to.doubt(f"git {plain[0] if plain else ''} is not known: {self.text}")
        return self._sent(effect)

    def _forge(self, entry: dict[str, Any]) -> None:
        flags, plain, _ = split(entry, self.args)
        if self.table.effect(entry, self.args) != "api":
            return self._rules(entry)
        method = next((v.text for flag, v in flags if flag in ("-X", "--method") and v), "")
        asks = [word.text for word in self.args]
        for number, word in enumerate(asks):
            method = (
                asks[number + 1]
                if word in ("-X", "--method") and number + 1 < len(asks)
                else method
            )
        fields = any(re.match(r"-[fF]|--(raw-)?field|--input", word) for word in asks)
        reads = method.upper() in ("GET", "HEAD") or not method and not fields
        return self._sent("fetch" if reads else "post")

    def _net(self, entry: dict[str, Any]) -> None:
        flags, _, urls = split(entry, self.args)
        method, body = "GET", list[Word]()
        names = [flag for flag, _ in flags]
        for flag, value in flags:
            if flag in entry.get("unknown", ()):
                self.to.doubt(f"what it asks: {self.text}")
            if flag in entry.get("method", ()) and value:
                method = value.text.upper() if value.sure else "?"
            if flag in entry.get("body", ()) and value:
                body.append(value)
                stated = re.match(r"(?:[\w.-]*=)?[@<](.+)", value.text)
                if stated and stated[1] != "-" and flag not in ("--data-raw", "--form-string"):
                    self.file(
                        "read",
                        Word(re.sub(r";.*", "", stated[1]), value.sure),
                        f"{self.name} sends",
                    )
            if flag in entry.get("files", ()) and value and value.text != "-":
                self.file("read", value, f"{self.name} sends")
            if flag in entry.get("writes", ()) and value and value.text != "-":
                self.file("write", value)
            if flag in entry.get("url", ()) and value:
                urls.append(value)
        if body and method == "GET":
            method = "GET" if any(flag in names for flag in entry.get("get", ())) else "POST"
        if any(flag in names for flag in ("-I", "--head")):
            method = "HEAD"
        if not urls:
            if set(names) & {"--version", "--help", "-V", "-h"}:
                return self.add("look")
            return self.to.doubt(f"where it leads: {self.text}")
        self._asked(method, urls, "\n".join(word.text for word in body))
        if any(not word.sure for word in body):
            for word in body:
                if not word.sure and not self.tame(word):
                    self.to.doubt(f"what it sends: {self.text}")
        return None

    def _asked(self, method: str, urls: list[Word], body: str) -> None:
        self._leaks()
        for url in urls:
            self.to.request(method, url, body, self.text)

    def _httpie(self, entry: dict[str, Any]) -> None:
        flags, plain, words = split(entry, self.args)
        for flag, value in flags:
            if flag in entry["writes"] and value:
                self.file("write", value)
        method = plain[0] if plain and re.fullmatch(r"[A-Z]+", plain[0]) else ""
        rest = words[1:] if method else words
        if rest and re.match(r":(\d|/|$)", rest[0].text):
            rest = [replace(rest[0], text=f"localhost{rest[0].text}"), *rest[1:]]
        body = [word.text for word in rest[1:] if re.search(r"(?<!=)=(?!=)|:=|@", word.text)]
        for word in rest[1:]:
            if "@" in word.text:
                self.file("read", Word(word.text.rpartition("@")[2]))
        piped = bool(self.command.feeds) or self.command.here is not None
        if not rest:
            return self.to.doubt(f"where it leads: {self.text}")
        return self._asked(method or ("POST" if body or piped else "GET"), rest[:1], " ".join(body))

    def _raw(self, entry: dict[str, Any]) -> None:
        flags, plain, words = split(entry, self.args)
        names = [flag for flag, _ in flags]
        local = plain and hosts.kind_of(plain[0]) == "local"
        if (
            any(re.match(r"-\w*[lec]|--exec|--sh-exec|--listen", flag) for flag in names)
            or self.name == "socat"
        ):
            return self.to.doubt(f"it opens a door: {self.text}")
        if any(re.match(r"-\w*z", flag) for flag in names) or local:
            return self.add("fetch")
        self.to.sends = True
        return self._sent("post")

    def _ssh(self, entry: dict[str, Any]) -> None:
        flags, plain, words = split(entry, self.args)
        if any(
            value and re.match(r"(?i)(proxycommand|localcommand|permitlocal)", value.text)
            for _, value in flags
        ):
            return self.to.doubt(f"it runs another program: {self.text}")
        if not plain:
            return self.to.doubt(f"where it leads: {self.text}")
        at = self.args.index(words[0]) + 1
        self.to.names.add(f"host:{hosts.host_of(plain[0])}")
        self.to.sends = True
        inner = self.args[at:]
        text, begun = self.text, len(self.to.found)
        if inner:
            self._code(
                Word(" ".join(word.text for word in inner), all(word.sure for word in inner))
            )
        elif (fed := self._fed_text()) is not None:
            self._code(Word(fed))
        quiet = inner and all(not each.effect.changes for each in self.to.found[begun:])
        self.text, self.name = text, "ssh"
        return self.add(
            "fetch" if quiet else "remote", f"{plain[0]} {' '.join(w.text for w in inner)}"
        )

    def _transfer(self, entry: dict[str, Any]) -> None:
        flags, plain, words = split(entry, self.args)
        names = [flag for flag, _ in flags]
        for flag, value in flags:
            if (
                flag in ("-e", "--rsh", "-S", "-o", "--rsync-path")
                and value
                and re.search(r"(?i)command|[;|&$`]|sh -c", value.text)
            ):
                self.to.doubt(f"it runs another program: {self.text}")
        if any(flag in names for flag in entry.get("tries", ())) or any(
            re.fullmatch(r"-\w*n\w*", f) for f in names if self.name == "rsync"
        ):
            return self.add("look")
        away = [bool(_REMOTE.match(text)) or "://" in text for text in plain]
        for word, far in zip(words[:-1], away[:-1], strict=False):
            if not far:
                self.file("read", word)
        if not plain:
            return self.to.doubt(f"what it copies: {self.text}")
        deletes = any(flag in entry.get("deletes", ()) for flag in names)
        if away[-1]:
            self.to.sends = True
            return self._sent("remote")
        self.file("delete" if deletes else "write", words[-1])
        return self.add("fetch" if any(away) else "read")

    def _archive(self, entry: dict[str, Any]) -> None:
        flags, plain, words = split(entry, self.args)
        names = " ".join(flag for flag, _ in flags)
        if re.search(
            r"--(to-command|checkpoint-action|use-compress-program|rsh-command|info-script|new-volume)|(^| )-I|-TT",
            names,
        ):
            return self.to.doubt(f"it runs another program: {self.text}")
        first = plain[0] if plain else ""
        bundled = self.name == "tar" and first and re.fullmatch(r"[a-zA-Z]+", first) and not flags
        mode = f"{names} {first}" if bundled or self.name == "7z" else names
        makes = (
            self.name == "zip" or re.search(r"(^|\s)-?\w*[cru]\w*(\s|$)|--create", mode)
            if self.name != "unzip"
            else False
        )
        lists = (
            self.name == "tar"
            and re.search(r"(^|\s)-?\w*t\w*(\s|$)|--list", mode)
            or self.name == "unzip"
            and re.search(r"-\w*[lpt]", names)
        )
        rest = words[1:] if bundled else words
        for flag, value in flags:
            if value is not None and flag not in ("--exclude", "--transform", "-x", "-P", "-X"):
                self.file(
                    "write" if flag in ("-C", "-d", "--directory") or makes else "read", value
                )
                if makes and flag == "-C":
                    self.file("read", value)
        for number, word in enumerate(rest):
            target = number == 0 and (self.name == "zip" or bundled and "f" in first)
            self.file("write" if target and makes else "read", word)
            if (
                makes
                and not target
                and word.sure
                and self.to.facts.places.marks(word.text, self.cwds[0]) & {"whole"}
            ):
                self.to.secrets.append(word.text)
        if self.name == "zip" and re.search(r"-\w*m", names):
            self.to.doubt(f"it deletes: {self.text}")
        return self.add("read" if lists else "keep")

    def _sql(self, entry: dict[str, Any]) -> None:
        flags, plain, words = split(entry, self.args)
        queries = [v for flag, v in flags if flag in entry.get("query", ()) and v]
        if self.name in ("sqlite3", "duckdb") and plain[:1] == [":memory:"]:
            return self.add("read")
        if self.name in ("sqlite3", "duckdb"):
            queries += words[1:] + [v for flag, v in flags if flag == "-cmd" and v]
            for word in words[:1]:
                self.file("read", word)
        host = next((v.text for flag, v in flags if flag in entry.get("host", ()) and v), "")
        host = host or next((text for text in plain if "://" in text), "localhost")
        away = hosts.kind_of(host) != "local" and not host.startswith("/")
        self.to.names.add(f"host:{hosts.host_of(host)}")
        if not queries and (fed := self._fed_text()) is not None:
            queries = [Word(fed)]
        listed = any(flag in ("-l", "--list", "--version", "-readonly") for flag, _ in flags)
        if not queries and not listed or any(not word.sure for word in queries):
            return self.to.doubt(f"what it asks the database: {self.text}")
        plain_sql = [re.sub(r"'[^']*'", "''", word.text) for word in queries]
        plain_sql = [re.sub(r"(?i)\bexplain\s+(?!analy|\()[^;]*", "", each) for each in plain_sql]
        writes = any(re.search(self.table.words["writing_sql"], each, re.I) for each in plain_sql)
        if writes:
            return self._sent("remote") if away else self.add("lose")
        return self.add("fetch" if away else "read")

    def _container(self, entry: dict[str, Any]) -> None:
        flags, plain, words = split(entry, self.args)
        if plain[:1] not in (["run"], ["exec"]):
            return self._rules(entry)
        for word in self.args:
            mount = word.text.partition("=")[2] if word.text.startswith("--") else word.text
            source = re.sub(r".*(?:source|src)=([^,]*).*", r"\1", mount).partition(":")[0]
            if (
                re.search(
                    r"--(privileged|pid|ipc|userns|cap-add|device|security-opt)|docker\.sock",
                    word.text,
                )
                or (
                    ":/" in mount
                    and source.startswith(("/", "~", "."))
                    and not self.to.facts.places.marks(source, self.cwds[0]) & {"inside", "scratch"}
                )
                or not word.sure
                and not self.tame(word)
            ):
                return self.to.doubt(f"what the container reaches: {self.text}")
        rest = words[2:]
        inner = self.args[self.args.index(rest[0]) :] if rest else []
        self.add("build")
        return self.run(inner) if inner else None

    def _cloud(self, entry: dict[str, Any]) -> None:
        flags, plain, words = split(entry, self.args)
        if any(
            word in entry["secrets"] or word.startswith(("get-secret", "secrets")) for word in plain
        ):
            self.to.secrets.append(self.text)
            return self.add("secret")
        verbs = [word for word in plain[:6] if re.fullmatch(r"[a-z][a-z-]+", word)]

        def hit(key: str) -> bool:
            return any(
                word == each or word.startswith(f"{each}-") for word in verbs for each in entry[key]
            )

        if self.name == "aws" and {flag for flag, _ in flags} & {"--dry-run", "--dryrun"}:
            return self.add("fetch")
        if hit("posts") or re.search(r"public-read|allUsers", self.text):
            return self._sent("post")
        if any(
            re.match(
                r"(delete|terminate|rm|rb|remove|destroy|purge|put|update|set|add|attach|cp|mv|sync|mb|apply|import|invoke|stop|reboot|ssh|exec|run|disable|reset|revoke)",
                word,
            )
            for word in verbs
        ) and not hit("rents"):
            return self._sent("remote")
        if hit("rents"):
            return self._sent("rent")
        if hit("reads") or not plain or {f for f, _ in flags} & {"--version", "--help"}:
            return self.add("fetch")
        return self._sent(str(entry.get("otherwise", "remote")))

    def _dd(self, entry: dict[str, Any]) -> None:
        for word in self.args:
            key, _, value = word.text.partition("=")
            if key in ("if", "of"):
                self.file("read" if key == "if" else "write", replace(word, text=value))
        return self.add("keep")

    def _moved(self) -> list[str]:
        plain = [word for word in self.args if not word.text.startswith("-") or word.text == "-"]
        target = plain[0] if plain else Word(self.to.facts.known.get("HOME", "/root"))
        if (
            not target.sure
            or target.glob
            or target.text == "-"
            or self.name == "popd"
            or self.command.piped
        ):
            return [*self.cwds, "/"]
        moved = [self.to.facts.places.full(target.text, cwd) for cwd in self.cwds]
        return (
            moved if self.command.after == "&&" else list(dict.fromkeys([*moved, *self.cwds]))[:4]
        )
