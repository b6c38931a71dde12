"""A folder of Markdown notes, an Obsidian vault too: properties, tags, wiki links and embeds, dates of daily
notes. Reads below the folder alone: links of the file system are not followed, names that begin with a dot
(.obsidian, .trash, .git) are not looked into.

Invariant: what a note becomes depends on the vault's files alone, not on where it lies or when it was copied."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from exo.core.base.errors import ExoError
from exo.tools.importers.record import (
    LONGEST,
    NewItem,
    Passed,
    cut,
    day,
    decode,
    moment,
    one_line,
    plain,
    read_bytes,
)

ENDINGS = (".md", ".markdown")
LONGEST_PROPERTIES = 65_536  # characters
_PROPERTIES = re.compile(r"\A---[ \t]*\n(.*?)(?<=\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_CODE = re.compile(
    r"^(?P<fence>`{3,}+|~{3,}+)[^\n]*\n.*?(?:^(?P=fence)[`~]*[ \t]*$|\Z)|`[^`\n]+`", re.S | re.M
)
_COMMENT = re.compile(r"%%.*?%%", re.S)
_LINK = re.compile(r"(!?)\[\[([^\[\]|\n]{1,400})(?:\|([^\[\]\n]{0,400}))?\]\]")
_TAG = re.compile(r"(?:(?<=\s)|^)#([\w/-]*[^\W\d][\w/-]*)", re.M)
_TITLED = re.compile(r"\s*#[ \t]+([^\n]+)")


def read(path: Path) -> Iterator[NewItem | Passed]:
    """Every note below the folder, by path. Raises ExoError when it is no folder or cannot be read."""
    try:
        import yaml
    except ImportError as error:
        raise ExoError(
            "read properties", "PyYAML is missing", "pip install 'exo-companion[host]'"
        ) from error
    if not path.is_dir():
        raise ExoError(
            f"read {path}", "not a folder" if path.exists() else "there is none", "name a folder"
        )
    vault = path.resolve()
    found, passed = _walk(vault)
    yield from passed
    names = _Names(found)
    parse = _parser(yaml)
    for name in found:
        yield from _note(vault, name, names, parse)


def _walk(vault: Path) -> tuple[list[str], list[Passed]]:
    """Paths of the notes below `vault` with "/" between, sorted; what was passed by."""
    found: list[str] = []
    passed: list[Passed] = []

    def unreadable(error: OSError) -> None:
        name = os.path.relpath(error.filename or vault, vault)
        passed.append(Passed("failed", _shown(name), error.strerror or "unreadable"))

    for folder, folders, files in os.walk(vault, onerror=unreadable):
        folders[:] = [each for each in folders if not each.startswith(".")]
        below = Path(folder).relative_to(vault)
        for each in (*folders, *(each for each in files if not each.startswith("."))):
            if Path(folder, each).is_symlink():
                name = _shown((below / each).as_posix())
                passed.append(Passed("skipped", name, "a link of the file system"))
        for each in files:
            name = (below / each).as_posix()
            if each.startswith(".") or Path(folder, each).is_symlink():
                continue
            if each.lower().endswith(ENDINGS):
                found.append(name)
            else:
                passed.append(Passed("skipped", _shown(name), "not Markdown"))
    return sorted(found), passed


def _note(
    vault: Path, name: str, names: _Names, parse: Callable[[str], Any]
) -> Iterator[NewItem | Passed]:
    shown = _shown(name)
    try:
        if not stat.S_ISREG((vault / name).lstat().st_mode):
            yield Passed("skipped", shown, "not a plain file")
            return
        data = read_bytes(vault / name, LONGEST + 1)
        whole, encoding = decode(data[:LONGEST])
    except (OSError, ValueError) as error:
        yield Passed("failed", shown, getattr(error, "strerror", None) or str(error))
        return
    if encoding != "utf-8":
        yield Passed("remark", shown, f"read as {encoding}")
    if len(data) > LONGEST:
        whole = cut(whole, max(1, len(whole) - 1))
        yield Passed("remark", shown, f"cut at {LONGEST:,} bytes")
    properties, text = _split(whole, parse)
    if properties is None:
        yield Passed("remark", shown, "properties that are no YAML: kept as text")
    item, dangling = _item(vault, name, properties or {}, text, names)
    if dangling:
        yield Passed("remark", shown, f"links to no note: {', '.join(dangling[:5])}")
    if not item.text:
        yield Passed("skipped", shown, "empty")
    else:
        yield item


def _item(
    vault: Path, name: str, properties: dict[str, list[str]], text: str, names: _Names
) -> tuple[NewItem, list[str]]:
    """The note, and the links of it that lead to no note."""
    stem = _shown(PurePosixPath(name).stem)
    links: dict[str, None] = {}
    dangling: dict[str, None] = {}
    tags: dict[str, None] = {}

    def link(found: re.Match[str]) -> str:
        embed, target, alias = found[1], found[2].strip(), (found[3] or "").strip()
        page, _, heading = target.partition("#")
        if not page:  # a heading of this note
            return alias or heading.lstrip("^#")
        label = _shown(PurePosixPath(page.strip()).name) or page
        there = names.find(page, name)
        if there:
            links[_shown(there)] = None
            label = _shown(PurePosixPath(there).stem)
        elif not embed:
            dangling[page] = None
        if heading and not heading.startswith("^"):
            label += f": {heading}"
        if (
            not alias
            or alias.casefold() == label.casefold()
            or (embed and re.fullmatch(r"\d+(x\d+)?", alias))
        ):
            return label
        return f"{alias} ({label})"

    def prose(part: str) -> str:
        part = _LINK.sub(link, part)
        tags.update(dict.fromkeys(found[1].strip("/") for found in _TAG.finditer(part)))
        return part

    body = _outside_code(
        _outside_code(text, lambda part: _COMMENT.sub("", part), whole=True), prose
    )
    head = []
    for key, values in properties.items():
        words = [_LINK.sub(link, value) for value in values]
        if key in ("tag", "tags"):
            parts = (one for value in words for one in re.split(r"[,\s]+", value))
            tags = dict.fromkeys(one.lstrip("#") for one in parts) | tags
        elif key not in ("title", "cssclass", "cssclasses", "publish", "created", "date") and any(
            words
        ):
            head.append(f"{key}: {', '.join(words)}")
    body = body.strip()
    titled = _TITLED.match(body)
    title = (
        " ".join(properties.get("title", ())) or (titled[1].strip(" #") if titled else "") or stem
    )
    dates = (properties[key][0] for key in ("created", "date") if properties.get(key))
    tail = [f"Links: {', '.join(links)}"] if links else []
    item = NewItem(
        external=f"{_shown(vault.name)}/{_shown(name)}",
        title=one_line(title),
        text="\n".join(part for part in ("\n".join(head), body, *tail) if part)
        if body or head
        else "",
        url=next(
            (url for url in properties.get("url", ()) if url.startswith(("http:", "https:"))), ""
        ),
        tags=tuple(one_line(tag, 80) for tag in tags if tag),
        created=next((at for at in map(moment, dates) if at), "") or day(stem),
    )
    return item, list(dangling)


def _split(text: str, parse: Callable[[str], Any]) -> tuple[dict[str, list[str]] | None, str]:
    """(properties, the rest); (None, all of it) when there are some that are no YAML."""
    found = _PROPERTIES.match(text[: LONGEST_PROPERTIES + 8])
    if not found:
        return {}, text
    try:
        loaded = parse(found[1])
    except (ValueError, RecursionError):
        return None, text
    if loaded in (None, ""):
        return {}, text[found.end() :]
    if not isinstance(loaded, dict):
        return None, text
    properties = {plain(str(key)).strip().lower(): _strings(value) for key, value in loaded.items()}
    return properties, text[found.end() :]


def _strings(value: Any) -> list[str]:
    """A property as a list of strings; what is nested deeper is left out."""
    values = value if isinstance(value, list) else [value]
    return [plain(each).strip() for each in values if isinstance(each, str) and each.strip()]


def _parser(yaml: Any) -> Callable[[str], Any]:
    """YAML in which every scalar is a string: 12:30 is no number of minutes and "no" not false. Aliases, of
    which a few lines can make gigabytes, are refused."""

    class Loader(yaml.BaseLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not read")
            return super().compose_node(parent, index)

    def parse(text: str) -> Any:
        try:
            return yaml.load(text, Loader=Loader)
        except (yaml.YAMLError, TypeError) as error:  # TypeError: a mapping as a key
            raise ValueError(str(error)) from error

    return parse


def _outside_code(text: str, change: Callable[[str], str], whole: bool = False) -> str:
    """`text` with `change` applied to what stands outside of code. With `whole` to all of it at once, code
    being hidden in the meantime, for what may reach over code."""
    codes: list[str] = []
    if whole:

        def hide(found: re.Match[str]) -> str:
            codes.append(found[0])
            return f"\0{len(codes) - 1}\0"

        changed = change(_CODE.sub(hide, text))
        return re.sub(r"\0(\d+)\0", lambda found: codes[int(found[1])], changed)
    parts, at = [], 0
    for found in _CODE.finditer(text):
        parts += [change(text[at : found.start()]), found[0]]
        at = found.end()
    return "".join([*parts, change(text[at:])])


def _shown(name: str) -> str:
    """A name of the file system as text: composed letters, and bytes that are no UTF-8 as \\xNN."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return unicodedata.normalize("NFC", text)


class _Names:
    """Which note a wiki link means: its path, or the end of it, or its name alone; whatever the case. Of
    several the one in the same folder, else the one with the shortest path."""

    def __init__(self, found: list[str]) -> None:
        self._paths: dict[str, list[str]] = {}
        for name in found:
            key = self._key(name)
            self._paths.setdefault(key.rpartition("/")[2], []).append(name)

    def find(self, target: str, origin: str) -> str:
        """The path of the note, "" when there is none."""
        wanted = self._key(target.strip())
        last = wanted.rpartition("/")[2]
        steps = [step for step in wanted.split("/") if step not in ("", ".", "..")]
        path = "/".join(steps)
        fitting = [
            name
            for name in self._paths.get(last, ())
            if self._key(name) == path or self._key(name).endswith(f"/{path}")
        ]
        here = PurePosixPath(origin).parent
        return min(
            fitting,
            key=lambda name: (PurePosixPath(name).parent != here, name.count("/"), name),
            default="",
        )

    @staticmethod
    def _key(name: str) -> str:
        text = _shown(name).replace("\\", "/").casefold()
        for ending in ENDINGS:
            text = text.removesuffix(ending)
        return text
