"""What an artifact may make of settings: whatever stands in it, the answer is settings or an error in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.errors import SettingError
from exo.core.base.home import Home
from exo.core.base.settings import LONGEST, Settings, changes, parse
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger
from exo.core.substrate.artifacts import Artifacts
from exo.tools.clock import FakeClock

NINES = "9" * 20_000
TEXTS = {
    "settings/context": (
        f"context.tail = {NINES}",
        f"context.tail = 0x{'f' * 20_000}",
        f"context.tail = {NINES}.5",
        "context.tail = inf",
        "context.tail = 1979-05-27T07:32:00",
        "context.tail = " + "[" * 30_000,
        "context." + ".".join("a" * 20_000) + " = 1",
        "context.tail = 8\n# " + "x" * LONGEST,
        "".join(f"context.k{n} = 1\n" for n in range(50_000)),
        "voice.backend = 'x'",
        "context = 5",
        "\ud800",
        "\0",
    ),
    "threshold/request.kind": (
        NINES,
        f"0x{'f' * 20_000}",
        f"1e{NINES}",
        "nan",
        "inf",
        "-1",
        "",
        "a",
    ),
    "threshold/" + "x" * 500: ("0.5",),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_does_not_fit_is_refused_in_words_and_read_as_if_not_there(name: str) -> None:
    settings = Settings(Path("none"), {})
    for text in TEXTS[name]:
        with pytest.raises(SettingError) as told:
            changes(name, text)
        assert told.value.why and len(str(told.value)) < 1200, text[:80]
        assert settings.under({name: text}).made == {}


def test_what_fits_is_followed() -> None:
    under = Settings(Path("none"), {}).under({"settings/context": "[context]\ntail = 7"})
    assert under.origin("context.tail") == (7, "artifact settings/context")
    with pytest.raises(SettingError, match="setting context.tail"):
        parse("context.tail", 10**20_000, "set")


def test_a_text_that_is_none_is_no_version(tmp_path: Path) -> None:
    """What another device of the person wrote, or a fault."""
    ledger = Ledger(Home(tmp_path).make(), FakeClock())
    bodies: list[dict[str, Any]] = [{"name": "threshold/request.kind", "text": text}
                                    for text in (5, ["0.5"], {"a": 1}, True)]  # fmt: skip
    ledger.append(*[Draft("artifact", json.loads(json.dumps(body))) for body in (*bodies, {})])
    artifacts = Artifacts(ledger)
    assert artifacts.all() == {} and artifacts.history("threshold/request.kind") == []
    assert Settings(Path("none"), {}).under(artifacts.all()).made == {}
    ledger.close()
