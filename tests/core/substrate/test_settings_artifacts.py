"""Settings that artifacts change: what fits is followed, what does not is refused and changes nothing, and no threshold
makes an answer less careful."""

from __future__ import annotations

from pathlib import Path

import pytest
from exo.core.base.errors import ExoError, SettingError
from exo.core.base.settings import BY_NAME, TABLE, Settings, changes
from exo.core.decide.question import MECHANISMS
from hypothesis import given
from hypothesis import strategies as st

WRONG = {
    "settings/context": [
        "context.tail = 1",
        "context.tail = 1.5",
        "context.tail = true",
        "context.tail = nan",
        "context.tail = 1e999",
        "context.tail = [8]",
        "context.tail = 1979-05-27",
        'context.summaries = "nobody"',
        "context.tial = 8",
        "context = 8",
        "tail = 8",
        'tools.ask = "never"',
        "threshold.action.riskier = 0.5",
        "context.tail = 8\ngate.ask = 1",
        "context.tail = 8\ncontext.tail = 9",
        "not TOML",
        'a = "\x00"',
        "a = " + "[" * 50_000,
        ".".join(["a"] * 50_000) + " = 1",
        "\ud800",
    ],
    "threshold/action.riskier": [
        "0.81",
        "0.99",
        "1",
        "0",
        "-1",
        "nan",
        "inf",
        "",
        "often",
        "0,5",
        "9" * 9000,
    ],
    "threshold/turn.end": ["1.0", "0", "true", "0.5\n0.6", "\ud800"],
    "threshold/no.such": ["0.5"],
    "threshold/": ["0.5"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in WRONG for text in WRONG[name]])
def test_what_does_not_fit_is_refused_and_read_as_if_it_were_not_there(
    name: str, text: str
) -> None:
    with pytest.raises(SettingError) as refused:
        changes(name, text)
    assert len(str(refused.value)) < 1000
    made = Settings(Path("f"), {}).under({name: text, "threshold/request.kind": "0.9"})
    assert made.made == {"threshold.request.kind": (0.9, "artifact threshold/request.kind")}


def test_an_artifact_stands_over_the_file_and_under_the_environment() -> None:
    text = 'context.tail = 4  # few\n"context.view" = 100\n'
    saved = Settings(
        Path("f"), {"EXO_CONTEXT_VIEW": "200"}, {"context.tail": 6, "context.settle": 1.0}
    )
    of = saved.under({"settings/context": text})
    assert of.origin("context.tail") == (4, "artifact settings/context")
    assert of.origin("context.view") == (200, "EXO_CONTEXT_VIEW")
    assert of.origin("context.settle") == (1.0, "f")
    assert saved.origin("context.tail") == (6, "f"), "what others see stays as it is"


def test_every_context_setting_and_every_threshold_can_be_an_artifact_and_nothing_else() -> None:
    for row in TABLE:
        value = f'"{row.default}"' if isinstance(row.default, str) else str(row.default).lower()
        if row.name.startswith("context."):
            assert changes("settings/context", f"{row.name} = {value}")[row.name][0] == row.default
        elif row.name.startswith("threshold."):
            assert row.name.removeprefix("threshold.") in MECHANISMS
            assert changes(row.name.replace(".", "/", 1), value)[row.name][0] == row.default
        else:
            for name in ("settings/context", "threshold/turn.end"):
                with pytest.raises(ExoError):
                    changes(name, f"{row.name} = {value}")
            area = row.name.partition(".")[0]
            others = {f"settings/{area}", f"policies/{area}", row.name.replace(".", "/")}
            for name in others - {"settings/context"}:
                assert changes(name, f"{row.name} = {value}") == {}


@given(st.text(max_size=200) | st.text('context.tailv=\n 0189"[]#', max_size=80))
def test_no_text_does_more_than_it_may(text: str) -> None:
    for name in ("settings/context", "threshold/action.riskier", "threshold/turn.end"):
        try:
            found = changes(name, text)
        except SettingError:
            continue
        for key, (value, _) in found.items():
            row = BY_NAME[key]
            assert key.startswith("context.") or key == name.replace("/", ".")
            assert isinstance(value, str) or row.low <= value <= row.high
