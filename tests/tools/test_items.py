"""`exo items`: looking at what was brought in, keeping and dropping it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.ledger.ledger import Ledger
from exo.core.store.store import Store
from exo.tools import cli


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """A command on a home with two items; its JSON."""
    lines = tmp_path / "lines"
    lines.write_text('{"text": "first words", "tags": ["a b"]}\n{"text": "second words"}')

    def command(*words: str) -> Any:
        code = cli.main([*words, "--json", "--home", str(tmp_path / "home")])
        out = capsys.readouterr().out
        return json.loads(out) if code == 0 else code

    command("import", "jsonl", str(lines))
    return command


def found(tmp_path: Path) -> set[str]:
    """Titles of what recall may find."""
    home, clock = Home(tmp_path / "home"), SystemClock()
    ledger = Ledger(home, clock)
    titles = {document.title for document in Store(home, ledger, clock).documents()}
    ledger.close()
    return titles


def ids(run: Callable[..., Any]) -> dict[str, str]:
    return {item["title"]: item["id"] for item in run("items", "list")["items"]}


def test_items_are_listed_and_shown(run: Callable[..., Any]) -> None:
    assert set(ids(run)) == {"first words", "second words"}
    item = run("items", "show", ids(run)["first words"])
    assert (item["text"], item["review"], item["source"]) == ("first words", "new", "jsonl")


def test_what_is_dropped_is_found_no_more_until_it_is_kept(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    id_ = ids(run)["first words"]
    before = run("items", "show", id_)
    assert run("items", "drop", id_) == {"id": id_, "review": "dropped"}
    assert found(tmp_path) == {"second words"}
    assert [item["id"] for item in run("items", "list", "--review", "dropped")["items"]] == [id_]
    assert run("import", "jsonl", str(tmp_path / "lines"))["new"] == 0
    assert found(tmp_path) == {"second words"}
    run("items", "keep", id_)
    assert found(tmp_path) == {"first words", "second words"}
    changed = ("review", "entries", "ts")
    after = run("items", "show", id_)
    assert {k: v for k, v in after.items() if k not in changed} == {
        k: v for k, v in before.items() if k not in changed
    }


def test_the_index_hears_of_what_is_dropped(run: Callable[..., Any], tmp_path: Path) -> None:
    home, clock = Home(tmp_path / "home"), SystemClock()
    ledger = Ledger(home, clock)
    store = Store(home, ledger, clock)
    since = store.revision()
    id_ = ids(run)["second words"]
    store.review(id_, "dropped")
    assert store.removed(since) == [id_] and not list(store.documents(since))
    ledger.close()


def test_an_unknown_item_is_named(
    run: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in ("show", "keep", "drop"):
        assert run("items", verb, "item-none") == 1
