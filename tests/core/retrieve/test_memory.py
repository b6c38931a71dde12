"""What is said, kept, found and forgotten, with the real ledger, store, index and conversations."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.client import Client
from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError, HomeError, ProtocolError
from exo.core.base.home import Home
from exo.core.engine.outbox import Row
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.core.retrieve import forget as forgetting
from exo.core.retrieve.memory import Memory
from exo.tools.supervisor import Supervisor

SENTENCE = "the wumbelflax sleeps behind the trondquist boiler near quexmoor"
RARE = ("wumbelflax", "trondquist", "quexmoor")


@pytest.fixture
def memory(home: Home) -> Iterator[Memory]:
    made = Memory(home, SystemClock())
    yield made
    made.close()


@pytest.fixture
def exod(home: Home) -> Iterator[Client]:
    """A running Exo with scripted models."""
    with Supervisor(home, ["exod", "models"], {"models": ("--fake",)}) as services:
        services.wait_ready()
        yield Client(home.exod_socket, 60.0)


def ask(client: Client, session: str, text: str) -> dict[str, Any]:
    """One turn; its turn.completed."""
    since = int(client.call("hello", protocol=1, client="test")["seq"])
    turn = client.call("turn.send", session=session, text=text)["turn"]
    for event in client.events(since, session):
        if event["type"] == "turn.completed" and event["body"]["turn"] == turn:
            return dict(event["body"])
    raise AssertionError("the turn has no end")


def query(client: Client, verb: str, **args: Any) -> dict[str, Any]:
    return dict(client.call("memory.query", verb=verb, args=args)["result"])


def replies(client: Client, session: str) -> list[str]:
    messages = client.call("session.get", session=session)["messages"]
    return [m["text"] for m in messages if m["role"] == "assistant" and not m.get("calls")]


def traces(root: Path, words: tuple[str, ...]) -> list[str]:
    """Where a word still stands: raw bytes of every file, inflated git objects, joined deltas."""
    found = []
    for path in root.rglob("*"):
        if not path.is_file():
            continue
        raw = path.read_bytes()
        if "objects" in path.parts and len(path.name) == 38:
            raw += zlib.decompress(raw)
        found += [f"{word} in {path}" for word in words if word.encode() in raw.lower()]
    sessions = root / "state" / "sessions.sqlite"
    if sessions.exists():
        with closing(sqlite3.connect(sessions)) as link:
            rows = link.execute(
                "SELECT group_concat(data ->> '$.body.text', '') FROM events"
                " WHERE data ->> '$.type' = 'message.delta' GROUP BY data ->> '$.body.message'"
            )
            joined = " ".join(str(row[0]) for row in rows).lower()
        found += [f"{word} in joined deltas" for word in words if word in joined]
    return found


def packed(root: Path) -> str:
    """Everything that git still has, packed or loose."""
    git = ["git", "-C", str(root / "store")]
    every = subprocess.run(
        [*git, "cat-file", "--batch-all-objects", "--batch"], capture_output=True, timeout=60
    )
    return every.stdout.decode(errors="replace").lower()


def test_what_was_said_is_remembered_found_shown_and_forgotten_without_a_trace(
    home: Home, exod: Client
) -> None:
    session = exod.call("session.create")["session"]
    query(exod, "remember", text="I take oat milk in my coffee")
    ask(exod, session, f"Remember that {SENTENCE}")
    assert ask(exod, session, f"please say !words 4\n{SENTENCE}")["model_called"]
    end = ask(exod, session, "Where does my wumbelflax sleep?")
    assert end["recalled"] and not end["model_called"]
    assert SENTENCE in replies(exod, session)[-1].lower()
    ask(exod, session, f"note: {SENTENCE}")
    exod.call("session.create", title="about the wumbelflax")
    (home.state / "chat.history").write_text(f"# 2026\n+{SENTENCE}\n+what time is it\n")
    (home.cache / "prefix").mkdir()
    (home.cache / "prefix" / "a-b.bin").write_bytes(b"state of a model")
    found = query(exod, "recall", query="wumbelflax")
    [id_] = [
        hit["id"] for hit in found["hits"] if hit["kind"] == "node" and "wumbel" in hit["text"]
    ]
    why = query(exod, "why", id=id_)
    assert [each["kind"] for each in why["evidence"]] == ["belief", "utterance"]
    end = time.monotonic() + 30
    while "wumbelflax" not in packed(home.root) and time.monotonic() < end:
        time.sleep(0.05)  # the store's own history is written when nobody waits
    assert len(traces(home.root, RARE)) > 10 and "wumbelflax" in packed(home.root)

    with closing(sqlite3.connect(home.sessions_db)) as reader:  # an old snapshot stays open
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        with closing(sqlite3.connect(home.store / "private" / "ledger.sqlite")) as other:
            other.execute("BEGIN")
            other.execute("SELECT count(*) FROM events").fetchone()
            for _ in range(8):  # what else says it in its own right: words, a question, a note
                for entry in [id_, *_events_with(home, RARE)]:
                    try:
                        query(exod, "forget", id=entry)
                    except ProtocolError as error:
                        assert "nothing of that id" in str(error)
                if not _events_with(home, RARE):
                    break
            assert traces(home.root, RARE) == []
    assert not any(word in packed(home.root) for word in RARE)
    messages = exod.call("session.get", session=session)["messages"]
    assert len(messages) >= 8, "the rows stay"
    assert query(exod, "recall", query="what do I take in my coffee")["hits"][0]["text"]
    assert (home.state / "chat.history").read_text() == "# 2026\n+what time is it\n"
    assert ask(exod, session, "what time is it")["stop_reason"] == "end"
    with closing(Ledger(home, SystemClock(), enrol=False)) as ledger:
        assert ledger.verify().ok


def _events_with(home: Home, words: tuple[str, ...]) -> list[str]:
    with closing(sqlite3.connect(home.store / "private" / "ledger.sqlite")) as link:
        rows = link.execute(
            "SELECT id, body FROM bodies JOIN events USING (id) WHERE kind = 'utterance'"
        )
        return [id_ for id_, body in rows if any(word in body.lower() for word in words)]


def test_forgetting_that_is_cut_off_anywhere_is_finished_by_the_next_start(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = ("ledger.forget", "store.erase", "index.scrub", "erase", "_erase_files")
    for step in steps:
        shutil.rmtree(home.root)
        home.make()
        memory = Memory(home, SystemClock())
        kept = memory.remember(SENTENCE)["id"]
        memory.remember("my cat is called Plum")
        erased: list[Any] = []

        def broken(*args: Any, **more: Any) -> None:
            raise OSError("the power went away")

        with monkeypatch.context() as patch:
            if "." in step:
                part, name = step.split(".")
                patch.setattr(getattr(memory, part), name, broken)
            elif step == "_erase_files":
                patch.setattr(forgetting, step, broken)
            with pytest.raises(OSError):
                take = broken if step == "erase" else erased.append
                forgetting.forget(memory, home, kept, take)
        memory.close()
        memory = Memory(home, SystemClock())
        forgetting.resume(memory, home, erased.append)
        assert erased and all(word in erased[-1].words for word in RARE)
        assert memory.recall("wumbelflax").abstain
        assert not memory.recall("what is my cat called").abstain
        memory.close()
        assert traces(home.root, RARE) == [], step
        assert not (home.state / "forget.json").exists()


def test_a_correction_is_not_forgotten_with_what_it_corrects(home: Home, memory: Memory) -> None:
    old = memory.remember("my sister lives in Quexmoor")["id"]
    new = memory.remember("my sister lives in Lisbon now", supersedes=old)["id"]
    assert memory.recall("where does my sister live").hits[0].id == new
    forgetting.forget(memory, home, old, lambda needles: None)
    assert [hit.id for hit in memory.recall("where does my sister live").hits] == [new]
    memory.close()
    assert traces(home.root, ("quexmoor",)) == []


def test_forgetting_takes_nothing_that_others_said_in_their_own_right(
    home: Home, memory: Memory
) -> None:
    one = memory.remember("my tea is from Assam")["id"]
    other = memory.remember("my coffee is from Assam and Kenya")["id"]
    forgetting.forget(memory, home, one, lambda needles: None)
    assert [hit.id for hit in memory.recall("assam").hits] == [other]
    with pytest.raises(ExoError, match="nothing of that id"):
        forgetting.forget(memory, home, "fact-000000000000", lambda needles: None)


def test_a_row_that_comes_again_after_a_crash_is_in_the_record_once(home: Home) -> None:
    memory = Memory(home, SystemClock())

    def row(kind: str, key: str, /, **body: Any) -> Row:
        return Row(key, kind, "s", "t", 1, {"session": "s", "turn": "t", **body})

    rows = [
        row("utterance", "m1", message="m1", channel="voice", text="note: buy milk"),
        row("action", "c1:a", call="c1", tool="note", args=json.dumps({"text": "buy milk"})),
        row("approval", "p1:a", request="p1", tool="note", summary="", choice="allow", by="x"),
        row("outcome", "c1:o", call="c1", ok=True, text="Noted: buy milk"),
        row("outcome", "t:end", stop_reason="end", kind="note", text="Noted: buy milk"),
        row("verdict", "t:undo", verdict="reject", via="undo"),
    ]
    for cut in range(len(rows) + 1):
        memory.write(rows[:cut])
        memory.close()
        memory = Memory(home, SystemClock())  # the outbox was not emptied: all of it comes again
    entries = [e for e in memory.ledger.entries() if e.kind not in ("device", "state")]
    assert [e.kind for e in entries] == [
        "utterance", "action", "approval", "outcome", "note", "outcome", "verdict",
    ]  # fmt: skip
    said, act, asked, out, note, end, verdict = (entry.id for entry in entries)
    assert [e.refs for e in entries] == [(), (said,), (said,), (act,), (out,), (said,), (end,)]
    assert memory.recall("milk").hits[0].text.strip() == "buy milk"
    forgetting.forget(memory, home, said, lambda needles: None)
    assert [e.body for e in memory.ledger.entries() if e.kind in ("note", "outcome")] == [None] * 3
    assert memory.recall("milk").abstain
    memory.close()
    del asked, note, verdict, act, out


def test_a_rule_of_another_process_is_in_the_next_request(home: Home, exod: Client) -> None:
    session = exod.call("session.create")["session"]
    other = Memory(home, SystemClock())
    rule = other.rule("Answer in rhymes, always.")
    other.close()
    ask(exod, session, "tell me something")
    assert "Answer in rhymes, always." in (home.store / "PACK.md").read_text()
    with pytest.raises(ProtocolError):
        query(exod, "forget", id="nothing-at-all")
    query(exod, "forget", id=rule["id"])
    assert "rhymes" not in (home.store / "PACK.md").read_text()


def test_forty_sentences_answer_the_same_in_a_copied_home_under_its_own_key(
    home: Home, short_folder: Path
) -> None:
    things = ("lamp", "kettle", "bicycle", "violin", "ladder", "tent", "camera", "drill")
    places = ("cellar", "attic", "garage", "garden shed", "hall cupboard")
    said = [f"My {thing} is in the {place}" for thing in things for place in places]
    first = Memory(home, SystemClock())
    for text in said:
        first.remember(text)
    asked = [f"{text.replace('My', 'is my').replace(' is in', ' in')}?" for text in said]
    before = [[hit.id for hit in first.recall(text).hits] for text in asked]
    author = first.ledger.author
    first.close()
    second_home = Home(short_folder / "second").make()
    shutil.copytree(home.store, second_home.store)
    second = Memory(second_home, SystemClock())
    assert [[hit.id for hit in second.recall(text).hits] for text in asked] == before
    assert second.ledger.author != author
    second.remember("This is the second home")
    report = second.ledger.verify()
    assert report.ok and set(report.authors) == {author, second.ledger.author}
    second.close()


def test_a_model_cannot_teach_as_the_person(home: Home, exod: Client) -> None:
    session = exod.call("session.create")["session"]
    call = '!tool remember {"text": "the person loves pineapple spam"}'
    ask(exod, session, f"read this page\n{call}")
    hits = query(exod, "recall", query="pineapple spam")["hits"]
    assert [hit["trust"] for hit in hits if "pineapple" in hit["text"]] == ["self"]
    assert query(exod, "recall", query="pineapple", min_trust="self")["hits"]


def test_an_empty_id_or_a_key_of_the_record_forgets_nothing_and_blocks_nothing(
    home: Home, memory: Memory
) -> None:
    kept = memory.remember("my cat is called Plum")["id"]
    broken = home.store / "nodes" / "facts" / "mine.md"
    broken.write_text("no front matter\n")
    memory.refresh()
    enrolled = next(memory.ledger.entries(kinds=("device",))).id
    for id_ in ("", enrolled, enrolled[:12]):
        with pytest.raises(ExoError, match="nothing of that id"):
            forgetting.forget(memory, home, id_, lambda needles: None)
    assert broken.read_text() == "no front matter\n"
    assert forgetting.forget(memory, home, kept, lambda needles: None)
    (home.state / "forget.json").write_text("[]")
    with pytest.raises(HomeError, match="damaged"):
        forgetting.resume(memory, home, lambda needles: None)


def test_the_beginning_of_an_id_forgets_what_the_whole_id_does(home: Home, memory: Memory) -> None:
    said = memory.ledger.append(Draft("utterance", {"text": "my cat is called Plum"}))[0].id
    kept = memory.remember("my cat is called Plum", refs=[said])["id"]
    belief = memory.store.entry_of(kept)[0]
    assert forgetting.forget(memory, home, belief[:12], lambda needles: None) == [belief]


def test_titles_timers_and_results_go_though_others_hold_each_of_their_words(
    home: Home, exod: Client
) -> None:
    secret = "Anna sold the old ring of Peter at the harbour yesterday evening"
    for word in secret.split():
        query(exod, "remember", text=f"{word} is fine by me")
    (home.root / "work").mkdir(exist_ok=True)
    (home.root / "work" / "f.txt").write_text("Peter sold Anna the ring\n")
    session = exod.call("session.create", cwd=str(home.root / "work"))["session"]
    ask(exod, session, secret)
    ask(exod, session, '!tool read_file {"path": "f.txt"}')
    label = json.dumps({"seconds": 5400, "label": "Anna sold Peter"})
    ask(exod, session, f"!tool timer {label}")
    task = {"action": "add", "line": "@yearly", "text": "Anna sold the old ring", "zone": "UTC"}
    exod.call("command.run", name="task", args=task)
    exod.call("command.run", name="task", args=task | {"text": "Water the plants"})
    rows = [row["label"] for row in exod.call("tasks.list")["rows"]]
    assert sorted(rows) == ["Anna sold Peter", "Anna sold the old ring", "Water the plants"]
    query(exod, "status")
    with closing(Ledger(home, SystemClock(), enrol=False)) as ledger:
        said = [entry.id for entry in ledger.entries(kinds=("utterance",))]
    for id_ in said:
        query(exod, "forget", id=id_)
    assert [row["label"] for row in exod.call("tasks.list")["rows"]] == ["Water the plants"]
    raw = b"".join(path.read_bytes() for path in (home.root / "state").glob("*.sqlite*"))
    for part in (b"Anna sold the old", b"Peter sold Anna", b"Anna sold Peter"):
        assert part not in raw


def test_a_turn_that_outlasts_a_forgetting_says_it_in_vain(home: Home, exod: Client) -> None:
    session = exod.call("session.create")["session"]
    since = int(exod.call("hello", protocol=1, client="test")["seq"])
    turn = exod.call("turn.send", session=session, text=f"!say {SENTENCE}\n!delay 0.15")["turn"]
    query(exod, "status")
    for id_ in _events_with(home, RARE):
        query(exod, "forget", id=id_)
    for event in exod.events(since, session):
        if event["type"] == "turn.completed" and event["body"]["turn"] == turn:
            break
    end = time.monotonic() + 20
    while (home.state / "forget.json").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert traces(home.root, RARE) == []


def test_the_words_that_ask_to_forget_go_along(home: Home, exod: Client) -> None:
    session = exod.call("session.create")["session"]
    id_ = query(exod, "remember", text=SENTENCE)["id"]
    asked = f"It is wrong that {SENTENCE}\n!tool forget {json.dumps({'id': id_})}"
    exod.call("turn.send", session=session, text=asked)
    for event in exod.events(0, session):
        if event["type"] == "approval.requested":
            request = event["body"]["request"]
            exod.call("approval.respond", request=request, choice="allow")
        if event["type"] == "turn.completed":
            break
    end = time.monotonic() + 20
    while (home.state / "forget.json").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert traces(home.root, RARE) == []


def test_a_question_that_was_answered_with_it_stays_and_small_words_count_for_nothing(
    home: Home, exod: Client
) -> None:
    session = exod.call("session.create")["session"]
    id_ = query(exod, "remember", text="my aunt is called Quexmoor")["id"]
    ask(exod, session, "!say yes is my answer")
    ask(exod, session, "How is she called, my aunt?")
    query(exod, "forget", id=id_)
    messages = exod.call("session.get", session=session)["messages"]
    assert [m["text"] for m in messages if m["role"] == "user"][1] == "How is she called, my aunt?"
    assert traces(home.root, ("quexmoor",)) == []


def test_what_was_said_last_in_a_session_is_known_after_a_restart(home: Home) -> None:
    memory = Memory(home, SystemClock())
    for n in range(3):
        body = {"session": "s", "turn": f"t{n}", "message": f"m{n}", "text": f"words {n}"}
        memory.write([Row(f"m{n}", "utterance", "s", f"t{n}", n + 1, body)])
    memory.close()
    memory = Memory(home, SystemClock())
    last = memory.ledger.get(memory.mirror.last("s"))
    assert last is not None and last.body is not None and last.body["text"] == "words 2"
    memory.close()


def test_the_turn_of_a_queued_message_that_is_forgotten_ends(exod: Client, home: Home) -> None:
    session = exod.call("session.create")["session"]
    more = {"session": session, "mode": "queue", "message": "b" * 16}
    exod.call("turn.send", session=session, text="!words 400\n!delay 0.02\na story")
    turn = exod.call("turn.send", text="my aunt is called Quexmoor", **more)["turn"]
    query(exod, "status")  # what was said is in the record then
    query(exod, "forget", id=_events_with(home, ("quexmoor",))[0])
    for event in exod.events(0, session):
        if event["type"] == "turn.completed":
            assert (event["body"]["turn"], event["body"]["stop_reason"]) == (turn, "interrupted")
            break
    assert exod.call("turn.send", text="again", **more)["turn"] == turn
    exod.call("turn.interrupt", session=session)
    assert {each for each in traces(home.root, ("quexmoor",)) if "forget.json" not in each} == set()


@pytest.mark.parametrize("edits", [0, 5])
def test_a_record_that_is_lost_takes_nothing_of_what_the_files_still_say(
    home: Home, edits: int
) -> None:
    memory = Memory(home, SystemClock())
    kept = memory.remember("my violin is in the attic")["id"]
    rule = memory.rule("Never shout at me")["id"]
    memory.close()
    for path in (home.store / "private").glob("ledger.sqlite*"):
        path.unlink()
    for number in range(edits):
        (home.store / "nodes" / f"hand{number}.md").write_text("by hand")
    memory = Memory(home, SystemClock())
    memory.remember("my cat is called Plum")
    assert memory.recall("where is my violin").hits[0].id == kept
    assert f"Never shout at me [{rule}]" in memory.store.pack()
    memory.close()


def test_a_damaged_index_is_begun_again_and_finds_all(home: Home) -> None:
    memory = Memory(home, SystemClock())
    for number in range(30):
        memory.remember(f"my violin number {number} is in the attic")
    memory.close()
    index = home.store / "private" / "index.sqlite"
    data = index.read_bytes()
    for page in range(1, len(data) // 4096):
        index.write_bytes(data[: 4096 * page] + b"\x5a" * 2000 + data[4096 * page + 2000 :])
        memory = Memory(home, SystemClock())
        found = memory.remember(f"the ladder of page {page} is red")["id"]
        assert found in [hit.id for hit in memory.recall(f"ladder page {page}", k=50).hits]
        memory.close()


def test_only_the_person_can_look_into_the_store(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "home" / "store"
    home.mkdir(0o755)
    for _ in range(2):
        memory = Memory(Home(home), SystemClock())
        memory.remember("my cat is called Plum")
        memory.close()
        modes = {each: each.stat().st_mode & 0o077 for each in (store, *store.rglob("*"))}
        assert (store / ".git" / "HEAD") in modes and not any(modes.values()), modes
        for each in (store, store / ".git"):  # as an older Exo or a copy has left it
            each.chmod(0o755)
            assert each.stat().st_mode & 0o077


def test_what_was_asked_cannot_be_guessed_from_the_record(memory: Memory, tmp_path: Path) -> None:
    memory.remember("my cat is called Plum")
    other = Memory(Home(tmp_path / "other"), SystemClock())
    other.remember("my cat is called Plum")
    for each in (memory, memory, other):
        each.recall("my cat")
    hashes = [
        (entry.body or {})["query_hash"]
        for each in (memory, other)
        for entry in each.ledger.entries(kinds=("retrieval",))
    ]
    other.close()
    assert hashes[0] == hashes[1] != hashes[2]
    assert hashlib.sha256(b"my cat").hexdigest() not in hashes


def test_arguments_of_any_make_are_refused_in_words(memory: Memory) -> None:
    memory.remember("my cat is called Plum")
    for verb, args in (
        ("recall", {"query": 5}),
        ("recall", {"query": ["cat"]}),
        ("recall", {"query": "cat", "k": "many"}),
        ("recall", {"query": "cat", "k": 2.5}),
        ("recall", {"query": "cat", "at": 5}),
        ("recall", {"query": "cat", "min_trust": "king"}),
        ("recall", {"query": "cat", "budget": "all"}),
        ("remember", {"text": None}),
        ("remember", {"text": "a cat", "refs": "x"}),
        ("rule", {"text": ["never"]}),
        ("why", {"id": ["a"]}),
        ("status", {"more": "x"}),
    ):
        with pytest.raises(ExoError, match=f"memory.query {verb}"):
            memory.query(verb, dict[str, Any](args))
    for at in ("9999-12-31", "9999-12-31T23:59:59+14:00", "1969-12-31"):
        memory.query("recall", {"query": "cat", "at": at})


def test_arguments_that_are_no_json_are_read_as_they_stand() -> None:
    from exo.core.retrieve.forget import leaves

    body = {"tool": "shell", "args": '{"args": "not json", "line": "say hello"}'}
    assert [*leaves(body)] == ["not json", "say hello"]
