"""One command of a script: which program it is, and what it runs in its turn. Owns the kinds of programs
that run others.

Invariant: what no kind and no rule explains is a doubt."""

from __future__ import annotations

import re
from dataclasses import replace

from exo.tools.gate import hosts
from exo.tools.gate.parts import Entry, said
from exo.tools.gate.pycode import harmless
from exo.tools.gate.services import Services
from exo.tools.gate.shell import Command, Word
from exo.tools.gate.table import UNKNOWN

_BIN = re.compile(r"(/usr(/local)?)?/s?bin|(.*/)?(\.?v?env/bin|node_modules/\.bin)")
_SECRET = re.compile(
    r"(?i)(token|secret|passw|api_?key|private_?key|access_?key|credential|_auth$|_pat$)"
)
_VERSION = re.compile(r"(?<=[a-z])-?\d[\d.]*$")
_ALL = (["-p"], ["-x"], ["-px"], ["-xp"])  # variables with their values
_PIECE = r"(?:\\.|(?!\1).)*\1"
_SED = re.compile(
    r"(?:^|[;{}\n$/!0-9])\s*[ewW](?:\s|$)"
    rf"|(?:^|[;{{}}\s/$0-9])s([^\w\s]){_PIECE}{_PIECE}[gpiIm0-9]*[ew]",
    re.S,
)
_SED_EMPTIES = re.compile(r"\s*(1\s*,\s*\$|/\.\*/|/\^/|0,\$)?\s*[dD]\s*")
_IMAGE = (".img", ".bin", ".dat", ".raw", ".iso", ".swap", ".qcow2", ".vhd", ".disk", ".fat")
_AWK = re.compile(r"\$?\w+\s*>=?\s*-?[\d.]+|\"[^\"]*\"(?!\s*\|)|/[^/\n]*/|\|\|")
_TAR_RUNS = re.compile(
    r"--(remove-f|recursive-u|unlink-f|absolute|to-|checkpoint-act|use-comp|rsh|info-sc|new-vol)|(^| )-\w*[IF]\b"
)


class Program(Services):
    """`judge` tells the Judge what the command does."""

    def judge(self) -> list[str]:
        """Returns the working folders that may hold for the commands after it."""
        for op, target in self.command.redirects:
            if not (op in (">&", "<&") and re.fullmatch(r"\d+-?|-", target.text)):
                self.text, words = f"{op} {target.text}", self.command.words
                first = words[0].text if words else ""
                empties = op in (">", ">|") or op in ("&>", ">&") and first in ("", ":", "true")
                if empties and self._silent(self.command):
                    self.empty(target)
                self.file("write" if ">" in op else "read", target, op)
                text = said(self.command) if ">" in op and target.sure else None
                full = self.to.facts.places.full(target.text, self.cwds[0])
                self.to.texts[full] = self.to.texts.get(full, "") + (text or "")
        for name, value in self.command.assigned:
            if not (name == "IFS" and self.command.words):
                self.variable(name, value)
        if self.command.words:
            self.to.touch(Word("."), self.cwds[0], names=True)
            self.run(self.command.words)
        return self._moved() if self.name in ("cd", "pushd", "popd") else self.cwds

    def _silent(self, command: Command) -> bool:
        """Whether a command surely puts out nothing, so that what it is written to is emptied."""
        texts = [word.text for word in command.words]
        name, rest = (texts or [""])[0], [t for t in texts[1:] if not re.fullmatch("-[neE]+", t)]
        if command.block or command.assigned:
            return False
        gets = [target.text for op, target in command.redirects if op == "<"]
        fed = [self.script.commands[number] for number in command.feeds]
        if name in ("", ":", "true") or name == "printf" and rest in ([""], ["%s", ""]):
            return all(word.sure for word in command.words)
        if name == "echo":
            return any("n" in text for text in texts[1:]) and not any(rest)
        if name in ("head", "tail"):
            return re.search(r" (-[cn] ?|--(bytes|lines)[= ])0(\s|$)", " ".join(texts)) is not None
        nothing = gets[-1:] == ["/dev/null"] or bool(fed) and all(map(self._silent, fed))
        return name in ("cat", "tee", "sponge") and (
            bool(rest)
            and set(rest) == {"/dev/null"}
            or nothing
            and (name != "cat" or not rest)
            and command.here is None
        )

    def _emptied(self) -> None:
        """Files that programs which write get nothing for."""
        first = self.plain[:1] == ["/dev/null"]
        if self.name in ("cp", "install", "ln", "mv") and first and len(self.words) > 1:
            self.empty(self.words[-1])
        appends = self.has("-a|--append") or self.name not in ("tee", "sponge")
        for word in self.words if not appends and self._silent(self.command) else ():
            self.empty(word)
        if self.name == "truncate" and any(v.text == "0" for v in self.given(("-s", "--size"))):
            self.words = [word for word in self.words if not word.text.endswith(".log")]
        if self.name == "truncate" and self.given(("-s", "--size")):
            grown = [v.text for v in self.given(("-s", "--size")) if v.text.strip("0")]
            for word in [w for w in self.words if grown and w.text.endswith(_IMAGE)]:
                self.words.remove(word)
                self.file("write", word)
        if self.name == "openssl" and self.plain[:1] == ["s_client"]:
            gets = [
                t.text for op, t in self.command.redirects if op == "<" and t.text != "/dev/null"
            ]
            fed = [each.words[0].text for each in self.fed() if each.words]
            if gets or set(fed) - {"echo", "printf", "true", ":"}:
                self.doubt("what it sends")

    def run(self, words: list[Word]) -> None:
        """Judge a program with its words."""
        first = words[0]
        self.args, self.text = words[1:], " ".join(word.text for word in words)
        if not first.sure or first.choice or first.glob and first.text != "[":
            return self.doubt("which program it is")
        if first.text in self.script.functions:
            return None
        folder, slash, name = first.text.rpartition("/")
        if slash and not _BIN.fullmatch(folder):
            return self._own(first)
        self.name = name if name in self.table.programs else _VERSION.sub("", name)
        entry = self.table.programs.get(self.name)
        self.use(entry or {})
        self.to.here = frozenset({f"program:{self.name}"})
        self.to.names |= {f"program:{self.name}", " ".join([self.name, *self.plain[:1]])}
        texts = [word.text for word in self.args]
        if texts in (["--version"], ["--help"], ["-V"]):
            return self.add("look")
        if entry is None and self._named_reader():
            entry = {"kind": "plain", "otherwise": "read"}
        if entry is None:
            return self.doubt("the program is not known")
        helps = texts[-1:] == ["--help"] and not any(text[:1] == "-" for text in texts[:-1])
        if helps or len(texts) == 1 and texts[0] in ("version", "-v"):
            return self.add("look")
        self._secret_names(texts)
        while entry is not None:  # a person's own entry, then ours: it never hides ours
            self.use(entry)
            self._emptied()
            getattr(self, f"_{entry.get('kind', 'rules')}")(entry)
            entry = entry.get("base")
        return None

    def _named_reader(self) -> bool:
        """Whether a program that no table has is called what only readers are called (x-lint, check-x), and
        is given nothing that says more."""
        words = self.table.words
        named = re.fullmatch(words["reader_names"], self.name) is not None
        more = re.search(words["reader_doubts"], self.text, re.I)
        return named and more is None and all(word.sure for word in self.args)

    def _secret_names(self, texts: list[str]) -> None:
        """Variables that hold secrets: named, or all of them at once."""
        if self.name not in ("test", "[", "[["):
            named = [name for word in self.args for name in word.names]
            named += texts if self.name == "printenv" else []
            self.to.secrets += [f"${name}" for name in named if _SECRET.search(name)]
        if self.name in ("env", "printenv", "set", "export", "declare") and not texts:
            self.to.carried.append("the environment")
        told = self.name in ("env", "printenv") and not texts
        told = told or self.name in ("export", "declare", "typeset") and texts in _ALL
        if told and not self._narrowed():
            self.to.secrets.append("all variables")
        settings = {"config", "configure", "inspect"} & set(self.plain[:2])
        if settings and re.search(
            r"(?i)token|secret|passw|extraheader|config\.env|--environment", self.text
        ):
            self.to.secrets.append(self.text)
        sources = [each.words[0].text for each in self.fed() if each.words]
        hold = {"env", "printenv", "set", "declare", "export", "history"} & set(sources)
        if hold and self.name in (*self.table.names, "awk", "sed", "rg"):
            asked = re.search(r"(?i)token|secret|pass|key|cred|auth\b", self.text)
            self.to.secrets += ["variables with secrets"] * bool(asked)

    def _narrowed(self) -> bool:
        """Whether a program takes what comes out here and hands on a part, or a number, alone."""
        commands = self.script.commands
        at = next(n for n, each in enumerate(commands) if each is self.command)
        takers = [each.words[0].text for each in commands if at in each.feeds and each.words]
        return bool({"grep", "egrep", "rg", "cut", "wc", "awk", "sed"} & set(takers))

    def _sed(self, entry: Entry) -> None:
        codes, inplace = self.given(("-e", "--expression")), self.has(r"-[nrEsz]*i|--in-place")
        words = self.words[1:] if inplace and self.plain[:1] == [""] else self.words  # BSD's -i ''
        files = words if codes else words[1:]
        for word in files if inplace else ():
            if any(_SED_EMPTIES.fullmatch(code.text) for code in codes or words[:1]):
                self.empty(word)
        bad = [code for code in codes or words[:1] if not code.sure or _SED.search(code.text)]
        if bad or self.has("-f|--file"):
            self.doubt("what its code does")
        for word in files:
            self.file("write" if inplace else "read", word)
        return self.add("read")

    def _awk(self, entry: Entry) -> None:
        code = self.words[0] if self.words else Word("", sure=False)
        if (
            not code.sure
            or re.search(entry["asks"], _AWK.sub("", code.text))
            or self.has("-f|-i|--f")
        ):
            self.doubt("what its code does")
        for word in self.words[1:]:
            self.file("read", word)
        return self.add("read")

    def _dd(self, entry: Entry) -> None:
        texts = {word.text.partition("=")[0]: word.text.partition("=")[2] for word in self.args}
        source, target = texts.get("if", ""), texts.get("of", "")
        fills = source in ("/dev/zero", "/dev/urandom", "/dev/random") and "." in target
        fills = fills and not target.endswith(_IMAGE) and "conv" not in texts
        if target and (source == "/dev/null" or texts.get("count") == "0" or fills):
            self.empty(Word(target, all(word.sure for word in self.args)))
        for word in self.args:
            key, _, value = word.text.partition("=")
            if key in ("if", "of"):
                self.file("read" if key == "if" else "write", replace(word, text=value))

    def _archive(self, entry: Entry) -> None:
        names, first = " ".join(flag for flag, _ in self.flags), "".join(self.plain[:1])
        old = self.name == "tar" and bool(re.fullmatch(r"[a-zA-Z]+", first)) and not self.flags
        mode = f"-{first}" if old else names
        makes = self.name == "zip" or self.name == "tar" and re.search(r"-\w*[cru]|--cr", mode)
        lists = re.search(r"(^| )-\w*t|--list" if self.name == "tar" else r"-\w*[lpt]", mode)
        if self.name in ("tar", "bsdtar") and re.search(r"(^| )-\w*P", mode):
            self.doubt("where it unpacks to")
        if (
            _TAR_RUNS.search(names)
            or self.name == "zip"
            and re.search("(^| )(-m|-TT|--unzip)", names)
        ):
            self.doubt("it runs or deletes more")
        for flag, value in self.flags:
            if value is not None and flag in ("-f", "--file", "-C", "-d", "--directory"):
                self.file("write" if makes or flag not in ("-f", "--file") else "read", value)
        for number, word in enumerate(self.words[1:] if old else self.words):
            target = number == 0 and (self.name == "zip" or old and "f" in first)
            self.file("write" if target and makes else "read", word)
            if makes and not target and "whole" in self.marks(word.text):
                self.to.secrets.append(word.text)
        return self.add("read" if lists else "keep")

    # ---- kinds: programs that run others -----------------------------------------------------------

    def _wrapper(self, entry: Entry) -> None:
        args, at, strings = self.args, 0, entry.get("strings", ())
        if args and args[0].text in entry.get("looks", ()):
            return self.add("look")
        while at < len(args) and (
            args[at].text[:1] == "-" or "assigns" in entry and "=" in args[at].text
        ):
            text = args[at].text
            if text in strings or text[:2] in strings or text.partition("=")[0] in strings:
                whole = text in strings
                rest = text[2:] if text[1] != "-" else text.partition("=")[2]
                codes = args[at + 1 :] if self.name == "env" else args[at + 1 : at + 2]
                codes = (
                    codes
                    if whole
                    else [
                        Word(rest, args[at].sure),
                        *(args[at + 1 :] if self.name == "env" else []),
                    ]
                )
                return self.code(Word(" ".join(w.text for w in codes), all(w.sure for w in codes)))
            name, _, value = text.partition("=")
            self.variable(name, replace(args[at], text=value))
            at += 2 if text in entry.get("values", ()) else 1
        rest_words = args[at + entry.get("skip", 0) :]
        if not rest_words:
            known = self.name in ("exec", "env", "command", "nice") or "-p" in [
                f for f, _ in self.flags
            ]
            return self.add("look") if known else self.doubt("what it runs")
        begun, doubts, text = len(self.to.found), len(self.to.doubts), self.text
        self.run(rest_words)
        looks = not any(each.changes for each in self.to.found[begun:])
        if "raises" in entry and not (looks and len(self.to.doubts) == doubts):
            self.to.add(entry["raises"], text, text)
        return None

    def _eval(self, entry: Entry) -> None:
        sure = all(word.sure for word in self.words)
        self.code(Word(" ".join(self.plain), sure))

    def _trap(self, entry: Entry) -> None:
        if self.plain[:1] not in ([], ["-"]):
            self.code(self.words[0], self.script.temps)

    def _alias(self, entry: Entry) -> None:
        for word in self.args:
            self.code(replace(word, text=word.text.partition("=")[2]))

    def _shell(self, entry: Entry) -> None:
        if "raises" in entry:
            self.to.add(entry["raises"], self.text, self.text)
        if self.has(r"-\w*n\w*$") and self.words:  # only its grammar is looked at
            return self.file("read", self.words[0])
        if self.has(r"-\w*c$|--command") and self.words:
            return self.code(self.words[-1 if self.name == "su" else 0])
        if self.words and not self.has(r"-\w*s$"):
            return self._own(self.words[0], True)
        return self.code(self.fed_text())

    def _source(self, entry: Entry) -> None:
        word = self.args[0] if self.args else Word("", sure=False)
        activates = word.sure and re.fullmatch(r"(\./)?[\w./-]*\bactivate(\.\w+)?", word.text)
        return self.add("keep") if activates else self._own(word, True)

    def _own(self, word: Word, shell: bool = False) -> None:
        """A script or program of the folder's own."""
        marks = self.marks(word.text) if word.sure else set[str]()
        if word.text[:1] == "@" or ":" in word.text.partition("/")[0]:  # of npx: a package
            return self.doubt("what it runs")
        if "inside" not in marks or "secret" in marks or len(self.cwds) > 1 or word.text == "-":
            return self.doubt("what it runs")
        full = self.to.facts.places.full(word.text, self.cwds[0])
        if self.to.texts.get(full) and (self.name not in self.table.programs or shell):
            self.to.script(self.to.texts[full], self.cwds)
        if full in self.to.written and self.to.fetches:
            return self.doubt("what it runs, fresh from the network")
        self.name = self.name or word.text.rpartition("/")[2]
        self.to.names.add(f"program:{self.name}")
        more = re.search(self.table.words["targets"], self.text, re.I)
        return self.sent("push") if more else self.add("build", word.text)

    def _run(self, entry: Entry) -> None:
        """A runner of the folder's own targets."""
        if "tries" in entry and self.has(entry["tries"]):
            return self.add("look")
        if "asks" in entry and re.search(entry["asks"], self.text):
            return self.doubt("what it reaches")
        for word in self.args if self.name in ("make", "gmake") else ():
            name, equals, rest = word.text.partition("=")
            if equals and re.fullmatch(r"[A-Za-z_]\w*[:+?]?", name):
                self.variable(name.rstrip(":+?"), replace(word, text=rest))
        if self.name in ("make", "gmake"):
            self._beyond()
        if self.table.effect(entry, self.args) != UNKNOWN:
            return self._rules(entry)
        if any(not self.tame(word) for word in self.args):
            return self.doubt("with what")
        for value in self.given(("-C", "-f", "--file", "--directory", "--prefix")):
            if not value.sure or value.text == "-" or "inside" not in self.marks(value.text):
                return self.doubt("what it runs")
        more = any(re.search(self.table.words["targets"], each, re.I) for each in self.plain)
        return self.sent("push") if more else self.add("build")

    def _code(self, entry: Entry) -> None:
        """An interpreter: code in a word, a module, a file, or what comes in."""
        if "tests" in entry and self.has(entry["tests"]):
            return self.add("build")
        for place in self.given(("-S",)) if self.name == "php" else ():
            local = hosts.kind_of(place.text) == "local" and place.text[:2] != "0."
            return self.add("build") if local else self.doubt("whom it serves")
        if self.name == "ruby" and any(word.text == "-run" for word in self.args):
            return self.doubt("whom it serves")
        letters = "".join(flag[1] for flag in entry["code"] if len(flag) == 2)
        at = next(
            (
                n
                for n, w in enumerate(self.args)
                if w.text in entry["code"] or letters and re.fullmatch(rf"-\w*[{letters}]", w.text)
            ),
            len(self.args),
        )
        script = next((n for n, w in enumerate(self.args) if w.text[:1] != "-"), len(self.args))
        glued = [
            w
            for w in self.args[: script or None]
            if w.text[:2] in entry["code"] and len(w.text) > 2
        ]
        if at < min(script, len(self.args) - 1):
            return self._interpreted(entry, self.args[at + 1], self.args[at + 2 :])
        if glued and at >= script:
            return self._interpreted(entry, replace(glued[0], text=glued[0].text[2:]), [])
        module = next(
            (n for n, w in enumerate(self.args[: script + 1]) if w.text[:2] == "-m"), None
        )
        if module is not None and "module" in entry:
            rest = self.args[module:]
            rest[0] = replace(rest[0], text=rest[0].text[2:])
            rest = rest if rest[0].text else rest[1:]
            if rest and rest[0].text in self.table.words["modules"]:
                return self.add("build")
            return self.run(rest) if rest else self.doubt("what it runs")
        if self.plain and self.plain[0] != "-":
            return self._own(self.words[0])
        fed = self.fed_text()
        return self._interpreted(entry, fed or Word("", sure=False), [])

    def _interpreted(self, entry: Entry, code: Word, rest: list[Word]) -> None:
        loads = [w.text for w in self.args if self.name == "perl" and re.match("-[mM]", w.text)]
        if any(not re.match(entry["modules"], text[2:]) for text in loads):
            self.doubt("what its modules do")
        if not code.sure or not self._harmless(entry, code.text):
            self.doubt("what its code does")
        names = [Word(text) for text in re.findall(r"['\"]([^'\"\n]{2,200})['\"]", code.text)]
        for word in [*names, *(word for word in rest if word.text[:1] != "-")]:
            self.file("read", word)
        if self.has(r"-i|-p\w*i"):
            silent = self.name == "perl" and self.has(r"-\w*n") and "print" not in code.text
            for word in [each for each in rest if each.text[:1] != "-"]:
                self.file("delete" if silent and "say" not in code.text else "write", word)
        return self.add("read")

    def _editor(self, entry: Entry) -> None:
        """An editor that is opened on files; what it is told to do without a person is a doubt."""
        fed = self.command.feeds or self.command.here or "<" in dict(self.command.redirects)
        calm = all(
            re.fullmatch(r"-[RnyMmZoOpd]\d*|--nofork|-nw|--noplugin", f) for f, _ in self.flags
        )
        if fed or not calm or any(re.match(r"\+\D", text) for text in self.plain):
            return self.doubt("what it is told to do")
        for word in self.words:
            if not re.fullmatch(r"\+\d+", word.text):
                self.file("read" if self.has("-R|-M") else "write", word)
        return self.add("keep")

    def _harmless(self, entry: Entry, code: str) -> bool:
        return harmless(code) if "module" in entry else not re.search(entry["asks"], code)

    def _find(self, entry: Entry) -> None:
        texts = [word.text for word in self.args]
        begin = next((n for n, text in enumerate(texts) if text[:1] in "-(!"), len(texts))
        names = [self.args[n + 1] for n, text in enumerate(texts[:-1]) if text == "-name"]
        plain = len(names) == 1 and names[0].sure and not {"-not", "!", "-o", "-or"} & set(texts)
        name = names[0].text if plain else "*"
        roots = self.args[:begin] or [Word(".")]
        hits = [replace(root, text=f"{root.text}/{name}", glob=True) for root in roots]
        for number, text in enumerate(texts):
            if text in ("-exec", "-execdir", "-ok", "-okdir"):
                ends = (n for n in range(number, len(texts)) if texts[n] in (";", "+"))
                inner: list[Word] = []
                for word in self.args[number + 1 : next(ends, len(texts))]:
                    partly = "{}" in word.text and word.text != "{}"
                    inner += (
                        hits
                        if word.text == "{}"
                        else [replace(word, sure=word.sure and not partly)]
                    )
                Program(self.to, self.script, self.command, self.cwds).run(
                    inner or [Word("", False)]
                )
            elif text == "-delete":
                for hit in hits:
                    self.file("delete", hit)
            elif text.startswith(("-fprint", "-fls")):
                self.doubt("where it writes")
        return self.add("look")

    def _xargs(self, entry: Entry) -> None:
        rest = list(self.args)
        while rest and rest[0].text.startswith("-"):
            taken = rest.pop(0).text
            if taken.startswith(("-a", "--arg-file")):
                return self.doubt("what it gets")
            del rest[: taken in entry["values"]]
        at = next((n for n, word in enumerate(rest) if word.text == ":::"), None)
        more = self._piped() if at is None else rest[at + 1 :]
        rest = rest[:at]
        if rest and rest[0].sure and self.name == "parallel" and " " in rest[0].text:
            parts = rest[0].text.split()  # GNU parallel hands its words to a shell
            if re.search(r"[^\w\s./=:,@%+{}-]", rest[0].text):
                return self.doubt("what it runs")
            words = [[Word(part)] if "{" not in part else list(more) for part in parts]
            return self.run([word for each in words for word in each])
        if not rest or " " in rest[0].text:
            return self.doubt("what it runs")
        return self.run([*rest, *more])

    def _piped(self) -> list[Word]:
        """What the programs before the pipe may hand on as words."""
        more = []
        for each in self.fed():
            name, words = each.words[0].text if each.words else "", each.words[1:]
            if name in ("echo", "printf"):
                more += [replace(word, text=part) for word in words for part in word.text.split()]
            elif name == "find":
                texts = [word.text for word in words]
                found = [words[n + 1].text for n, text in enumerate(texts[:-1]) if text == "-name"]
                root = texts[0] if texts and texts[0][:1] not in "-(!" else "."
                sure = all(word.sure for word in words)
                more.append(Word(f"{root}/{found[0] if len(found) == 1 else '*'}", sure, True))
            else:
                known = name in self.table.names
                more.append(
                    Word("./*" if known else "?", known, known, names=() if known else ("?",))
                )
        return more or [Word("?", False, names=("?",))]

    def _moved(self) -> list[str]:
        target = self.words[0] if self.words else Word(self.to.facts.known.get("HOME", "/root"))
        lost = not target.sure or target.glob or target.text == "-" or self.name == "popd"
        if lost or self.command.piped:
            return [*self.cwds, "/"]
        moved = [self.to.facts.places.full(target.text, cwd) for cwd in self.cwds]
        first = self.command.after == "&&"
        return moved if first else list(dict.fromkeys([*moved, *self.cwds]))[:4]
