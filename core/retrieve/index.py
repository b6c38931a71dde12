"""The index over what is known: words, vectors and links, in one file that can be made again.

Owns index.sqlite and what is in it; knows nothing of ranking. Invariant: a document is found from the
moment `put` returns, and after `remove` and `scrub` no word of it stands in the file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from exo.core.base.errors import HomeError, ModelError, ModelMissing, ServiceError, StorageError
from exo.core.base.sqlite import Database
from exo.core.retrieve.document import Document, Embedder
from exo.core.retrieve.vectors import Vectors, encode
from exo.core.retrieve.words import plain, terms

FORMAT = 2  # of the file; to be raised as well when words.py cuts texts in another way
COLUMNS = "rowid, title, summary, load_when, tags, body"
SCHEMA = Path(__file__).with_name("index.sql")
PIECE, OVERLAP = 900, 150  # characters of a piece of a long text, and of that what the last one had
BATCH = 500  # documents in one commit
REFUSED = 1000  # tries of a text that the model will not have
PATIENCE = 8  # groups that may be refused before `embed_some` gives up for now


class Index:
    """For one thread; several processes may read and write. A file that is no index is begun again, and
    then its `revision` is 0: every document has to be put again."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises StorageError."""
        self.path = path
        with self.mending():
            self._open()
            (found,) = self.database.rows("PRAGMA user_version")[0]
            if found != FORMAT:
                raise HomeError(f"open {path}", f"it has format {found}, not {FORMAT}")
            self.database.rows("SELECT n FROM documents, search LIMIT 1")

    @contextlib.contextmanager
    def mending(self) -> Iterator[None]:
        """Leave off where the file turns out to be damaged, and begin it again. Raises StorageError."""
        try:
            yield
        except HomeError as error:
            if isinstance(error, StorageError):
                raise
            if hasattr(self, "database"):
                self.database.close()
            for ending in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
            self._open()

    def _open(self) -> None:
        self.database = Database(self.path, SCHEMA.read_text(encoding="utf-8"), FORMAT)
        self.vectors = Vectors(self.database)

    def close(self) -> None:
        self.database.close()

    def put(self, documents: Iterable[Document]) -> int:
        """Add documents, or replace those of the same id; one that has not changed costs nothing. Return
        how many were written."""
        rest = iter(documents)
        written = 0
        while batch := list(islice(rest, BATCH)):
            written += self._change({document.id: document for document in batch})
        return written

    def remove(self, ids: Iterable[str]) -> None:
        """Take documents out; unknown ids are no error."""
        self._change(dict.fromkeys(ids))

    def _change(self, wanted: Mapping[str, Document | None]) -> int:
        """Make the documents of these ids what they should be; how many were something else."""
        counts: Counter[str] = Counter()
        changed = 0
        with self.database.transaction() as link:
            for id_, document in wanted.items():
                data = json.dumps(vars(document), separators=(",", ":")) if document else None
                query = "SELECT n, data FROM documents WHERE id = ?"
                number, was = link.execute(query, (id_,)).fetchone() or (0, None)
                if data == was:
                    continue
                gone = _take_out(link, number, load(was), counts) if was else []
                if document:
                    _put_in(link, document, data, counts)
                query = (
                    "DELETE FROM vectors WHERE hash = ?1"
                    " AND NOT EXISTS (SELECT 1 FROM parts WHERE hash = ?1)"
                )
                link.executemany(query, gone)
                changed += 1
            query = "INSERT INTO terms VALUES (?, ?) ON CONFLICT DO UPDATE SET parts = parts + excluded.parts"
            link.executemany(query, [each for each in counts.items() if each[1]])
            less = [(term,) for term, count in counts.items() if count < 0]
            link.executemany("DELETE FROM terms WHERE term = ? AND parts <= 0", less)
        return changed

    def count(self) -> int:
        return int(self.database.rows("SELECT count(*) FROM documents")[0][0])

    @property
    def revision(self) -> int:
        """What of the store's changes is in here; 0 when that is not known."""
        return int(self.database.rows("SELECT revision FROM state")[0][0])

    @revision.setter
    def revision(self, value: int) -> None:
        with self.database.transaction() as link:
            link.execute("UPDATE state SET revision = ?", (value,))

    def scrub(self) -> None:
        """Leave no trace in the file of what was taken out: words, vectors, free pages, the WAL."""
        with self.database.transaction(durable=True) as link:
            self.database.promise_scrub()
            link.execute("INSERT INTO search (search) VALUES ('optimize')")
        self.database.scrub()

    def ids(self) -> set[str]:
        return {id_ for (id_,) in self.database.rows("SELECT id FROM documents")}

    def pending(self) -> int:
        """Texts that wait for their vector; those that the model refuses do not count."""
        query = "SELECT count(*) FROM vectors WHERE bits IS NULL AND tries < ?"
        return int(self.database.rows(query, REFUSED)[0][0])

    def model(self) -> tuple[str, int]:
        """(name, width) of the model whose vectors are here; ("", 0) before the first."""
        ((name, width),) = self.database.rows("SELECT model, width FROM state")
        return name, width

    def embed_some(self, embedder: Embedder, limit: int = 64) -> int:
        """Embed up to `limit` waiting texts and return how many got their vector: 0 when nothing waits or
        the model is away. Another model than before: all vectors are made again. What the model refuses
        or breaks on is tried again later and in smaller company, until it stands alone."""
        for _ in range(PATIENCE):
            group: list[tuple[bytes, str]] = []
            try:
                self._use(embedder.name)
                group = self._group(limit)
                vectors = embedder.embed([text for _, text in group]) if group else []
                return self._store(group, vectors)
            except (ModelError, ServiceError) as error:
                away = isinstance(error, ServiceError | ModelMissing) or error.retryable
                tries = REFUSED if len(group) == 1 and not away else 1
                with self.database.transaction() as link:
                    query = f"UPDATE vectors SET tries = tries + {tries} WHERE hash = ?"
                    link.executemany(query, [(hash_,) for hash_, _ in group])
                if away:
                    break
        return 0

    def _use(self, model: str) -> None:
        if model == self.model()[0]:
            return
        with self.database.transaction() as link:
            link.execute("UPDATE state SET model = ?, width = 0", (model,))
            link.execute("DELETE FROM vectors")
            link.execute("INSERT INTO vectors (hash) SELECT DISTINCT hash FROM parts")

    def _group(self, limit: int) -> list[tuple[bytes, str]]:
        """Texts to be embedded together, by their hash; fewer the more often they have failed."""
        rows = self.database.rows(
            "WITH few AS (SELECT min(tries) AS tries FROM vectors WHERE bits IS NULL AND tries < ?)"
            " SELECT w.hash, tries, d.data, min(p.n) - (SELECT min(n) FROM parts WHERE document = d.n)"
            " FROM (SELECT hash, tries FROM vectors JOIN few USING (tries) WHERE bits IS NULL LIMIT ?)"
            " AS w JOIN parts AS p ON p.hash = w.hash JOIN documents AS d ON d.n = p.document"
            " GROUP BY w.hash",
            *(REFUSED, max(1, limit)),
        )
        group: list[tuple[bytes, str]] = []
        for hash_, tries, data, place in rows:
            document = load(data)
            if len(group) < max(1, limit >> tries):
                group.append((hash_, embedded(document, cut(document.body)[place])))
        return group

    def _store(self, group: list[tuple[bytes, str]], vectors: list[list[float]]) -> int:
        if not group:
            return 0
        width = self.model()[1] or len(vectors[0] if vectors else ())
        sound = all(len(each) == width and math.isfinite(sum(each)) for each in vectors)
        if len(vectors) != len(group) or not width or not sound:
            why = f"{len(group)} vectors of {width or 'some'} numbers were asked, others came"
            raise ModelError("embed texts", why)
        with self.database.transaction() as link:
            link.execute("UPDATE state SET width = ?", (width,))
            for (hash_, _), vector in zip(group, vectors, strict=True):
                # it may have been taken out meanwhile, or another process was here first; another number
                # tells those who have read the vectors that it is new
                query = "DELETE FROM vectors WHERE hash = ? AND bits IS NULL"
                if link.execute(query, (hash_,)).rowcount:
                    query = "INSERT INTO vectors (hash, bits, codes) VALUES (?, ?, ?)"
                    link.execute(query, (hash_, *encode(vector)))
        return len(vectors)


def _put_in(
    link: sqlite3.Connection, document: Document, data: str | None, counts: Counter[str]
) -> None:
    query = "INSERT INTO documents (id, ts, data) VALUES (?, ?, ?)"
    number = link.execute(query, (document.id, document.ts, data)).lastrowid
    links = [(number, type_, target) for type_, target in document.links]
    link.executemany("INSERT INTO links VALUES (?, ?, ?)", links)
    for piece in cut(document.body):
        hash_ = hashlib.sha256(embedded(document, piece).encode("utf-8", "replace")).digest()[:16]
        query = "INSERT INTO parts (document, hash) VALUES (?, ?)"
        part = link.execute(query, (number, hash_)).lastrowid
        columns = _columns(document, piece)
        counts.update(set(" ".join(columns).split()))
        link.execute(f"INSERT INTO search ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", (part, *columns))
        link.execute("INSERT OR IGNORE INTO vectors (hash) VALUES (?)", (hash_,))


def _take_out(
    link: sqlite3.Connection, number: int, document: Document, counts: Counter[str]
) -> list[tuple[bytes]]:
    """Delete a document but for its vectors; the hashes of those."""
    query = "SELECT n, hash FROM parts WHERE document = ? ORDER BY n"
    parts = link.execute(query, (number,)).fetchall()
    for (part, _), piece in zip(parts, cut(document.body), strict=True):
        columns = _columns(document, piece)
        counts.subtract(set(" ".join(columns).split()))
        query = f"INSERT INTO search ({COLUMNS}, search) VALUES (?, ?, ?, ?, ?, ?, 'delete')"
        link.execute(query, (part, *columns))
    for table, column in (("parts", "document"), ("links", "source"), ("documents", "n")):
        link.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))
    return [(hash_,) for _, hash_ in parts]


def load(data: str) -> Document:
    """A document as it is stored."""
    value: dict[str, Any] = json.loads(data)
    value["links"] = tuple((type_, target) for type_, target in value["links"])
    return Document(**value)


def cut(body: str) -> list[str]:
    """Pieces of a text, each at most PIECE characters; one that is short is one piece."""
    pieces = []
    start = 0
    while len(body) - start > PIECE:
        end = start + PIECE
        end = next((i for i in range(end, end - OVERLAP, -1) if body[i].isspace()), end)
        pieces.append(body[start:end])
        start = end - OVERLAP
    return [*pieces, body[start:]]


def texts_of(document: Document, piece: str) -> tuple[str, ...]:
    """What is searched of a part: the five columns of the keyword index."""
    return document.title, document.summary, document.load_when, document.tags, piece


def embedded(document: Document, piece: str) -> str:
    """The text that the vector of a part stands for."""
    head = [each for each in (document.title, document.summary) if each and each not in piece]
    return "\n".join([*head, piece])


def _columns(document: Document, piece: str) -> list[str]:
    return [" ".join(terms(plain(text))) for text in texts_of(document, piece)]
