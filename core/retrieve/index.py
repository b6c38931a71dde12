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
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from exo.core.base.errors import HomeError, ModelError, ModelMissing, ServiceError, StorageError
from exo.core.base.sqlite import Database
from exo.core.retrieve.document import Document, Embedder
from exo.core.retrieve.vectors import Vectors, encode
from exo.core.retrieve.words import plain, terms

FORMAT = 1  # of the file; to be raised as well when words.py cuts texts in another way
SCHEMA = Path(__file__).with_name("index.sql")
PIECE, OVERLAP = 900, 150  # characters of a piece of a long text, and of that what the last one had
BATCH = 500  # documents in one commit
REFUSED = 1000  # tries of a text that the model will not have


class Index:
    """`made_anew` says why the file had to be begun again ("" when it was sound): then every document has
    to be put again. For one thread."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises StorageError."""
        self.path, self.made_anew = path, ""
        try:
            self._open()
            (found,) = self.database.rows("PRAGMA user_version")[0]
            if found != FORMAT:
                raise HomeError(f"open {path}", f"it has format {found}, not {FORMAT}")
            self.database.rows("SELECT n FROM documents LIMIT 1")
            self.database.rows("SELECT rowid FROM search WHERE search MATCH '\"a\"' LIMIT 1")
        except StorageError as error:
            if "no such" not in error.why:
                raise
            self.begin_again(str(error))
        except HomeError as error:
            self.begin_again(str(error))

    def begin_again(self, why: str) -> None:
        """Throw the file away and make an empty one."""
        with contextlib.suppress(AttributeError, sqlite3.Error):
            self.database.close()
        for ending in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        self.made_anew = why
        self._open()

    def _open(self) -> None:
        self.database = Database(self.path, SCHEMA.read_text(encoding="utf-8"), FORMAT)
        self.database.link.execute("PRAGMA secure_delete = ON")
        self.vectors = Vectors(self.database)

    def close(self) -> None:
        self.database.close()

    def put(self, documents: Iterable[Document]) -> int:
        """Add documents, or replace those of the same id; one that has not changed costs nothing. Return
        how many were written."""
        rest, written = iter(documents), 0
        while batch := list(islice(rest, BATCH)):
            with self.database.transaction() as link:
                counts: Counter[str] = Counter()
                for document in batch:
                    written += self._put(link, document, counts)
                _count(link, counts)
        return written

    def remove(self, ids: Iterable[str]) -> None:
        """Take documents out; unknown ids are no error."""
        with self.database.transaction() as link:
            counts: Counter[str] = Counter()
            for id_ in ids:
                self._take_out(link, id_, counts, set())
            _count(link, counts)

    def clear(self) -> None:
        """Take everything out but the vectors: texts that come back need no embedding. Those that do not
        come back go with `scrub`."""
        with self.database.transaction() as link:
            for table in ("documents", "links", "parts", "terms", "waiting"):
                link.execute(f"DELETE FROM {table}")
            link.execute("INSERT INTO search (search) VALUES ('delete-all')")

    def count(self) -> int:
        return int(self.database.rows("SELECT count(*) FROM documents")[0][0])

    @property
    def revision(self) -> int:
        """What of the store's changes is in here; 0 when that is not known."""
        rows = self.database.rows("SELECT revision FROM synced")
        return int(rows[0][0]) if rows else 0

    @revision.setter
    def revision(self, value: int) -> None:
        with self.database.transaction() as link:
            link.execute("DELETE FROM synced")
            link.execute("INSERT INTO synced VALUES (?)", (value,))

    def ids(self) -> set[str]:
        return {id_ for (id_,) in self.database.rows("SELECT id FROM documents")}

    def number(self, id_: str) -> int | None:
        rows = self.database.rows("SELECT n FROM documents WHERE id = ?", id_)
        return int(rows[0][0]) if rows else None

    def pending(self) -> int:
        """Texts that wait for their vector; those that the model refuses do not count."""
        query = "SELECT count(*) FROM waiting WHERE tries < ?"
        return int(self.database.rows(query, REFUSED)[0][0])

    def model(self) -> tuple[str, int]:
        """(name, width) of the model whose vectors are here; ("", 0) before the first."""
        rows = self.database.rows("SELECT name, width FROM models ORDER BY n DESC LIMIT 1")
        return rows[0] if rows else ("", 0)

    def embed_some(self, embedder: Embedder, limit: int = 64) -> int:
        """Embed up to `limit` waiting texts and return how many got their vector: 0 when nothing waits or
        the model is away. Another model than before: all vectors are made again. A text that the model
        refuses is left behind and holds up no other."""
        try:
            name = embedder.name
            if name != self.model()[0]:
                self._change(name)
            return self._embed(embedder, limit)
        except (ModelError, ServiceError):
            return 0

    def scrub(self) -> None:
        """Leave no trace in the file of what was taken out: words, vectors, free pages, the WAL."""
        with self.database.transaction(durable=True) as link:
            link.execute("DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM parts)")
            link.execute("INSERT INTO search (search) VALUES ('optimize')")
        self.vectors.drop()
        self.database.rows("VACUUM")
        self.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def _put(self, link: sqlite3.Connection, document: Document, counts: Counter[str]) -> bool:
        data = json.dumps(asdict(document), separators=(",", ":"))
        pieces = [
            (texts_of(document, piece), embedded(document, piece)) for piece in cut(document.body)
        ]
        hashes = {_hash(text) for _, text in pieces}
        was = link.execute("SELECT data FROM documents WHERE id = ?", (document.id,)).fetchone()
        if was is not None:
            if was[0] == data:
                return False
            self._take_out(link, document.id, counts, hashes)
        query = "INSERT INTO documents (id, ts, data) VALUES (?, ?, ?)"
        number = link.execute(query, (document.id, document.ts, data)).lastrowid
        link.executemany(
            "INSERT INTO links VALUES (?, ?, ?)", [(number, *each) for each in document.links]
        )
        for texts, text in pieces:
            hash_ = _hash(text)
            query = "INSERT INTO parts (document, hash) VALUES (?, ?)"
            part = link.execute(query, (number, hash_)).lastrowid
            counts.update(_write(link, part, texts))
            link.execute(
                "INSERT OR IGNORE INTO waiting SELECT ?1, 0"
                " WHERE NOT EXISTS (SELECT 1 FROM vectors WHERE hash = ?1)",
                (hash_,),
            )
        return True

    def _take_out(
        self, link: sqlite3.Connection, id_: str, counts: Counter[str], keep: set[bytes]
    ) -> None:
        """Delete a document and the vectors that no other and none of `keep` needs."""
        row = link.execute("SELECT n, data FROM documents WHERE id = ?", (id_,)).fetchone()
        if row is None:
            return
        number, document = row[0], load(row[1])
        parts = link.execute("SELECT n, hash FROM parts WHERE document = ? ORDER BY n", (number,))
        for (part, _), piece in zip(parts.fetchall(), cut(document.body), strict=True):
            counts.subtract(_write(link, part, texts_of(document, piece), delete=True))
        hashes = link.execute("SELECT DISTINCT hash FROM parts WHERE document = ?", (number,))
        gone = [(hash_,) for (hash_,) in hashes.fetchall() if hash_ not in keep]
        link.execute("DELETE FROM parts WHERE document = ?", (number,))
        link.execute("DELETE FROM links WHERE source = ?", (number,))
        link.execute("DELETE FROM documents WHERE n = ?", (number,))
        for table in ("vectors", "waiting"):
            link.executemany(
                f"DELETE FROM {table} WHERE hash = ?1"
                " AND NOT EXISTS (SELECT 1 FROM parts WHERE hash = ?1)",
                gone,
            )

    def _change(self, name: str) -> None:
        """Begin with another model."""
        with self.database.transaction() as link:
            link.execute("DELETE FROM vectors")
            link.execute("INSERT INTO models (name, width) VALUES (?, 0)", (name,))
            link.execute("INSERT OR REPLACE INTO waiting SELECT DISTINCT hash, 0 FROM parts")

    def _embed(self, embedder: Embedder, limit: int) -> int:
        rows = self.database.rows(
            "SELECT w.hash, w.tries, min(p.n) FROM"
            " (SELECT * FROM waiting WHERE tries < ? ORDER BY tries LIMIT ?) AS w"
            " JOIN parts AS p ON p.hash = w.hash GROUP BY w.hash ORDER BY w.tries",
            *(REFUSED, max(1, limit)),
        )
        # those that have failed before go alone, so that one of them does not take others with it
        fresh = [row for row in rows if row[1] == 0]
        groups = [fresh] if fresh else [[row] for row in rows]
        return sum(self._embed_group(embedder, group) for group in groups)

    def _embed_group(self, embedder: Embedder, group: list[tuple[bytes, int, int]]) -> int:
        texts = [embedded(*self.piece(part)) for _, _, part in group]
        hashes = [(hash_,) for hash_, _, _ in group]
        try:
            vectors = embedder.embed(texts)
            _check(vectors, len(texts), self.model()[1])
        except (ModelError, ServiceError) as error:
            busy = isinstance(error, ServiceError | ModelMissing) or error.retryable
            tries = REFUSED if len(group) == 1 and not busy else 1
            with self.database.transaction() as link:
                query = f"UPDATE waiting SET tries = tries + {tries} WHERE hash = ?"
                link.executemany(query, hashes)
            if busy:
                raise
            return 0
        with self.database.transaction() as link:
            for (hash_,), vector in zip(hashes, vectors, strict=True):
                # it may have been taken out meanwhile, or another process was here first
                if link.execute("DELETE FROM waiting WHERE hash = ?", (hash_,)).rowcount:
                    link.execute(
                        "INSERT INTO vectors (model, hash, bits, codes)"
                        " SELECT max(n), ?, ?, ? FROM models",
                        (hash_, *encode(vector)),
                    )
            width = len(vectors[0])
            link.execute(
                "UPDATE models SET width = ? WHERE n = (SELECT max(n) FROM models)", (width,)
            )
        return len(vectors)

    def piece(self, part: int) -> tuple[Document, str]:
        """The document of a part, and the piece of its body that the part is."""
        data, first = self.database.rows(
            "SELECT d.data, (SELECT min(n) FROM parts WHERE document = d.n)"
            " FROM parts AS p JOIN documents AS d ON d.n = p.document WHERE p.n = ?",
            part,
        )[0]
        document = load(data)
        return document, cut(document.body)[part - first]


def load(data: str) -> Document:
    """A document as it is stored."""
    value: dict[str, Any] = json.loads(data)
    value["links"] = tuple((type_, target) for type_, target in value["links"])
    return Document(**value)


def cut(body: str) -> list[str]:
    """Pieces of a text, each at most PIECE characters; one that is short is one piece."""
    if len(body) <= PIECE:
        return [body]
    out, start = [], 0
    while start < len(body):
        end = start + PIECE
        if end < len(body):
            end = next((i for i in range(end, end - OVERLAP, -1) if body[i].isspace()), end)
        out.append(body[start:end])
        if end >= len(body):
            break
        start = end - OVERLAP
    return out


def texts_of(document: Document, piece: str) -> tuple[str, ...]:
    """What is searched of a part: the five columns of the keyword index."""
    return document.title, document.summary, document.load_when, document.tags, piece


def embedded(document: Document, piece: str) -> str:
    """The text that the vector of a part stands for."""
    head = [each for each in (document.title, document.summary) if each and each not in piece]
    return "\n".join([*head, piece])


def _write(
    link: sqlite3.Connection, part: int | None, texts: Sequence[str], delete: bool = False
) -> set[str]:
    columns = [" ".join(terms(plain(text))) for text in texts]
    first, second = (", search", ", 'delete'") if delete else ("", "")
    link.execute(
        f"INSERT INTO search (rowid, title, summary, load_when, tags, body{first})"
        f" VALUES (?, ?, ?, ?, ?, ?{second})",
        (part, *columns),
    )
    return set(" ".join(columns).split())


def _count(link: sqlite3.Connection, counts: Counter[str]) -> None:
    link.executemany(
        "INSERT INTO terms VALUES (?, ?) ON CONFLICT DO UPDATE SET parts = parts + excluded.parts",
        [each for each in counts.items() if each[1]],
    )
    gone = [(term,) for term, count in counts.items() if count < 0]
    link.executemany("DELETE FROM terms WHERE term = ? AND parts <= 0", gone)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16]


def _check(vectors: list[list[float]], count: int, width: int) -> None:
    """Raises ModelError when an answer is not what was asked for."""
    widths = {len(vector) for vector in vectors}
    sound = all(math.isfinite(sum(vector)) for vector in vectors)
    if len(vectors) != count or len(widths) != 1 or 0 in widths or not sound:
        raise ModelError("embed texts", f"{count} were asked, the answer does not fit")
    if width and widths != {width}:
        raise ModelError(
            "embed texts", f"vectors have {widths.pop()} numbers, here they have {width}"
        )
