"""Patches to several files at once: unified diffs and the `*** Begin Patch` form. Reads them and computes
the new texts; touches no file.

Invariant: `apply` gives all new texts or raises; context lines keep the file's own bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from exo.core.base.errors import ExoError

Load = Callable[[str], str | None]  # path -> text, None when there is no such file
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
FUZZ = 2  # lines of context at either end of a hunk that may differ


@dataclass
class Hunk:
    """`lines` are (mark, text with its line's end), mark one of " -+"; `at` is the line where it stood,
    from 1, 0 when the patch does not say; `heading` a line that stands before it."""

    at: int = 0
    heading: str = ""
    lines: list[tuple[str, str]] = field(default_factory=list)
    end: bool = False

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
    changes = parse(patch)
    if not changes:
        why = "it has no file"
        raise ExoError("apply the patch", why, "send a unified diff or *** Begin Patch")
    made: dict[str, str | None] = {}

    def current(path: str) -> str | None:
        return made[path] if path in made else load(path)

    for change in changes:
        change.path, change.to = (path and name(path) for path in (change.path, change.to))
        before = current(change.path) if change.path else None
        if change.path and before is None:
            raise ExoError(f"patch {change.path}", "there is no such file")
        if change.to and change.to != change.path and current(change.to) is not None:
            raise ExoError(f"patch {change.to}", "the file is there already")
        after = apply_hunks(before or "", change.hunks, change.path or change.to)
        if not change.to and change.hunks and after:
            raise ExoError(f"delete {change.path}", "lines remain that the patch does not name")
        if change.path and change.path != change.to:
            made[change.path] = None
        if change.to:
            made[change.to] = after
    return made


def parse(patch: str) -> list[Change]:
    """Read either form. Raises ExoError naming the line that does not fit."""
    lines = re.findall(
        r"[^\n]*\n|[^\n]+", patch.replace("\r\n", "\n") if _foreign(patch) else patch
    )
    lines = _unfenced(lines)
    if any(line.rstrip() == "*** Begin Patch" for line in lines):
        return list(_read_begin(lines))
    return list(_read_unified(lines))


def _foreign(patch: str) -> bool:
    """Every line ends in CR LF: so did the sender's text, not the files in it."""
    return patch.count("\r\n") == patch.count("\n") and "\r\n" in patch


def _unfenced(lines: list[str]) -> list[str]:
    if lines and re.match(r"\s*```", lines[0]):
        lines = lines[1:]
        while lines and not lines[-1].strip():
            lines.pop()
        if lines and lines[-1].strip() == "```":
            lines.pop()
    return lines


def _bad(number: int, line: str, why: str) -> ExoError:
    return ExoError(f"read line {number} of the patch", f"{why}: {line.rstrip()[:120]!r}")


def _read_unified(lines: list[str]) -> Iterator[Change]:
    at, rename = 0, ["", ""]
    both: re.Match[str] | None = None
    while at < len(lines):
        line = lines[at]
        if line.startswith(("GIT binary patch", "Binary files ")):
            raise _bad(at + 1, line, "binary changes cannot be applied")
        if line.startswith("diff --git"):
            both = re.match(r"diff --git a/(.+) b/\1\n?$", line)
            rename = ["", ""]
        if both and not _more(lines, at + 1):  # an empty file has no hunk
            if line.startswith("new file mode"):
                yield Change("", both[1])
            elif line.startswith("deleted file mode"):
                yield Change(both[1], "")
        for n, word in enumerate(("rename from ", "rename to ")):
            if line.startswith(word):
                rename[n] = line[len(word) :].rstrip("\n")
                if n and not (at + 1 < len(lines) and _more(lines, at + 1)):
                    yield Change(rename[0], rename[1])
        if line.startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            change = Change(*_names(line, lines[at + 1]))
            at += 2
            while at < len(lines) and lines[at].startswith("@@"):
                hunk, at = _read_hunk(lines, at)
                change.hunks.append(hunk)
            if not change.hunks:
                raise _bad(at, line, "no hunk follows")
            yield change
            continue
        if line.startswith("@@"):
            raise _bad(at + 1, line, "a hunk without its file (--- and +++ lines)")
        at += 1


def _more(lines: list[str], at: int) -> bool:
    """Whether the renamed file has hunks too."""
    while at < len(lines) and not lines[at].startswith(("diff --git", "--- ")):
        at += 1
    return at < len(lines) and lines[at].startswith("--- ")


def _names(minus: str, plus: str) -> tuple[str, str]:
    names = [text[4:].rstrip("\n").split("\t")[0] for text in (minus, plus)]
    names = ["" if name == "/dev/null" else name for name in names]
    prefixes = [
        not name or name.startswith(mark) for name, mark in zip(names, ("a/", "b/"), strict=True)
    ]
    if all(prefixes):
        names = [name[2:] for name in names]
    if not any(names):
        raise ExoError("read the patch", "a change from /dev/null to /dev/null")
    return names[0], names[1]


def _read_hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    head = _HUNK.match(lines[at])
    if head is None:
        raise _bad(at + 1, lines[at], "no hunk of the form @@ -1,2 +1,2 @@")
    old, new = (1 if head[n] is None else int(head[n]) for n in (2, 4))
    hunk = Hunk(int(head[1]) + (0 if old else 1))
    begun = at
    at += 1
    while at < len(lines):
        line = lines[at]
        if line.startswith("\\") and hunk.lines:
            mark, text = hunk.lines[-1]
            hunk.lines[-1] = (mark, text.removesuffix("\n"))
        elif old <= 0 and new <= 0:
            break
        elif line[0] in " -+\n":
            mark = " " if line[0] == "\n" else line[0]  # editors strip the blank of an empty line
            hunk.lines.append((mark, "\n" if line[0] == "\n" else _ended(line[1:])))
            old, new = old - (mark != "+"), new - (mark != "-")
        else:
            break
        at += 1
    if old > 0 or new > 0:
        raise _bad(begun + 1, lines[begun], "the hunk has fewer lines than it says")
    return hunk, at


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _read_begin(lines: list[str]) -> Iterator[Change]:
    at = next(n for n, line in enumerate(lines) if line.rstrip() == "*** Begin Patch") + 1
    change: Change | None = None
    mode = ""
    for number, line in enumerate(lines[at:], at + 1):
        words = re.match(r"\*\*\* (Add File|Delete File|Update File|Move to): (.+)", line)
        if line.rstrip() == "*** End Patch":
            break
        if words and words[1] == "Move to":
            if change is None or mode != "Update File" or change.hunks:
                raise _bad(number, line, "a move belongs right below an update")
            change.to = words[2].strip()
        elif words:
            if change is not None:
                yield change
            mode, path = words[1], words[2].strip()
            change = Change("" if mode == "Add File" else path, "" if mode[0] == "D" else path)
            if mode == "Add File":
                change.hunks.append(Hunk(1))
        elif change is None or mode == "Delete File":
            if line.strip():
                raise _bad(number, line, "it belongs to no file")
        elif mode == "Add File":
            if line[0] != "+":
                raise _bad(number, line, "lines of a new file begin with +")
            change.hunks[0].lines.append(("+", _ended(line[1:])))
        else:
            _begin_line(change, line, number)
    else:
        raise ExoError("read the patch", "*** End Patch is missing: it was cut off")
    if change is not None:
        yield change


def _begin_line(change: Change, line: str, number: int) -> None:
    if line.startswith("@@"):
        change.hunks.append(Hunk(heading=line[2:].strip().removesuffix("@@").strip()))
        return
    if line.rstrip() == "*** End of File":
        if change.hunks:
            change.hunks[-1].end = True
        return
    if line[0] not in " -+\n":
        raise _bad(number, line, "a line begins with a blank, - or +")
    if not change.hunks:
        change.hunks.append(Hunk())
    mark = " " if line[0] == "\n" else line[0]
    change.hunks[-1].lines.append((mark, "\n" if line[0] == "\n" else _ended(line[1:])))


def apply_hunks(text: str, hunks: list[Hunk], name: str) -> str:
    """Return `text` with the hunks applied one below the other. Raises ExoError."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    crlf = bool(lines) and sum(line.endswith("\r\n") for line in lines) * 2 > len(lines)
    crlf = crlf and not any("\r" in line for hunk in hunks for _, line in hunk.lines)
    done: list[str] = []
    used, moved = 0, 0  # lines of the file behind us; how far hunks stood from where they said
    for n, hunk in enumerate(hunks, 1):
        at, skip = _find(lines, hunk, used, moved, f"hunk {n} of {name}")
        kept = hunk.lines[skip[0] : len(hunk.lines) - skip[1]]
        done += lines[used:at]
        used = at
        for mark, line in kept:
            if mark == "+":
                done.append(_as_file(line, crlf))
                continue
            if mark == " ":
                done.append(lines[used])
            used += 1
        if hunk.at:
            moved = at - skip[0] - (hunk.at - 1)
    done += lines[used:]
    for n, line in enumerate(done[:-1]):
        if not line.endswith("\n"):  # what was the last line no longer is
            done[n] = line + "\n"
    return "".join(done)


def _as_file(line: str, crlf: bool) -> str:
    if crlf and line.endswith("\n") and not line.endswith("\r\n"):
        return line[:-1] + "\r\n"
    return line


def _find(
    lines: list[str], hunk: Hunk, used: int, moved: int, name: str
) -> tuple[int, tuple[int, int]]:
    """(index of the hunk's first line, context lines left out at either end)."""
    first = used
    if hunk.heading:
        headings = [n for n in range(used, len(lines)) if lines[n].strip() == hunk.heading]
        if not headings:
            raise ExoError(f"apply {name}", f"there is no line {hunk.heading[:120]!r}")
        first = headings[0] + 1
    guess = max(used, hunk.at - 1 + moved) if hunk.at else first
    if not hunk.old():
        where = guess if hunk.at or hunk.heading else len(lines)
        return min(where, len(lines)), (0, 0)
    front = _context(hunk.lines)
    back = _context(hunk.lines[::-1])
    for same in (_same, _same_trimmed, _same_loose):
        for fuzz in range(FUZZ + 1):
            skip = (min(fuzz, front), min(fuzz, back))
            if fuzz and skip == (min(fuzz - 1, front), min(fuzz - 1, back)):
                break
            old = [
                text
                for mark, text in hunk.lines[skip[0] : len(hunk.lines) - skip[1]]
                if mark != "+"
            ]
            if not old:
                break
            fits = _places(lines, old, first, same)
            if hunk.end:
                fits = [at for at in fits if at + len(old) == len(lines)]
            if not hunk.at and len(fits) > 1 and not hunk.heading:
                places = ", ".join(str(at + 1) for at in fits[:10])
                raise ExoError(
                    f"apply {name}", f"it fits at lines {places}", "add context or an @@ line"
                )
            if fits:
                return min(fits, key=lambda at: abs(at - guess - skip[0])), skip
    shown = "".join(
        f"{n + 1}: {lines[n].rstrip()[:200]}\n" for n in range(len(lines))[guess : guess + 5]
    )
    why = f"its lines are not in the file; from line {guess + 1} it has\n{shown or '(the end)'}"
    raise ExoError(f"apply {name}", why.rstrip(), "read the file again")


def _context(lines: list[tuple[str, str]]) -> int:
    """How many lines of context stand before the first change."""
    return next((n for n, (mark, _) in enumerate(lines) if mark != " "), 0)


def _places(
    lines: list[str], old: list[str], first: int, same: Callable[[str, str], bool]
) -> list[int]:
    return [
        at
        for at in range(first, len(lines) - len(old) + 1)
        if same(lines[at], old[0]) and all(map(same, lines[at : at + len(old)], old))
    ]


def _same(line: str, old: str) -> bool:
    return line == old


def _same_trimmed(line: str, old: str) -> bool:
    return line.rstrip() == old.rstrip()


def _same_loose(line: str, old: str) -> bool:
    return line.split() == old.split()
