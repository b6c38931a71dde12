from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from exo.core.base.errors import ContextOverflow, ModelGone, ModelMissing, ServiceError
from exo.core.retrieve.document import Document
from exo.core.retrieve.index import OVERLAP, PIECE, Index, cut
from exo.core.retrieve.recall import Recall
from exo.tools.clock import FakeClock
from hypothesis import given
from hypothesis import strategies as st

from .conftest import Meanings

Make = Callable[..., Document]


def whole_file(index: Index) -> bytes:
    folder = index.path.parent
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def embed_all(index: Index, embedder: Meanings, limit: int = 64) -> int:
    done = 0
    while count := index.embed_some(embedder, limit):
        done += count
    return done


def ids(recall: Recall, query: str, **more: object) -> list[str]:
    return [hit.id for hit in recall.search(query, **more).hits]  # type: ignore[arg-type]


def terms_by_count(index: Index) -> None:
    """The table of terms is what the keyword index holds."""
    index.database.link.execute(
        "CREATE VIRTUAL TABLE temp.seen USING fts5vocab (main, search, row)"
    )
    held = dict(index.database.rows("SELECT term, doc FROM temp.seen"))
    index.database.link.execute("DROP TABLE temp.seen")
    assert dict(index.database.rows("SELECT term, parts FROM terms")) == held


def test_written_now_found_by_the_next_call(index: Index, recall: Recall, make: Make) -> None:
    assert ids(recall, "kayak") == []
    assert index.put([make("fact-1", "The kayak hangs in the shed.")]) == 1
    assert ids(recall, "where is my kayak") == ["fact-1"]
    assert index.put([make("fact-1", "The kayak hangs in the shed.")]) == 0
    index.put([make("fact-1", "The canoe hangs in the shed.")])
    assert ids(recall, "kayak") == []
    assert ids(recall, "canoe") == ["fact-1"]
    index.remove(["fact-1", "nobody"])
    assert ids(recall, "canoe") == []
    terms_by_count(index)


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.text("xyzéü 猫犬", max_size=12), st.booleans()))
)
def test_counts_of_terms_follow_what_is_put_and_removed(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, bool]]
) -> None:
    index = Index(tmp_path_factory.mktemp("index") / "index.sqlite")
    for id_, text, stays in steps:
        index.put([Document(id_, "item", text, body=text * 2)])
        if not stays:
            index.remove([id_])
    terms_by_count(index)
    index.remove("abcd")
    assert index.database.rows("SELECT * FROM terms") == []
    assert index.pending() == 0
    index.close()


@given(st.text("ab \n", max_size=4000))
def test_pieces_of_a_long_text_cover_it(body: str) -> None:
    pieces = cut(body)
    assert all(len(piece) <= PIECE for piece in pieces)
    at = 0
    for piece in pieces:
        found = body.index(piece, max(0, at - OVERLAP))
        assert found <= at
        at = found + len(piece)
    assert at == len(body)


def test_the_best_piece_of_a_long_text_is_what_is_shown(
    index: Index, recall: Recall, make: Make
) -> None:
    filler = "The committee met and nothing was decided about anything at all. " * 60
    index.put([make("item-1", filler + "The spare key lies under the blue flowerpot. " + filler)])
    (hit,) = recall.search("where is the spare key").hits
    assert "flowerpot" in hit.text
    assert len(hit.text) <= 1200


def test_the_same_text_is_embedded_once(index: Index, make: Make, meanings: Meanings) -> None:
    index.put([make("item-1", "one text"), make("item-2", "one text"), make("item-3", "another")])
    assert index.pending() == 2
    assert embed_all(index, meanings) == 2
    index.put([make("item-1", "one text", tags="new"), make("item-4", "another")])
    assert index.pending() == 0
    index.put([make("item-9", "another")])
    assert index.pending() == 0
    assert sorted(meanings.asked) == ["another", "one text"]
    assert index.model() == ("meanings-1", 96)


def test_another_model_is_a_clean_rebuild_with_keywords_meanwhile(
    index: Index, recall: Recall, make: Make, meanings: Meanings, other_meanings: Meanings
) -> None:
    index.put([make(f"item-{n}", f"text {n} of the automobile") for n in range(10)])
    embed_all(index, meanings)
    assert recall.search("vehicle", embedder=meanings).hits[0].found_by == ["vector"]
    assert recall.search("vehicle", embedder=other_meanings).hits == []
    assert other_meanings.asked == []  # nothing to compare with: it is not asked
    assert index.embed_some(other_meanings, 4) == 4
    assert index.pending() == 6
    assert index.model() == ("meanings-2", 64)
    assert len(ids(recall, "automobile", embedder=other_meanings)) == 8
    assert "vector" not in recall.search("automobile", embedder=meanings).hits[0].found_by
    assert embed_all(index, other_meanings) == 6
    assert index.database.rows("SELECT DISTINCT length(codes) FROM vectors") == [(64,)]
    assert recall.search("vehicle", embedder=other_meanings).hits[0].found_by == ["vector"]


@pytest.mark.parametrize("limit", [1, 7, 64])
def test_a_text_that_is_refused_holds_up_no_other(
    index: Index, make: Make, meanings: Meanings, limit: int
) -> None:
    index.put([make(f"item-{n}", f"text {n}") for n in range(40)] + [make("item-x", "poison")])
    meanings.refuses = lambda texts: (
        ContextOverflow("embed", "too long") if "poison" in texts else None
    )
    assert embed_all(index, meanings, limit) == 40
    assert index.pending() == 0
    assert "poison" not in meanings.asked


def test_a_text_that_brings_the_model_down_holds_up_no_other(
    index: Index, make: Make, meanings: Meanings
) -> None:
    index.put([make(f"item-{n}", f"text {n}") for n in range(40)] + [make("item-x", "poison")])
    meanings.refuses = lambda texts: ModelGone("embed", "it died") if "poison" in texts else None
    for _ in range(60):
        index.embed_some(meanings, 16)
    assert index.pending() == 1  # it stays, for the day on which the model is mended


@pytest.mark.parametrize("error", [ServiceError("ask"), ModelMissing("ask"), ModelGone("ask")])
def test_a_model_that_is_away_is_asked_again_later(
    index: Index, make: Make, meanings: Meanings, error: Exception
) -> None:
    index.put([make("item-1", "one"), make("item-2", "two")])
    meanings.refuses = lambda texts: error
    assert index.embed_some(meanings) == 0
    assert index.pending() == 2
    meanings.refuses = lambda texts: None
    assert embed_all(index, meanings) == 2


@pytest.mark.parametrize(
    "wrong", [[], [[1.0, 2.0]] * 3, [[float("nan")], [float("nan")]], [[], []]]
)
def test_an_answer_that_does_not_fit_is_not_stored(
    index: Index,
    make: Make,
    meanings: Meanings,
    wrong: list[list[float]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index.put([make("item-1", "one"), make("item-2", "two")])
    monkeypatch.setattr(meanings, "embed", lambda texts: wrong)
    index.embed_some(meanings)
    assert index.database.rows("SELECT * FROM vectors WHERE bits IS NOT NULL") == []


def test_a_text_that_went_while_it_was_embedded_leaves_no_vector(
    index: Index, make: Make, meanings: Meanings
) -> None:
    index.put([make("item-1", "one"), make("item-2", "two")])

    def meanwhile(texts: list[str]) -> None:
        index.remove(["item-1"])

    meanings.refuses = meanwhile  # type: ignore[assignment]
    embed_all(index, meanings)
    assert index.database.rows("SELECT count(*) FROM vectors") == [(1,)]


SECRETS = ("Zanzibarquokka", "Ümläutgeheimnis", "黒猫秘密", "zanzib")


@pytest.mark.parametrize("how", ["remove", "replace"])
def test_nothing_of_a_removed_document_stays_in_the_file(
    index: Index, make: Make, meanings: Meanings, how: str
) -> None:
    secret = make(
        "fact-1",
        f"{SECRETS[0]} met {SECRETS[1]}, {SECRETS[2]}. " * 40,
        title=SECRETS[0],
        tags=SECRETS[0],
        load_when=SECRETS[0],
        url=f"https://example.org/{SECRETS[0]}",
    )
    others = [make(f"item-{n}", f"plain text number {n} " * 20) for n in range(300)]
    index.put([*others[:150], secret, *others[150:]])
    embed_all(index, meanings)
    (codes,) = index.database.rows(
        "SELECT v.codes FROM vectors AS v JOIN parts AS p ON p.hash = v.hash JOIN documents AS d"
        " ON d.n = p.document WHERE d.id = 'fact-1' LIMIT 1"
    )[0]
    low = [each.lower().encode() for each in SECRETS]
    assert any(each in whole_file(index).lower() for each in low)
    assert codes in whole_file(index)
    if how == "remove":
        index.remove(["fact-1"])
    else:
        index.put([make("fact-1", "harmless")])
    reader = sqlite3.connect(index.path)  # another process that is in the middle of a read
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM documents").fetchone()
    index.scrub()
    data = whole_file(index)
    for each in (*low, b"umlautgeheimnis", b"geheimnis", "猫秘".encode()):
        assert each not in data.lower(), each
    assert codes not in data
    reader.close()
    assert len(index.ids()) >= 300
    terms_by_count(index)


def test_other_documents_keep_their_vectors_through_a_scrub(
    index: Index, recall: Recall, make: Make, meanings: Meanings
) -> None:
    index.put([make("item-1", "the automobile"), make("item-2", "the physician")])
    embed_all(index, meanings)
    index.remove(["item-2"])
    index.scrub()
    assert recall.search("vehicle", embedder=meanings).hits[0].id == "item-1"
    index.put([make("item-3", "my dwelling")])
    embed_all(index, meanings)
    assert recall.search("home", embedder=meanings).hits[0].id == "item-3"


def spoil(path: Path) -> None:
    path.write_bytes(b"this is no database at all" * 400)


def other_format(path: Path) -> None:
    link = sqlite3.connect(path)
    link.execute("PRAGMA user_version = 77")
    link.close()


def old_format(path: Path) -> None:
    path.unlink()
    link = sqlite3.connect(path)
    link.execute("CREATE TABLE documents (n)")
    link.execute("PRAGMA user_version = 1")
    link.close()


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(8192)


@pytest.mark.parametrize("break_", [spoil, other_format, old_format, truncate])
def test_a_file_that_is_no_index_of_ours_is_begun_again_and_says_so(
    tmp_path: Path, make: Make, break_: Callable[[Path], None]
) -> None:
    path = tmp_path / "index.sqlite"
    index = Index(path)
    index.put([make("item-1", "the kayak")])
    index.revision = 7
    index.scrub()
    index.close()
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    break_(path)
    again = Index(path)
    assert again.revision == 0
    assert again.ids() == set()
    again.put([make("item-1", "the kayak")])
    assert ids(Recall(again, FakeClock()), "kayak") == ["item-1"]
    again.close()


def test_damage_that_shows_in_a_search_does_not_break_it(
    index: Index, recall: Recall, make: Make
) -> None:
    index.put([make(f"item-{n}", f"the kayak number {n}") for n in range(2000)])
    index.revision = 7
    index.scrub()
    size = index.path.stat().st_size
    with index.path.open("r+b") as file:
        for at in range(8192, size, 4096):
            file.seek(at)
            file.write(b"\xff" * 4096)
    assert recall.search("kayak number").hits == []
    assert index.revision == 0
    index.put([make("item-1", "the kayak")])
    assert ids(recall, "kayak") == ["item-1"]


CHILD = """
import json, os, sys
from pathlib import Path
from exo.core.retrieve.document import Document
from exo.core.retrieve.index import Index
index = Index(Path(sys.argv[1]))
class Slow:
    name, width = "slow", 2
    calls = 0
    def embed(self, texts):
        self.calls += 1
        if self.calls == 3:
            print("third", flush=True)
            sys.stdin.readline()
        return [[1.0, 2.0] for _ in texts]
for line in json.loads(sys.argv[2]):
    index.put([Document(line, "item", line, body="written by a child: " + line)])
slow = Slow()
while len(sys.argv) > 3 and index.embed_some(slow, 10):
    pass
"""


def child(path: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_what_another_process_writes_is_found(
    index: Index, recall: Recall, make: Make, meanings: Meanings
) -> None:
    index.put([make("item-1", "mine")])
    embed_all(index, meanings)
    assert recall.search("vehicle", embedder=meanings).abstain
    assert child(index.path, json.dumps(["kayak", "automobile"])).wait() == 0
    assert ids(recall, "kayak")[0] == "kayak"
    other = Index(index.path)
    embed_all(other, meanings)
    other.close()
    assert "automobile" in ids(recall, "vehicle", embedder=meanings)


def test_a_process_killed_while_it_embeds_loses_nothing(index: Index) -> None:
    names = json.dumps([f"item-{n}" for n in range(50)])
    with child(index.path, names, "embed") as process:
        assert process.stdout
        assert process.stdout.readline() == "third\n"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert index.pending() == 30
    assert index.database.rows("SELECT count(bits) FROM vectors") == [(20,)]
    asked: list[str] = []

    class Rest:
        name, width = "slow", 2

        def embed(self, texts: list[str]) -> list[list[float]]:
            asked.extend(texts)
            return [[1.0, 2.0] for _ in texts]

    while index.embed_some(Rest()):
        pass
    assert len(asked) == 30
    assert index.pending() == 0
