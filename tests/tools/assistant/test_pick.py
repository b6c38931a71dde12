"""Orders that no form takes: the slots of a tool that a decision names, and what is never run."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from exo.core.decide.question import MECHANISMS
from exo.core.engine.reader import Past, Plan
from exo.models.training.tools import phrasings
from exo.tools.assistant.offer import asks
from exo.tools.assistant.pick import ASK, RUN, pick
from exo.tools.assistant.rules import plan
from exo.tools.assistant.tongue import NAMES, language
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime.datetime(2026, 11, 30, 15, 0, tzinfo=datetime.UTC)  # a Monday
TOOLS = [name for name in MECHANISMS["request.tool"].options if name != "none"]
SURE, UNSURE = RUN + 0.01, ASK + 0.01


def after(said: str, asked: Plan) -> Past:
    """The turn that asked this."""
    return Past(said, asked.calls, asked.said)


YES = {"en": ("yes please", "no thanks"), "de": ("ja, mach das", "nein"), "es": ("sí", "no")}

# said | tool | the call
FILLED: list[tuple[str, str, tuple[str, dict[str, Any]]]] = [
    (
        "the rice has to cook for twelve minutes so count it",
        "timer",
        ("timer", {"seconds": 720, "label": "rice"}),
    ),
    (
        "die Eier brauchen sechs Minuten, achte auf die Zeit",
        "timer",
        ("timer", {"seconds": 360, "label": "Eier"}),
    ),
    ("cronométrame media hora", "timer", ("timer", {"seconds": 1800})),
    (
        "i mustn't oversleep, six it is, at six",
        "alarm",
        ("reminder", {"at": "2026-12-01T06:00", "text": "alarm"}),
    ),
    (
        "schmeiß mich um halb acht aus dem Bett",
        "alarm",
        ("reminder", {"at": "2026-12-01T07:30", "text": "Wecker"}),
    ),
    (
        "jog my memory at 6:45 to put the bins out",
        "reminder",
        ("reminder", {"at": "2026-11-30T18:45", "text": "put the bins out"}),
    ),
    (
        "insísteme a las seis con lo de la caldera",
        "reminder",
        ("reminder", {"at": "2026-11-30T18:00", "text": "lo de la caldera"}),
    ),
    (
        "fürs Protokoll: der Zähler steht auf 20455",
        "note",
        ("note", {"text": "der Zähler steht auf 20455"}),
    ),
    (
        "im Hinterkopf behalten: ich parke auf Ebene drei",
        "remember",
        ("remember", {"text": "Ich parke auf Ebene drei"}),
    ),
    ("pull up what i told you about my old flat", "recall", ("recall", {"query": "old flat"})),
    ("a good deal louder would help", "volume.up", ("device", {"action": "volume", "delta": 10})),
    (
        "bring it down to 20 percent for the night",
        "volume.set",
        ("device", {"action": "volume", "value": 20}),
    ),
    (
        "brillo que sea la mitad",
        "brightness.set",
        ("device", {"action": "brightness", "value": 50}),
    ),
    ("the eggs want two minutes on top", "add_time", ("add_time", {"seconds": 120})),
    ("will you last the night", "battery", ("device", {"action": "battery"})),
]


@pytest.mark.parametrize(("said", "tool", "call"), FILLED)
def test_what_is_sure_runs_with_its_slots_and_what_is_not_after_a_yes(
    said: str, tool: str, call: tuple[str, dict[str, Any]]
) -> None:
    assert not plan(said, NOW).calls  # else it would not come here
    sure, unsure = pick(said, tool, SURE, NOW), pick(said, tool, UNSURE, NOW)
    assert sure is not None and sure.calls == [call]
    assert unsure is not None and asks(unsure) and unsure.said.endswith("?")
    yes, no = YES[unsure.language]
    asked = after(said, unsure)
    assert plan(yes, NOW, asked).calls == [call]
    refused = plan(no, NOW, asked)
    assert not refused.calls and refused.said
    assert not plan(f"{yes} but why", NOW, asked).calls


@pytest.mark.parametrize(
    ("said", "tool", "args"),
    [
        ("purge my old address", "forget", {"id": "my old address"}),
        ("the eggs are done, off with that timer", "cancel", {"what": "timer"}),
        ("das will ich doch nicht, zurück", "undo", {}),
    ],
)
def test_what_cannot_be_undone_is_asked_about_however_sure(
    said: str, tool: str, args: dict[str, Any]
) -> None:
    asked = pick(said, tool, 1.0, NOW)
    assert asked is not None and asks(asked)
    done = plan(YES[asked.language][0], NOW, after(said, asked))
    assert done.calls == [(tool, args)]


def test_a_missing_time_is_asked_for_alone() -> None:
    asked = pick("keep an eye on the clock for the eggs", "timer", SURE, NOW)
    assert asked is not None and asked.said == language("en").say["how_long"]
    past = after("keep an eye on the clock for the eggs", asked)
    assert plan("nine minutes", NOW, past).calls == [("timer", {"seconds": 540, "label": "eggs"})]
    asked = pick("jog my memory to ring school", "reminder", SURE, NOW)
    assert asked is not None and asked.said == language("en").say["when"]
    past = after("jog my memory to ring school", asked)
    want = {"at": "2026-12-01T08:00", "text": "ring school"}
    assert plan("tomorrow at eight", NOW, past).calls == [("reminder", want)]
    # a time that is said and not understood is no missing one
    assert pick("bug me on the 31st of february to ring school", "reminder", SURE, NOW) is None


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("please don't wake me at six", "alarm"),
        ("she set a countdown of ten minutes", "timer"),
        ("why does the alarm ring at six", "alarm"),
        ("yesterday i needed ten minutes", "timer"),
        ("explain how a battery works", "battery"),
        ("make the living room darker", "brightness.down"),
        ("the oven needs ten minutes", "timer"),
        ("gestern hat der Timer zehn Minuten gebraucht", "timer"),
        ("stell bloß keinen Timer auf zehn Minuten", "timer"),
        ("no me despiertes a las seis", "alarm"),
        ("la tele está muy alta", "volume.down"),
        ("my new size is 43", "note"),
        ("ten minutes or twenty minutes", "timer"),
    ],
)
def test_what_denies_asks_or_tells_runs_nothing_however_sure(said: str, tool: str) -> None:
    assert pick(said, tool, 1.0, NOW) is None


@given(
    text=st.one_of(st.sampled_from(phrasings().texts), st.text(max_size=60)),
    tool=st.sampled_from(TOOLS),
    sure=st.floats(0, 1),
)
def test_no_sentence_breaks_it_and_nothing_runs_that_is_not_sure(
    text: str, tool: str, sure: float
) -> None:
    found = pick(text, tool, sure, NOW)
    if sure <= ASK:
        assert found is None
    elif found is not None:
        assert len(found.calls) == 1 and asks(found) == bool(found.said)
        assert asks(found) or sure > RUN and tool not in ("forget", "cancel", "undo")
        if asks(found) and "tool" in found.calls[0][1]:
            yes = plan(YES[found.language][0], NOW, after(text, found))
            assert len(yes.calls) == 1 and not asks(yes)


def test_every_tool_can_be_asked_about_in_every_language() -> None:
    from exo.tools.assistant.pick import _data

    for name in NAMES:
        assert set(_data()[name]["shall"]) == set(TOOLS)
        assert not set(_data()[name]["shall"].values()) & {""}
