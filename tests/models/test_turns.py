"""How long a silence ends what is said: sooner after words that are complete, later after words that break off,
as usual where nobody can say. Real ears and head, sentences of espeak-ng; time is the sound's own, so nothing waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.device.ear import UNJUDGED
from exo.models import local, noises
from exo.models.audio import RATE, to_pcm
from exo.models.decide import Decider
from exo.models.local import LocalBackend
from exo.models.requests import LATEST, SOONEST, Pauses, pauses_of
from exo.models.training import cuts
from exo.models.training.data import Rows, held_out, lent, plain, ruled, seed
from exo.models.training.mechanisms import MECHANISMS
from hypothesis import given
from hypothesis import strategies as st

WHOLE = "Remind me to call my mother tomorrow."
PART = "What is the name of,"
ADAPTIVE, PLAIN = Pauses(adaptive=True), Pauses()
Body = Callable[[LocalBackend], Coroutine[Any, Any, None]]


class Sound:
    """A listener fed with sound at no pace at all: a second of silence takes no second."""

    def __init__(self, listener: Any) -> None:
        self.listener = listener

    async def say(self, text: str) -> None:
        sound = noises.at(noises.by_espeak(text, "en-us"), -24)  # the same sound each time
        loud = np.flatnonzero(np.abs(sound) > 0.01)
        await self.listener.feed(to_pcm(sound[loud[0] : loud[-1] + 1]))

    async def silence(self, seconds: float) -> None:
        for _ in range(round(seconds * 50)):
            await self.listener.feed(bytes(2 * RATE // 50))

    async def thought(self) -> str:
        """Silence until the words are judged, and what they are judged to be."""
        for _ in range(50):
            await self.silence(0.02)
            await self.listener.thought()
            if self.listener.judged is not None:
                break
        return str(self.listener.judged)


@asynccontextmanager
async def listening(backend: LocalBackend) -> AsyncIterator[Sound]:
    listener = await backend.listen("en", True)
    try:
        sound = Sound(listener)
        await sound.silence(0.5)
        yield sound
    finally:
        await listener.close()


@pytest.fixture
def run(files: Any, tmp_path: Path) -> Callable[[Body], None]:
    """Runs a body with the real models."""
    home = Home(tmp_path / "home").make()

    async def whole(body: Body) -> None:
        backend = LocalBackend(home, Settings(home.settings_file))
        try:
            await body(backend)
        finally:
            await backend.close()

    return lambda body: asyncio.run(whole(body))


def test_words_that_break_off_are_waited_for_and_only_so_long(run: Any) -> None:
    async def body(backend: LocalBackend) -> None:
        async with listening(backend) as sound:
            await sound.say(PART)
            assert await sound.thought() == "unfinished"
            await sound.silence(1.2)
            assert sound.listener.speaking(ADAPTIVE)
            await sound.silence(LATEST)
            assert not sound.listener.speaking(ADAPTIVE)
            # whoever goes on after all is heard, and the end is told of the new words
            await sound.say("the hotel in Vienna?")
            assert sound.listener.speaking(ADAPTIVE)

    run(body)


def test_words_that_are_complete_end_sooner_and_nobody_is_cut_off(run: Any) -> None:
    async def body(backend: LocalBackend) -> None:
        async with listening(backend) as sound:
            await sound.say(WHOLE)
            assert await sound.thought() == "finished"
            assert sound.listener.speaking(ADAPTIVE)  # known, and yet not told before SOONEST
            await sound.silence(0.3)
            assert sound.listener.speaking(PLAIN) and not sound.listener.speaking(ADAPTIVE)
            assert "mother" in (await sound.listener.finish()).text

    run(body)


def test_a_judgement_that_comes_late_changes_nothing(run: Any) -> None:
    async def body(backend: LocalBackend) -> None:
        gate, real = asyncio.Event(), backend._complete

        async def slow(text: str, language: str) -> str:
            await gate.wait()
            return await real(text, language)

        backend._complete = slow  # type: ignore[method-assign]
        async with listening(backend) as sound:
            await sound.say(PART)
            await sound.silence(0.6)
            assert sound.listener.speaking(ADAPTIVE)
            await sound.silence(0.6)
            assert not sound.listener.speaking(ADAPTIVE)
            gate.set()
            assert await sound.thought() == "unfinished"
            assert not sound.listener.speaking(ADAPTIVE)

    run(body)


def test_without_the_head_pauses_are_the_usual_ones_and_the_words_come(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(local, "Decider", lambda own: Decider(own, tmp_path / "nowhere"))

    async def body(backend: LocalBackend) -> None:
        async with listening(backend) as sound:
            await sound.say(WHOLE)
            assert await sound.thought() == ""
            await sound.silence(0.3)
            assert sound.listener.speaking(ADAPTIVE)
            await sound.silence(0.3)
            assert not sound.listener.speaking(ADAPTIVE)
            assert "mother" in (await sound.listener.finish()).text

    run(body)
    assert "judge the end of a turn" in capsys.readouterr().err


@given(st.floats(0.1, 10), st.sampled_from(["finished", "unfinished", "", "nonsense"]))
def test_no_pause_is_shorter_or_longer_than_its_bounds(usual: float, said: str) -> None:
    pauses = pauses_of({"pause": repr(usual), "adaptive": "true"})
    assert min(SOONEST, usual) <= pauses.after(said) <= max(LATEST, 2 * usual)
    assert pauses.sooner <= usual <= pauses.later
    assert pauses_of({"pause": repr(usual)}).after(said) == usual
    # the device's own judge, its level, ends a recording within the same bounds
    assert usual <= UNJUDGED * usual <= pauses.later


# ---- the head, and what it learnt from --------------------------------------------------------------------


@pytest.fixture
def decider(tmp_path: Path) -> Decider:
    return Decider(tmp_path)


def test_the_head_does_as_well_as_is_said(decider: Decider) -> None:
    held, told = held_out("turn.end"), decider._meta["heads"]["turn.end"]["held_out_2"]
    for language in ("en", "de", "es"):
        sure = [
            (decider.by_words("turn.end", text, language), label)
            for text, label, of in zip(held.texts, held.labels, held.languages, strict=True)
            if of == language
        ]
        answered = [answer == label for answer, label in sure if answer]
        assert len(answered) / len(sure) == pytest.approx(told[language]["sure"], abs=0.03)
        assert sum(answered) / len(answered) == pytest.approx(
            told[language]["right_sure"], abs=0.03
        )
        assert sum(answered) / len(answered) > 0.8


@pytest.mark.parametrize("text", ["", "...", "\u00bf?", "\ud800", "x" * 20_000, "0 0 0", "um"])
def test_any_text_is_judged(decider: Decider, text: str) -> None:
    assert decider.by_words("turn.end", text, "en") in ("finished", "unfinished", "")


def test_a_language_it_has_not_learnt_and_a_head_that_needs_a_vector_say_nothing(
    decider: Decider,
) -> None:
    assert decider.by_words("turn.end", "Set a timer for the.", "en") == "unfinished"
    assert decider.by_words("turn.end", "Set a timer for the.", "fr") == ""
    assert decider.by_words("request.kind", "Set a timer for ten minutes.", "en") == ""


def test_marks_say_where_a_sentence_may_be_cut() -> None:
    assert list(cuts.labelled("set|a|timer/for ten minutes")) == [
        ("unfinished", "set"),
        ("unfinished", "set a"),
        ("finished", "set a timer"),
        ("finished", "set a timer for ten minutes"),
    ]
    assert list(cuts.labelled("let|me|")) == [("unfinished", "let"), ("unfinished", "let me")]
    assert cuts.of_clinc("set a timer for ten", 4) == "set a timer for"
    assert cuts.of_clinc("set a timer for ten", 3) is None  # it may be complete
    assert cuts.of_clinc("what is it for", 4) is None  # it is not cut


class NoClinc:
    """CLINC150 is not ours to ship: one sentence of its shape, cut as all of them are."""

    parts = {"train": Rows(["set a timer for nine minutes"], ["timer"])}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nothing_held_out_is_learnt_from_by_any_way(mechanism: str) -> None:
    own, held = seed(mechanism)
    rows = own + lent(mechanism) + ruled(mechanism, NoClinc())  # type: ignore[arg-type]
    assert len(rows.texts) == len(rows.groups) == len(rows.languages) >= 150
    learnt = {plain(text) for text in rows.texts}
    for text in [*held.texts, *held_out(mechanism).texts]:
        assert plain(text) not in learnt
