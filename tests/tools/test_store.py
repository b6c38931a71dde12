"""`exo store`: the interview, lint, rebuild, show."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.home import Home
from exo.core.ledger.ledger import Ledger
from exo.core.store.store import NewItem, Store
from exo.tools import cli


@pytest.fixture
def exo(home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(*words: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = cli.main(["store", *words, "--home", str(home.root)])
        out = capsys.readouterr()
        return code, out.out, out.err

    return run


@pytest.fixture
def store(home: Home) -> Any:
    ledger = Ledger(home, SystemClock())
    made = Store(home, ledger, SystemClock())
    yield made
    made.close()
    ledger.close()


def test_init_asks_and_lint_is_clean(exo: Any, home: Home) -> None:
    code, out, err = exo("init", stdin="Ada\nen, de\n\n\n\n")
    assert code == 0
    assert str(home.store) in out
    assert err.count("?") == 5
    pack = (home.store / "PACK.md").read_text()
    assert "Call me: Ada" in pack
    assert "About" not in pack
    assert json.loads(exo("lint", "--json")[1]) == {"errors": [], "warnings": []}
    assert exo("lint")[:2] == (0, "0 error(s), 0 warning(s)\n")


@pytest.mark.parametrize("stdin", ["", "Ada\n", "Ada\n\n\nno newline"])
def test_input_that_ends_early_is_fine(exo: Any, home: Home, stdin: str) -> None:
    assert exo("init", stdin=stdin)[0] == 0
    assert ("Ada" in (home.store / "PACK.md").read_text()) == bool(stdin)


def test_yes_asks_nothing(exo: Any, home: Home) -> None:
    code, out, err = exo("init", "--yes", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["answers"]["style"]
    assert json.loads(exo("show", "--json")[1])["items"] == 0


def test_lint_exits_1_with_the_fixed_shape(exo: Any, home: Home) -> None:
    exo("init", "--yes")
    (home.store / "nodes" / "a").mkdir()
    (home.store / "nodes" / "a" / "b.md").write_text("broken")
    code, out, _ = exo("lint", "--json")
    assert code == 1
    assert set(json.loads(out)["errors"][0]) == {"path", "line", "what"}
    code, out, _ = exo("rebuild")
    assert code == 1
    assert "nodes/a/b.md:1" in out
    assert (home.store / "nodes" / "a" / "b.md").read_text() == "broken"


def test_rebuild_makes_what_is_missing(exo: Any, home: Home, store: Any) -> None:
    node = store.remember("I like tea")
    store.close()
    for path in (home.store / "PACK.md", home.store / "INDEX.md", home.store / node.path):
        path.unlink()
    code, out, _ = exo("rebuild", "--json")
    assert code == 0
    assert node.path in json.loads(out)["written"]
    assert (home.store / node.path).exists()


def test_show_prints_pack_numbers_and_one_of_them(exo: Any, store: Any) -> None:
    rule, node = store.rule("Never shout"), store.remember("I like tea")
    store.add_items([NewItem("1", "Saved", url="https://x.example")], "bookmarks", "/x")
    item = next(iter(store.items()))
    code, out, _ = exo("show")
    assert code == 0
    assert "Never shout" in out
    assert "1 preference, 1 rule" in out
    assert "Items: 1" in out
    assert json.loads(exo("show", node.id, "--json")[1])["entries"] == store.entry_of(node.id)
    assert "https://x.example" in exo("show", item.id)[1]
    assert "I like tea" in exo("show", node.id)[1]
    code, _, err = exo("show", "nobody")
    assert code == 1
    assert err.startswith("exo: show nobody: ")
    assert rule.id in out


def test_what_a_terminal_would_obey_is_not_printed(exo: Any, store: Any) -> None:
    node = store.remember("x\x1b]0;owned\x07\x1b[2Jy", title="t\x1b[31m\u202ed", domain="d")
    for words in (("show",), ("show", node.id), ("lint",), ("rebuild",)):
        out = exo(*words)[1]
        assert "\x1b" not in out
        assert "\u202e" not in out


def test_a_newer_store_is_refused_in_one_line(exo: Any, home: Home) -> None:
    home.store.mkdir()
    (home.store / "STORE.toml").write_text("format = 9\n")
    for verb in ("init", "lint", "rebuild", "show"):
        code, _, err = exo(verb, *(["--yes"] if verb == "init" else []))
        assert code == 1
        assert err.count("\n") == 1
        assert "newer Exo" in err
