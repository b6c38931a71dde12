"""Programs that reach beyond this folder: git, the web, other machines, databases, containers, clouds. Owns
how their words tell what they do and where.

Invariant: what goes to a host that is not clearly this machine counts as sent."""

from __future__ import annotations

import re
from dataclasses import replace

from exo.tools.gate import hosts
from exo.tools.gate.parts import Entry, Parts
from exo.tools.gate.shell import Word
from exo.tools.gate.table import UNKNOWN

_REMOTE = re.compile(r"(?:[\w.+-]+@)?\[?[\w.:-]+\]?::?(?!//|\\)|.*://")
_ELSEWHERE = re.compile(r"(?i)(proxy|local)command|permitlocal|[;|&$`]|sh -c")
_REACHES = re.compile(
    r"--restart($|=(always|unless))|--(privileged|pid|ipc|userns|cap-add|device|security-opt)|docker\.sock|\w*=?host$"
)
_GIT_RUNS = ("--exec", "--upload-pack", "--receive-pack", "--exec-path", "--config-env")
_CHANGES = re.compile(
    r"(delete|terminate|r[mb]|remove|destroy|purge|put|update|set|add|attach|cp|mv|sync|mb|apply|import"
    r"|invoke|stop|reboot|ssh|exec|run|disable|reset|revoke)"
)
_FOR_OTHERS = ("look", "keep", "undoable")  # what unclear words cannot make worse


class Services(Parts):
    """One method for each kind."""

    def _git(self, entry: Entry) -> None:
        effect, first = self.table.effect(entry, self.args), "".join(self.plain[:1])
        unsafe = self.table.words["unsafe_settings"]
        if effect == "@":
            return self._runner(entry)
        runs = [] if first in ("clean", "rebase") else self.given(_GIT_RUNS)
        calm = self.table.words["calm_settings"]
        settings = self.given(("-c", "--config")) if first != "switch" else []
        others = [
            each for each in settings if not each.sure or not re.fullmatch(calm, each.text, re.I)
        ]
        if (
            runs
            or others
            and first != "commit"
            or first == "commit"
            and self._before("commit", others)
        ):
            return self.doubt("it may run another program")
        if (
            self.has("--template|--extcmd|-O.|--open-files")
            or first == "difftool"
            and self.has("-x")
        ):
            return self.doubt("it may run another program")
        if first not in ("clean", "rebase") and self.has("--(upload|receive)-pack|--exec$"):
            return self.doubt("it may run another program")
        other = self.given(("--git-dir", "--work-tree", "--file", "-f"))
        other = other if first == "config" else self.given(("--git-dir", "--work-tree"))
        if first == "config" and self.has("-f$") and len(self.words) > 1:
            other, self.plain = [*other, self.words[1]], [first, *self.plain[2:]]
        if first == "apply" and self.has("--unsafe-paths"):
            return self.doubt("where it writes")
        if effect != "look" and any("inside" not in self.marks(each.text) for each in other):
            return self.doubt("another folder than this one")
        if first == "checkout" and effect == "keep" and self._takes_back():
            effect = "lose"
        if self.plain[:2] == ["bundle", "create"]:
            for word in self.words[2:3]:
                self.file("write", word)
        folders = [value for value in self.given(("-C",)) if "inside" not in self.marks(value.text)]
        if folders and effect != "look" or any("ext::" in text for text in self.plain):
            return self.doubt("another folder than this one")
        for value in self.given(("--exec", "-x")) if first == "rebase" else ():
            self.code(value)
        changes = self.has("--unset|--edit|-e$|--add|--replace|--re|--un")
        if first == "config" and effect == "system" and len(self.plain) == 2 and not changes:
            effect = "look"
        if effect == "config":
            bad = len(self.plain) > 2 and re.match(unsafe, self.plain[1], re.I)
            effect = "system" if bad else "keep"
        if first == "clone":
            odd = "://" in "".join(self.plain[1:2]) and hosts.kind_of(self.plain[1]) == "odd"
            effect = UNKNOWN if odd else "keep"
            for word in self.words[2:3]:
                self.file("write", word)
        if first == "push" and effect != "look":
            remote = "".join(self.plain[1:2])
            if any(text[:1] in "+:" for text in self.plain[2:]):
                effect = "post"
            if remote.startswith((".", "/", "file:")):
                effect = "keep" if effect == "push" else "lose"
        calm = effect in _FOR_OTHERS
        loose = [word for word in self.words if not (word.sure or calm and self.tame(word))]
        if loose or not calm and any(value and not value.sure for _, value in self.flags):
            self.doubt("with what")
        if first != "push":
            for value in self.given(("--output", "-o")):
                self.file("write", value)
        for word in self.words[1:] if effect in ("read", "write") else ():
            self.file("read", word)
        return self.sent({"read": "look", "write": "keep"}.get(effect, effect))

    def _before(self, step: str, values: list[Word]) -> bool:
        """Whether one of these values stands before a sub-command (of `git commit -c x` it is a commit)."""
        at = next((n for n, word in enumerate(self.args) if word.text == step), 0)
        return any(value.text == word.text for value in values for word in self.args[:at])

    def _takes_back(self) -> bool:
        """Whether a checkout names files, whose changes it throws away, and no branch."""
        if self.has("--orphan|-b|-t$|--track|--detach|-B"):
            return False
        names = self.plain[1:]
        file = [re.search(r"(^|/)[\w.-]*[A-Za-z_-]\.[A-Za-z]\w{0,4}$", name) for name in names]
        file += [re.search(r"/$|^[:*]", name) for name in names]
        return len(names) > 1 or any(file) or self.has("--ours|--theirs|--pathspec|--overlay|-2|-3")

    def _net(self, entry: Entry) -> None:
        self.roles(entry)
        logins = [value for value in self.given(("-u", "--user")) if ":" in value.text]
        self.to.secrets += ["a password in the words of curl"] * len(logins)
        urls = [*self.words, *self.given(entry.get("url", ()))]
        body = self.given(entry.get("body", ()))
        gets = "get" in entry and self.has(entry["get"])
        if gets and not any("@" in word.text for word in body):  # it becomes part of the address
            self.leaks()
            body = []
        for word in body:
            stated = re.match(r"(?:[\w.-]*=)?[@<]([^;]+)", word.text)
            if stated and stated[1] != "-":
                self.file("read", replace(word, text=stated[1]))
            elif not self.tame(word):
                self.doubt("what it sends")
        for word in [value for _, value in self.flags if value is not None and value.inner]:
            if not self.tame(word):
                self.doubt("what it sends")
        jars = [word for word in self.given(("-b", "--cookie")) if "=" not in word.text]
        odd = [
            word for word in jars if not re.search(r"cookie|jar|session|^/dev/null$|^$", word.text)
        ]
        if odd or any(word.text[:1] == "@" for word in self.given(("-H", "--header"))):
            self.doubt("what it sends")
        method = "POST" if body and not gets else "GET"
        for value in self.given(entry.get("method", ())):
            method = value.text.upper() if value.sure else "?"
        self.request(method, urls, " ".join(word.text for word in body))

    def request(self, method: str, urls: list[Word], body: str) -> None:
        self.leaks()
        if not urls:
            self.doubt("where it leads")
        for url in urls:
            self.to.request(method, url, body, self.text)

    def _httpie(self, entry: Entry) -> None:
        self.roles(entry)
        named = bool(self.plain) and re.fullmatch(r"[A-Z]+", self.plain[0]) is not None
        urls, rest = self.words[named : named + 1], self.words[named + 1 :]
        urls = [replace(url, text=re.sub(r"^:(?=\d|/|$)", "localhost:", url.text)) for url in urls]
        body = [word for word in rest if re.search(r"(?<!=)=(?!=)|:=|@", word.text)]
        for word in rest:
            if "@" in word.text:
                self.file("read", replace(word, text=word.text.rpartition("@")[2]))
        sends = body or self.command.feeds or self.command.here
        method = self.plain[0] if named else "POST" if sends else "GET"
        self.request(method, urls, " ".join(word.text for word in body))

    def _ssh(self, entry: Entry) -> None:
        if self.has("-[GQV]$"):
            return self.add("look")
        if not self.words or any(v and _ELSEWHERE.search(v.text) for _, v in self.flags):
            return self.doubt("where it leads, what it runs")
        if len(self.words) == 1 and self.plain[0].startswith("git@") and not self.command.feeds:
            return self.add("fetch")  # a greeting: such an account runs no commands
        self.to.sends = True
        host, text, begun = self.plain[0], self.text, len(self.to.found)
        inner = self.after(0)[1:]
        code = Word(" ".join(w.text for w in inner), all(w.sure for w in inner))
        if inner or self.command.feeds or self.command.here:
            self.code(code if inner else self.fed_text())
        told = {each.words[0].text for each in self.fed() if each.words} - {
            "echo",
            "printf",
            "true",
        }
        if inner and (
            told or "<" in {op for op, name in self.command.redirects if name.text != "/dev/null"}
        ):
            self.doubt("what it sends")
        quiet = inner and not any(each.changes for each in self.to.found[begun:])
        self.text, self.name = text, "ssh"
        return self.add("fetch" if quiet else "remote", f"{host} {code.text}")

    def _transfer(self, entry: Entry) -> None:
        names = [flag for flag, _ in self.flags]
        if any(_ELSEWHERE.search(value.text) for value in self.given(("-e", "--rsh", "-S", "-o"))):
            self.doubt("it runs another program")
        if self.name == "rsync" and self.has(r"--dry-run|-\w*n\w*$"):
            return self.add("look")
        if not self.words:
            return self.doubt("what it copies")
        away = [bool(_REMOTE.match(text)) for text in self.plain]
        if away == [True] and self.name == "rsync" or self.has("--list-only"):
            return self.add("fetch")
        for word, far in zip(self.words[:-1], away, strict=False):
            if not far:
                self.file("read", word)
        if away[-1]:
            return self.sent("remote")
        deletes = set(names) & set(entry.get("deletes", ()))
        self.file("delete" if deletes else "write", self.words[-1])
        return self.add("fetch" if any(away) else "read")

    def _sql(self, entry: Entry) -> None:
        queries, local = self.given(entry.get("query", ())), self.name in ("sqlite3", "duckdb")
        if local:
            queries += [*self.words[1:], *self.given(("-cmd",))]
            for word in self.words[:1]:
                self.file("read", word)
        if self.plain[:1] == [":memory:"]:
            return self.add("read")
        host = [value.text for value in self.given(entry.get("host", ()))]
        host += [text for text in self.plain if "://" in text]
        away = bool(host) and host[0][:1] != "/" and hosts.kind_of(host[0]) != "local"
        if not queries and (fed := self.fed_text()) is not None:
            queries = [fed]
        if not queries and not self.has("-l|--list") or not all(word.sure for word in queries):
            return self.doubt("what it asks the database")
        told = (
            r"^\.(dump|schema|tables|indexes|databases|mode|headers?|stats|fullschema|show)\b[^;]*"
        )
        asked = [re.sub(told if local else "^$", "", word.text) for word in queries]
        asked = [re.sub(r"'[^']*'", "''", each) for each in asked]
        asked = [re.sub(r"(?i)\bexplain\s+(?!analy|\()[^;]*", "", each) for each in asked]
        if any(re.search(self.table.words["writing_sql"], each, re.I) for each in asked):
            return self.sent("remote") if away else self.add("lose")
        return self.add("fetch" if away else "read")

    def _container(self, entry: Entry) -> None:
        runs = {"run", "exec"} & {word.text for word in self.args[:1]}
        if runs:  # there -t is a terminal, in a build it is a name
            self.use(entry | {"values": [each for each in entry["values"] if each != "-t"]})
        if self.plain[:1] == ["rm"] or self.args and self.args[0].text == "rm":
            self.args = [word for word in self.args if word.text not in ("-f", "--force")]
            if any(re.fullmatch(r"-\w*v\w*|--volumes", word.text) for word in self.args):
                return self.sent("lose")
        there = [value.text for value in self.given(("-H", "--host", "--context"))]
        far = not runs and any(not text.startswith("unix:") for text in there)
        if far and self.table.effect(entry, self.args) not in ("look", "read"):
            return self.doubt("which machine's containers")
        inner = self.plain[:2] in (["compose", "exec"], ["compose", "run"])
        if inner and len(self.words) > 3:
            self.add("build")
            return self.run(self.after(3))
        if self.plain[:1] == ["cp"] and len(self.words) == 3 and ":" in self.plain[1]:
            return self.file("write", self.words[2])  # from there to here
        if self.plain[:1] not in (["run"], ["exec"]):
            return self._rules(entry)
        for word in self.args:
            mount = re.sub(
                r".*(?:source|src)=([^,]*).*", r"\1:/", word.text.partition("=")[2] or word.text
            )
            source, bound, _ = mount.partition(":/")
            outside = (
                bound and source[:1] in "/~." and not self.marks(source) & {"inside", "scratch"}
            )
            if _REACHES.match(word.text) or outside or not self.tame(word):
                return self.doubt("what the container reaches")
        self.add("build")
        return self.run(self.after(2)) if len(self.words) > 2 else None

    def _cloud(self, entry: Entry) -> None:
        verbs = [text for text in self.plain[:6] if re.fullmatch(r"[a-z][a-z-]+", text)]

        def hit(key: str) -> bool:
            return any(f"{verb}-".startswith(f"{each}-") for verb in verbs for each in entry[key])

        if hit("secrets") or {"secret", "secrets"} & set(verbs) and "list" not in verbs:
            self.to.secrets.append(self.text)
        if self.name == "aws" and self.has("--dry-?run"):
            return self.add("fetch")
        if hit("posts") or re.search(r"public-read|allUsers", self.text):
            return self.sent("post")
        if hit("rents"):
            return self.sent("rent")
        copies = {"cp", "sync", "rsync", "get", "download"} & set(verbs)
        if copies and ("://" in self.text) and "://" not in self.plain[-1]:  # from there to here
            self.file("delete" if self.has("--delete|-d$") else "write", self.words[-1])
            return self.add("fetch")
        changes = any(_CHANGES.match(verb) for verb in verbs)
        looks = hit("reads") or self.table.verbs["looking"] & set(verbs)
        if not changes and (looks or not self.plain):
            return self.add("fetch")
        return self.sent(entry.get("otherwise", "remote"))
