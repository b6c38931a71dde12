"""Patches to several files at once: unified diffs and the `*** Begin Patch` form. Reads them and computes
the new texts; touches no file.

Invariant: `apply` gives all new texts or raises; context lines keep the file's own bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from exo.core.base.errors import ExoError
from exo.tools.workbench.edit import like, show

Load = Callable[[str], str | None]  # path -> text, None when there is no such file
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_FILES = re.compile(r"--- (?P<old>[^\t\n]+).*\n\+\+\+ (?P<new>[^\t\n]+)")
_GIT = re.compile(r"(diff --git|new file mode|deleted file mode|rename from|rename to) (.+)")
_BEGIN = re.compile(r"\*\*\* (Add File|Delete File|Update File|Move to): (.+)")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass
class Hunk:
    """`lines` are (mark, text with its line's end), mark one of " -+"; `at` is the line where it stood,
    from 1, 0 when the patch does not say; `heading` a line that stands before it."""

    at: int = 0
    heading: str = ""
    lines: list[tuple[str, str]] = field(default_factory=list)

    def add(self, line: str, number: int) -> str:
        """Take a line of the patch; returns its mark. Raises ExoError."""
        mark, text = line[0], line[1:].removesuffix("\n") + "\n"
        if mark == "\n":
            mark = " "  # editors strip the blank of an empty line
        if mark not in " -+":
            raise _bad(number, line, "a line begins with a blank, - or +")
        self.lines.append((mark, text))
        return mark

    def old(self) -> list[str]:
        return [text for mark, text in self.lines if mark != "+"]


@dataclass
class Change:
    """What happens to one file: `path` "" is a new file, `to` "" a deleted one."""

    path: str
    to: str
    hunks: list[Hunk] = field(default_factory=list)


def apply(patch: str, load: Load, name: Callable[[str], str] = str) -> dict[str, str | None]:
    """Return name -> new text (None: deleted) of every file that changes; `name` makes one name of
    the several that a file may have, and may refuse. Raises ExoError."""
    made: dict[str, str | None] = {}

    def current(path: str) -> str | None:
        return made[path] if path in made else load(path)

    for change in parse(patch):
        path, to = change.path and name(change.path), change.to and name(change.to)
        if path == to and not (path and change.hunks):
            raise ExoError(f"patch {path}", "the patch does not say what to change in it")
        before = current(path) if path else ""
        if before is None:
            raise ExoError(f"patch {path}", "there is no such file")
        if to and to != path and current(to) is not None:
            raise ExoError(f"patch {to}", "the file is there already")
        after = apply_hunks(before, change.hunks, path or to)
        if not to and change.hunks and after:
            raise ExoError(f"delete {path}", "lines remain that the patch does not name")
        made |= {path: None, to: after}
        made.pop("", None)  # a new file's old name, a deleted one's new name
    if not made:
        raise ExoError("apply the patch", "it has no file", "send a diff or *** Begin Patch")
    return made


def parse(patch: str) -> list[Change]:
    """Read either form. Raises ExoError naming the line that does not fit."""
    lines = _LINES.findall(patch)
    begin = [n for n, line in enumerate(lines) if line.rstrip() == "*** Begin Patch"]
    return _read_begin(lines, begin[0] + 1) if begin else _read_unified(lines)


def _bad(number: int, line: str, why: str) -> ExoError:
    return ExoError(f"read line {number} of the patch", f"{why}: {line.rstrip()[:120]!r}")


def _read_unified(lines: list[str]) -> list[Change]:
    changes: list[Change] = []
    hunk = Hunk()
    old = new = 0  # lines that the hunk still has
    for number, (line, below) in enumerate(zip(lines, [*lines[1:], ""], strict=False), 1):
        if line.startswith("\\") and hunk.lines:
            mark, text = hunk.lines[-1]
            hunk.lines[-1] = (mark, text.removesuffix("\n"))
        elif old > 0 or new > 0:
            mark = hunk.add(line, number)
            old, new = old - (mark != "+"), new - (mark != "-")
        elif head := _HUNK.match(line):
            if not changes:
                raise _bad(number, line, "a hunk without its file (--- and +++ lines)")
            old, new = int(head[2] or 1), int(head[3] or 1)
            hunk = Hunk(int(head[1]) + (0 if old else 1))
            changes[-1].hunks.append(hunk)
        elif line.startswith(("@@", "GIT binary patch", "Binary files ")):
            raise _bad(number, line, "no hunk of text of the form @@ -1,2 +1,2 @@")
        elif files := _FILES.match(line + below):
            if not changes or changes[-1].hunks:
                changes.append(Change("", ""))
            changes[-1].path, changes[-1].to = _names(files["old"], files["new"])
        elif git := _GIT.match(line):
            _git_line(changes, git[1], git[2])
    if old > 0 or new > 0:
        raise ExoError("read the patch", "its last hunk has fewer lines than it says")
    return changes


def _names(old: str, new: str) -> tuple[str, str]:
    """The names without a/ and b/ where both have it; "" for /dev/null."""
    none = "/dev/null"
    if old.startswith(("a/", none)) and new.startswith(("b/", none)):
        old, new = old.removeprefix("a/"), new.removeprefix("b/")
    return "" if old == none else old, "" if new == none else new


def _git_line(changes: list[Change], word: str, rest: str) -> None:
    """What git says above the hunks; an empty file and a mere renaming have none."""
    if word == "diff --git":
        both = re.fullmatch(r"a/(.+) b/\1", rest)
        changes.append(Change(both[1], both[1]) if both else Change("", ""))
    elif changes:
        change = changes[-1]
        change.path = {"new file mode": "", "rename from": rest}.get(word, change.path)
        change.to = {"deleted file mode": "", "rename to": rest}.get(word, change.to)


def _read_begin(lines: list[str], first: int) -> list[Change]:
    changes: list[Change] = []
    for number, line in enumerate(lines[first:], first + 1):
        change = changes[-1] if changes else Change("", "")
        words = _BEGIN.match(line)
        verb, path = (words[1], words[2].strip()) if words else ("", "")
        if line.rstrip() == "*** End Patch":
            return changes
        if verb == "Move to":
            if not change.path or not change.to or change.hunks:
                raise _bad(number, line, "a move belongs right below an update")
            change.to = path
        elif verb:
            old, new = "" if verb == "Add File" else path, "" if verb == "Delete File" else path
            changes.append(Change(old, new))
        elif not change.to:
            if line.strip():
                raise _bad(number, line, "it belongs to no file")
        elif line.startswith("@@"):
            change.hunks.append(Hunk(heading=line.strip("@ \r\n")))
        elif line.rstrip() != "*** End of File":
            if not change.hunks:
                change.hunks.append(Hunk())
            change.hunks[-1].add(line, number)
    raise ExoError("read the patch", "*** End Patch is missing: it was cut off")


def apply_hunks(text: str, hunks: list[Hunk], name: str) -> str:
    """Return `text` with the hunks applied one below the other. Raises ExoError."""
    lines = _LINES.findall(text)
    plain = not any("\r" in line for hunk in hunks for _, line in hunk.lines)
    used = moved = 0  # lines that are done; how far hunks stand from where they say
    for n, hunk in enumerate(hunks, 1):
        at = _find(lines, hunk, used, moved, f"hunk {n} of {name}")
        old = len(hunk.old())
        own = iter(lines[at : at + old])
        put = []
        for mark, line in hunk.lines:
            kept = line if mark == "+" else next(own)
            if mark != "-":
                put.append(like(text, kept) if plain and mark == "+" else kept)
        lines[at : at + old] = put
        used = at + len(put)
        if hunk.at:
            moved = used - (hunk.at - 1 + old)
    for n, line in enumerate(lines[:-1]):
        if not line.endswith("\n"):  # what was the last line no longer is
            lines[n] = line + "\n"
    return "".join(lines)


def _find(lines: list[str], hunk: Hunk, used: int, moved: int, name: str) -> int:
    """The index of the hunk's first line; exactly, else by words alone; the nearest to where it says."""
    first = used
    if hunk.heading:
        below = (n for n in range(used, len(lines)) if lines[n].strip() == hunk.heading)
        first = next(below, -1) + 1
        if not first:
            raise ExoError(f"apply {name}", f"there is no line {hunk.heading[:120]!r}")
    guess = max(used, hunk.at - 1 + moved) if hunk.at else first
    old = hunk.old()
    if not old:
        return min(guess, len(lines)) if hunk.at or hunk.heading else len(lines)
    for key in (str, str.split):
        have, want = [key(line) for line in lines], [key(line) for line in old]
        places = range(first, len(have) - len(want) + 1)
        fits = [at for at in places if have[at : at + len(want)] == want]
        if len(fits) > 1 and not hunk.at and not hunk.heading:
            why = f"it fits at lines {', '.join(str(at + 1) for at in fits[:10])}"
            raise ExoError(f"apply {name}", why, "add context or an @@ line")
        if fits:
            return min(fits, key=lambda at: abs(at - guess))
    shown = show(lines, guess, 5) or "(the end)"
    why = f"its lines are not in the file; from line {guess + 1} it has\n{shown}"
    raise ExoError(f"apply {name}", why, "read the file again")
