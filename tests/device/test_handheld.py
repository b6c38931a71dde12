"""The loop with parts that only write down what they are told, on a clock that a test moves."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from exo.device import events as ev

if TYPE_CHECKING:
    from conftest import Bench


def test_a_press_listens_and_has_the_rest_prefilled_at_once(bench: Bench) -> None:
    assert bench.do(ev.Button("talk", True)) == "listening"
    assert bench.ear.names() == ["start"]
    assert bench.link.names() == ["prefill"]
    bench.pass_(1)
    assert bench.do(ev.Button("talk", False)) == "thinking"
    assert bench.ear.names() == ["start", "finish"]
    assert bench.do(ev.Heard(1, "what time is it")) == "thinking"
    assert bench.link.told[-1] == ("send", 1, "what time is it", "voice")
    assert "what time is it" in bench.screen


def test_the_first_sentence_is_spoken_while_the_second_streams(bench: Bench) -> None:
    bench.ask()
    assert bench.delta("It is Paris. That") == "reply"
    assert bench.voice.told[-1] == ("say", 1, "It is Paris.", 0)
    bench.delta(" is a city")
    assert bench.complete("It is Paris. That is a city.") == "reply"
    assert bench.voice.told[-2:] == [("say", 1, "That is a city.", 9), ("end", 1)]
    bench.do(ev.Uttered(1, 0))
    bench.pass_(100)
    assert bench.device.machine.state == "reply"  # it still speaks
    bench.do(ev.Spoken(1))
    assert bench.pass_(9) == "reply"
    assert bench.pass_(2) == "idle"


def test_one_button_shows_what_an_answer_stands_on(bench: Bench) -> None:
    bench.ask("what is my sister called?")
    message = {"id": "m1", "role": "assistant", "text": "You told me: My sister is called Zelmira"}
    bench.wire("message.completed", turn="t1", message=message)
    ended = {"turn": "t1", "stop_reason": "end", "usage": {}, "recalled": ["fact-1", "fact-2"]}
    assert bench.wire("turn.completed", **ended) == "reply"
    bench.press("ok", 0.1)
    assert bench.link.told[-1] == ("why", 1, "fact-1")
    day = 1_700_000_000_000
    said = {"id": "e", "kind": "utterance", "ts": day, "text": "Remember that"}
    kept = {"id": "f", "kind": "belief", "ts": day, "text": "My sister is called Zelmira"}
    found = {"text": "My sister is called Zelmira\n", "evidence": [said, kept]}
    assert bench.do(ev.Called("why", 1, found)) == "why"
    assert bench.screen.splitlines() == [
        "Why", "My sister is called", "Zelmira", "Tue 14 Nov, you said:", "Remember that",
        "Tue 14 Nov: kept",
    ]  # fmt: skip
    assert bench.press("back", 0.1) == "idle"


def test_why_that_is_not_known_is_told(bench: Bench) -> None:
    bench.ask()
    bench.complete("You told me.")
    assert bench.do(ev.Called("why", 1, None, "service", "it is gone")) == "notice"
    assert "gone" in bench.screen


def test_a_press_while_it_speaks_stops_all_and_listens(bench: Bench) -> None:
    bench.ask()
    bench.delta("A long answer. And")
    assert bench.do(ev.Button("talk", True)) == "listening"
    assert bench.link.names()[-2:] == ["interrupt", "prefill"]
    assert bench.voice.names()[-1] == "cancel"
    assert bench.delta("more of the old turn. Yes") == "listening"
    assert bench.voice.names()[-1] == "cancel"  # nothing of it is spoken any more
    bench.pass_(1)
    bench.do(ev.Button("talk", False), ev.Heard(2, "next"))
    assert bench.link.told[-1] == ("send", 2, "next", "voice")
    bench.wire("turn.completed", turn="t1", stop_reason="interrupted", usage={})
    assert bench.device.machine.state == "thinking"
    bench.wire("turn.started", turn="t2")
    assert bench.delta("new", turn="t2") == "reply"
    assert bench.device.reply.text == "new"


def test_a_tap_while_it_speaks_only_stops_it(bench: Bench) -> None:
    bench.ask()
    bench.delta("A long answer. And")
    assert bench.press(seconds=0.1) == "reply"
    assert bench.ear.names()[-1] == "cancel"
    assert "(stopped)" in bench.screen
    assert bench.pass_(11) == "idle"


def test_a_short_press_shows_the_hint_where_talk_is_to_be_held(bench: Bench) -> None:
    bench.device.apply("listen.mode", "hold")
    assert bench.press(seconds=0.1) == "notice"
    assert "Hold the button" in bench.screen
    assert bench.ear.names() == ["start", "cancel"]
    assert bench.pass_(20) == "idle"


def test_the_longest_recording_ends_itself(bench: Bench) -> None:
    bench.do(ev.Button("talk", True))
    assert bench.pass_(61) == "thinking"
    assert bench.ear.names() == ["start", "finish"]
    assert bench.do(ev.Button("talk", False), ev.Heard(1, "long")) == "thinking"
    assert bench.link.names()[-1] == "send"


def test_silence_is_told(bench: Bench) -> None:
    bench.press()
    assert bench.do(ev.Heard(1, "")) == "notice"
    assert "I heard nothing." in bench.screen
    assert "send" not in bench.link.names()


@pytest.mark.parametrize("part", ["microphone", "models"])
def test_a_recording_that_fails_is_told_and_the_next_press_works(bench: Bench, part: str) -> None:
    bench.press()
    assert bench.do(ev.Deaf(1, part, "it burnt")) == "notice"
    assert "it burnt" in bench.screen.replace("\n", " ")
    assert bench.do(ev.Button("talk", True)) == "listening"


def test_exod_that_dies_in_a_turn_is_told(bench: Bench) -> None:
    bench.ask()
    bench.delta("Half a sen")
    assert bench.do(ev.Link("core", False, "Connection refused")) == "notice"
    assert "Connection refused" in bench.screen.replace("\n", " ")
    assert bench.pass_(60) == "idle"
    assert "exod is away" in bench.screen
    bench.do(ev.Link("core", True))
    assert "Hold to talk" in bench.screen


def test_a_refused_turn_gives_its_reason(bench: Bench) -> None:
    bench.do(ev.Typed("x"))
    assert bench.do(ev.Called("send", 1, None, "storage", "the disk is full")) == "notice"
    assert "the disk is full" in bench.screen.replace("\n", " ")


def test_a_turn_that_fails_gives_its_reason(bench: Bench) -> None:
    bench.ask()
    bench.wire("notice", level="error", code="model_gone", text="the model went away")
    bench.wire("turn.completed", turn="t1", stop_reason="error", usage={})
    assert bench.device.machine.state == "notice"
    assert "the model went away" in bench.screen.replace("\n", " ")


def test_a_turn_that_fails_half_way_keeps_its_words_and_then_says_why(bench: Bench) -> None:
    bench.ask()
    bench.delta("Half a sentence")
    bench.wire("notice", level="error", code="model_gone", text="the model went away")
    bench.wire("turn.completed", turn="t1", stop_reason="error", usage={})
    assert bench.device.machine.state == "reply"
    bench.do(ev.Spoken(1))
    assert bench.pass_(4) == "notice"
    assert "the model went away" in bench.screen.replace("\n", " ")


def test_no_answer_in_time_ends_the_wait(bench: Bench) -> None:
    bench.ask()
    bench.pass_(149)
    bench.wire("tool.started", turn="t1", tool="read_file")
    assert bench.pass_(149) == "thinking"
    assert "Using read_file" in bench.screen
    assert bench.pass_(2) == "notice"
    assert bench.link.names()[-1] == "interrupt"


def test_a_turn_accepted_after_it_was_given_up_is_interrupted(bench: Bench) -> None:
    bench.do(ev.Typed("x"))
    assert bench.do(ev.Button("back", True)) == "idle"
    count = bench.link.names().count("interrupt")
    bench.do(ev.Called("send", 1, {"accepted": True, "turn": "t1"}))
    assert bench.link.names().count("interrupt") == count + 1


def test_speech_that_fails_leaves_the_reply_to_read_and_is_told_once(bench: Bench) -> None:
    for number in (1, 2):
        bench.do(ev.Typed("x"))
        bench.wire("turn.started", turn="t1")
        bench.delta("Some words here. More")
        ticket = bench.device.reply.voice
        assert bench.do(ev.Mute(ticket, "speaker", "there is none")) == "reply"
        assert bench.complete("Some words here. More") == "reply"
        state = bench.pass_(4)
        assert state == ("notice" if number == 1 else "reply")
    assert bench.pass_(20) == "idle"


def test_notices_wait_for_their_turn_and_are_spoken(bench: Bench) -> None:
    bench.do(ev.Button("talk", True))
    bench.wire("notice", session="", level="info", code="timer", text="Tea is ready")
    assert bench.device.machine.state == "listening"
    assert bench.do(ev.Button("back", True)) == "notice"
    assert "Tea is ready" in bench.screen
    assert ("say", 1, "Tea is ready") in bench.voice.told
    bench.do(ev.Spoken(1))
    assert bench.press("ok", 0.1) == "idle"


def test_events_of_other_sessions_are_not_ours(bench: Bench) -> None:
    bench.ask()
    bench.wire("message.delta", session="s2", turn="t1", message="m", text="other")
    bench.wire("notice", session="s2", level="error", code="x", text="other")
    assert bench.device.machine.state == "thinking"
    assert bench.delta("mine") == "reply"
    assert bench.device.reply.text == "mine"


def test_scrolling_by_hand_rests_until_the_end_is_reached(bench: Bench) -> None:
    bench.voice.on = False
    bench.ask()
    bench.delta("".join(f"word{number} here\n" for number in range(12)))
    assert "word11" in bench.screen
    bench.do(ev.Button("up", True), ev.Button("up", False))
    assert "word11" not in bench.screen
    bench.delta("word12 here\n")
    assert "word12" not in bench.screen
    for _ in range(2):
        bench.do(ev.Button("down", True), ev.Button("down", False))
    bench.delta("word13 here\n")
    assert "word13" in bench.screen


def test_a_held_arrow_repeats(bench: Bench) -> None:
    bench.voice.on = False
    bench.ask()
    bench.delta("".join(f"word{number} here\n" for number in range(20)))
    bench.do(ev.Button("up", True))
    for _ in range(20):
        bench.pass_(0.12)
    assert "word0 " in bench.screen
    bench.do(ev.Button("up", False))


def test_the_page_follows_the_voice(bench: Bench) -> None:
    bench.ask()
    sentences = [
        f"This is sentence number {word}."
        for word in ["one", "two", "three", "four", "five", "six"]
    ]
    bench.complete(" ".join(sentences))
    assert "one" in bench.screen
    place = [told[3] for told in bench.voice.told if told[0] == "say"][4]
    bench.do(ev.Uttered(1, place))
    assert "five" in bench.screen
    assert "one" not in bench.screen


def test_the_last_reply_can_be_read_again(bench: Bench) -> None:
    bench.ask()
    bench.complete("It is Paris.")
    bench.do(ev.Spoken(1))
    assert bench.pass_(11) == "idle"
    assert bench.press("ok", 0.1) == "reply"
    assert "It is Paris." in bench.screen


def test_back_stops_first_and_leaves_second(bench: Bench) -> None:
    bench.ask()
    bench.delta("Words. And")
    assert bench.press("back", 0.1) == "reply"
    assert bench.link.names()[-1] == "interrupt"
    assert bench.press("back", 0.1) == "idle"


def test_a_frame_that_did_not_change_is_not_shown_again(bench: Bench) -> None:
    before = bench.panel.updates
    for _ in range(50):
        bench.pass_(0.5)
    assert bench.panel.updates == before
    bench.pass_(60)
    assert bench.panel.updates == before + 1


def test_a_panel_that_fails_stops_nothing_and_comes_back(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.panel.broken = "no answer at 0x3C"
    bench.ask()
    bench.delta("hello")
    assert capsys.readouterr().err.count("0x3C") == 1
    bench.panel.broken = ""
    bench.pass_(1)
    assert bench.panel.shows(bench.device.pages.draw(bench.device.view()).image)


def test_a_terminal_gets_its_own_hints(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(toggles=True)
    assert "Press to talk" in bench.screen
    bench.do(ev.Button("talk", True))
    assert "Press again to send" in bench.screen


def test_quit_ends_the_loop_dark(bench: Bench) -> None:
    bench.device.post(ev.Quit())
    bench.device.run()
    assert bench.device.machine.state == "off"
    assert not bench.panel.image.getbbox()


@pytest.mark.parametrize("seed", range(10))
def test_whatever_happens_time_leads_back_to_idle(
    make_bench: Callable[..., Bench], seed: int
) -> None:
    """Random events of every kind, in any order, malformed ones among them."""
    chance, bench = random.Random(seed), make_bench()
    for _ in range(200):
        ticket = chance.randrange(4)
        turn, session = chance.choice(["t1", "t2", ""]), chance.choice(["s1", "s2", ""])
        kinds = [
            "turn.started",
            "message.delta",
            "message.completed",
            "turn.completed",
            "notice",
            "x",
        ]
        body: Any = {"turn": turn, "message": "m", "text": "Some text. And", "level": "error"}
        if chance.random() < 0.3:
            body["message"] = {"id": "m", "role": "assistant", "text": "Whole. Text"}
        bench.do(
            chance.choice(
                [
                    ev.Button(
                        chance.choice(["talk", "up", "ok", "back", "no"]), chance.random() < 0.5
                    ),
                    ev.Typed(chance.choice(["", "hi", "\u200b", "x" * 10_000])),
                    ev.Wire({"type": chance.choice(kinds), "session": session, "body": body}),
                    ev.Wire(
                        {
                            "type": "message.delta",
                            "session": "s1",
                            "body": chance.choice([None, {}]),
                        }
                    ),
                    ev.Link(chance.choice(["core", "models"]), chance.random() < 0.5, "why"),
                    ev.Called(
                        "send", ticket, chance.choice([None, {}, {"turn": "t1"}]), "x", "why"
                    ),
                    ev.Level(ticket, chance.random()),
                    ev.Heard(ticket, chance.choice(["", "words"])),
                    ev.Deaf(ticket, "models", "why"),
                    ev.Uttered(ticket, chance.randrange(50)),
                    ev.Spoken(ticket),
                    ev.Mute(ticket, "models", "why"),
                ]
            )
        )
        bench.pass_(chance.choice([0, 0.1, 1, 30]))
    bench.do(ev.Button("up", False))
    for _ in range(40):
        bench.pass_(160)
    assert bench.device.machine.state == "idle"


@pytest.mark.parametrize("value", ["x", True, float("nan"), float("inf"), None, []])
def test_a_setting_of_another_kind_is_not_followed(
    make_bench: Callable[..., Bench], value: Any
) -> None:
    now = {"screen.sleep": 60.0, "screen.brightness": 100, "voice.volume": 80, "voice.mute": False}
    bench = make_bench(options=now)
    rows = {name: {"value": value} for name in now if name != "voice.mute"}
    bench.do(ev.Called("config", 0, {"settings": rows | {"voice.mute": {"value": 3}}}))
    assert bench.device.options == now
    rows = {"screen.sleep": {"value": 30}, "screen.brightness": {"value": 50.0}}
    bench.do(ev.Called("config", 0, {"settings": rows}))
    assert bench.device.options == now | {"screen.sleep": 30, "screen.brightness": 50.0}
    assert bench.pass_(1) == "idle"
