"""Full-text search over what was said, asked of tools and answered by them (SQLite FTS5).

Owns the table `search`, which holds the index alone: the texts stay in `messages`, and the view `texts`
reads them through `searchable`. Scripts that write no spaces are cut into single characters, and a
word of a query becomes a phrase of them, so that words of two characters are found too. Invariant:
any text is a safe query, because each of its words is quoted."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from exo.core.base.sqlite import Database
from exo.core.protocol.schema import Hit

WORDS = 64  # words of a query that count
MARKS = ("«", "»")  # stand around what was found, in a snippet
_AROUND = 24  # tokens of a snippet
_CUT = "\u2063"  # invisible separator: parts two characters for the index, taken out of snippets
# Thai and Lao, Myanmar, Khmer; Hangul (its particles stick to the word); kana and Han; half-width kana;
# pictures
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\u2600-\u27bf\U0001f000-\U0001faff\U00020000-\U0003ffff"
)
_ATTACHED = "".join(  # vowel and tone signs stay with their letter
    chr(code)
    for start, end in ((0x0E00, 0x0F00), (0x1000, 0x10A0), (0x1780, 0x1800), (0x3099, 0x309B))
    for code in range(start, end)
    if unicodedata.category(chr(code)).startswith("M")
)
_BETWEEN = re.compile(f"(?:(?<=[{_DENSE}])|(?=[{_DENSE}]))(?![{_ATTACHED}])")
# accents that did not compose, points of Hebrew and Arabic, the Arabic stretcher, how
# a picture is drawn: written or not
_LOOSE = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\ufe0e\ufe0f]"
)
_FOLD = {  # accents that FTS5 does not know: Greek, and yo
    code: unicodedata.normalize("NFD", chr(code))[0]
    for code in (0x0401, 0x0451, *range(0x0370, 0x0400), *range(0x1F00, 0x2000))
}
_TERM = re.compile(r'"([^"]+)"|([^\s"]+)')


class Index:
    """Writes inside the caller's transaction, reads at any time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, n: int) -> None:
        """Index row `n` of messages, which has just been written."""
        query = "INSERT INTO search (rowid, text) SELECT n, text FROM texts WHERE n = ?"
        self._database.link.execute(query, (n,))

    def remove(self, rows: list[int]) -> None:
        """Forget rows of messages; to be called before they are deleted."""
        columns = "INSERT INTO search (search, rowid, text)"
        query = f"{columns} SELECT 'delete', n, text FROM texts WHERE n = ?"
        self._database.link.executemany(query, [(n,) for n in rows])

    def find(self, query: str, session: str | None, limit: int) -> list[Hit]:
        """Messages that hold every word of `query`, the best first; when none does, those that hold
        words which begin so. Words in double quotes belong together; punctuation does not count,
        pictures do."""
        terms = [a or b for a, b in _TERM.findall(_plain(query)[:8192])]
        words = [f'"{word}"' for word in terms if any(map(_counts, word))][:WORDS]
        if not words:
            return []
        return self._match(" ".join(words), session, limit) or self._match(
            " ".join(f"{word} *" for word in words), session, limit
        )

    def _match(self, expression: str, session: str | None, limit: int) -> list[Hit]:
        rows = self._database.rows(
            "SELECT messages.session, messages.id, snippet(search, 0, ?, ?, '…', ?) FROM search"
            " JOIN messages ON messages.n = search.rowid"
            " WHERE search MATCH ? AND (?5 IS NULL OR messages.session = ?5)"
            " ORDER BY rank, messages.n DESC LIMIT ?6",
            *(*MARKS, _AROUND, expression, session, limit),
        )
        return [Hit(str(a), str(b), str(text).replace(_CUT, "")) for a, b, text in rows]


def searchable(data: str) -> str:
    """What is indexed of a message's JSON: its text, its calls' names and values, its results."""
    message = json.loads(data)
    parts = [message["text"]]
    for call in message.get("calls", []):
        parts += [call["tool"], *_leaves(call["args"])]
    parts += [result["text"] for result in message.get("results", [])]
    return _plain("\n".join(part for part in parts if part))


def _plain(text: str) -> str:
    if text.isascii():
        return text.replace("\0", " ")
    text = _LOOSE.sub("", unicodedata.normalize("NFKC", text).replace("\0", " "))
    return _BETWEEN.sub(_CUT, text.translate(_FOLD))


def _counts(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] in "LN" or kind in ("Co", "So")


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    elif value is not None:
        yield str(value)
