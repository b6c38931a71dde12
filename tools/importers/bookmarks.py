"""Bookmarks as every browser exports them (the Netscape format), read by events: the format never closed its
tags, and exporters break the rest. Folders and TAGS become tags, <DD> the text; the title is untrusted.

What is no web address (scripts, searches, pages of the browser) is skipped."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from exo.tools.importers.record import LONGEST, NewItem, Passed, number, one_line, plain, whole_file

CHUNK = 65_536  # bytes
LONGEST_URL = 32_768  # characters
LONGEST_TAG = 1_048_576  # characters between < and >; a picture of a page may stand in one
DEEPEST = 64  # folders within folders
# folders that every browser has: their name says nothing
ROOTS = {
    "bookmarks", "bookmarks bar", "bookmarks toolbar", "bookmarks menu", "favorites", "favorites bar", "other bookmarks",
    "mobile bookmarks", "lesezeichen", "lesezeichenleiste", "lesezeichen-symbolleiste", "lesezeichen-menü",
    "weitere lesezeichen", "favoriten",
}  # fmt: skip


def read(path: Path) -> Iterator[NewItem | Passed]:
    """Every bookmark of the file, in order. Raises ExoError when it cannot be opened."""
    parser = _Parser()
    with whole_file(path).open("rb") as file:
        decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        while data := file.read(CHUNK):
            parser.feed(decoder.decode(data))
            yield from parser.taken()
            if (
                len(parser.rawdata) > LONGEST_TAG
            ):  # it would be looked through again with each chunk
                yield Passed(
                    "failed",
                    f"line {parser.getpos()[0]}",
                    "a tag without an end; the rest is not read",
                )
                return
    parser.feed(decoder.decode(b"", True))
    parser.close()
    parser.end()
    yield from parser.taken()
    if not parser.links and not parser.lists:
        yield Passed("failed", path.name, "no bookmarks in it: export them as HTML")


class _Parser(HTMLParser):
    """Collects bookmarks; `taken` hands over those that are complete."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.links = self.lists = 0
        self._folders: list[str] = []
        self._folder = ""  # named by <H3>, entered by <DL>
        self._into = ""  # which words are being read: title, folder, text
        self._words: list[str] = []
        self._length = 0
        self._link: dict[str, str] | None = None
        self._ready: list[NewItem | Passed] = []

    def taken(self) -> list[NewItem | Passed]:
        ready, self._ready = self._ready, []
        return ready

    def parse_html_declaration(self, i: int) -> int:
        """Python's own raises AssertionError for `<![`; browsers take it for a comment."""
        if self.rawdata.startswith("<![", i):
            return self.parse_bogus_comment(i, report=False)
        return super().parse_html_declaration(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.end()
            self.links += 1
            self._link, self._into = values | {"line": str(self.getpos()[0])}, "title"
        elif tag == "h3":
            self.end()
            self._folder = "-" if "personal_toolbar_folder" in values else ""
            self._into = "folder"
        elif tag == "dd" and self._link:
            self._close_words()
            self._into = "text"
        elif tag == "dl":
            self.end()
            self.lists += 1
            if len(self._folders) < DEEPEST:
                self._folders.append(self._folder)
            self._folder = ""
        elif tag in ("dt", "hr"):
            self.end()

    def handle_endtag(self, tag: str) -> None:
        if tag in ("a", "h3"):
            self._close_words()
        elif tag == "dl":
            self.end()
            if self._folders:
                self._folders.pop()

    def handle_data(self, data: str) -> None:
        if self._into and self._length < LONGEST:
            self._words.append(data)
            self._length += len(data)

    def end(self) -> None:
        """The bookmark that is open is complete: what comes next cannot belong to it."""
        self._close_words()
        link, self._link = self._link, None
        if link is not None:
            self._ready.append(self._item(link))

    def _close_words(self) -> None:
        words, into = plain("".join(self._words)).strip(), self._into
        self._words, self._length, self._into = [], 0, ""
        if into == "folder":
            self._folder = "" if self._folder == "-" else one_line(words, 80)
        elif into and self._link is not None:
            self._link[into] = words

    def _item(self, link: dict[str, str]) -> NewItem | Passed:
        url = plain(link.get("href", "")).strip()
        title, name = one_line(link.get("title", "")), f"line {link['line']}"
        if not url.lower().startswith(("http://", "https://")):
            return Passed("skipped", name, "no web address")
        if len(url) > LONGEST_URL:
            return Passed("skipped", name, f"an address longer than {LONGEST_URL:,} characters")
        tags = [folder for folder in self._folders if folder.lower() not in ROOTS]
        tags += [one_line(tag, 80) for tag in link.get("tags", "").split(",")]
        return NewItem(
            external=url,
            title=title or one_line(url),
            text=link.get("text", ""),
            url=url,
            tags=tuple(dict.fromkeys(tag for tag in tags if tag)),
            created=_stamp(link.get("add_date", "")),
            trust="third_party",
        )


def _stamp(text: str) -> str:
    try:
        return number(float(text))
    except ValueError:
        return ""
