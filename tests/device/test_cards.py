"""Approvals and questions: what allows, what denies, and what does neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from exo.device import events as ev

if TYPE_CHECKING:
    from conftest import Bench

PUSH = "git push origin main: others see it, no undo"


def ask(bench: Bench, request: str = "r1", seconds: float = 120, **more: Any) -> str:
    body = {
        "request": request,
        "summary": PUSH,
        "risk": "high",
        "tool": "bash",
        "args": {"command": "git push origin main"},
        "expires": bench.clock.now_ms() + round(1000 * seconds),
    }
    state = bench.wire("approval.requested", **body | more)
    bench.pass_(0.5)
    return state


def answers(bench: Bench) -> list[tuple[str, str]]:
    return [(body["request"], body["choice"]) for body in bench.calls("approval.respond")]


def hold(bench: Bench, name: str = "ok", seconds: float = 0.9) -> None:
    bench.do(ev.Button(name, True))
    for _ in range(round(seconds * 10)):
        bench.pass_(0.1)
    bench.do(ev.Button(name, False))


def test_a_held_ok_allows_and_the_turn_goes_on(bench: Bench) -> None:
    bench.ask("push it")
    assert ask(bench) == "card"
    assert "git push origin main:" in bench.screen and "2:00" in bench.screen
    bench.do(ev.Button("ok", True))
    bench.pass_(0.41)
    assert bench.device.view().progress == 0.5
    bench.pass_(0.34)
    assert answers(bench) == []
    bench.pass_(0.1)
    assert answers(bench) == [("r1", "allow")]
    assert bench.calls("approval.respond")[0]["by"] == "exo-device"
    assert bench.state == "thinking"
    bench.do(ev.Button("ok", False))
    assert bench.delta("Pushed. And") == "reply"
    assert "interrupt" not in bench.link.names()


@pytest.mark.parametrize("seconds", [0.05, 0.3, 0.7])
def test_a_shorter_press_allows_nothing_and_says_so(bench: Bench, seconds: float) -> None:
    ask(bench)
    hold(bench, seconds=seconds)
    assert answers(bench) == [] and bench.state == "card"
    assert "Keep OK down" in bench.screen


def test_a_tap_of_back_denies(bench: Bench) -> None:
    bench.ask("push it")
    ask(bench)
    assert bench.tap("back") == "thinking"
    assert answers(bench) == [("r1", "deny")]
    assert "interrupt" not in bench.link.names()


def test_a_press_that_was_down_already_is_not_for_the_card(bench: Bench) -> None:
    bench.do(ev.Button("ok", True))
    ask(bench)
    for _ in range(20):
        bench.pass_(0.1)
    bench.do(ev.Button("ok", False))
    assert answers(bench) == [] and bench.state == "card"
    hold(bench)
    assert answers(bench) == [("r1", "allow")]


@pytest.mark.parametrize("name", ["ok", "back"])
def test_a_press_in_the_moment_of_its_appearing_is_a_reflex(bench: Bench, name: str) -> None:
    bench.wire(
        "approval.requested", request="r1", summary="x", tool="bash", args={},
        expires=bench.clock.now_ms() + 60_000,
    )  # fmt: skip
    bench.pass_(0.2)
    hold(bench, name, 2.0)
    assert answers(bench) == [] and bench.state == "card"


def test_a_press_that_lights_the_screen_does_nothing(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(options={"screen.sleep": 30.0})
    bench.pass_(1)
    bench.pass_(31)
    assert bench.device.dark and bench.panel.level == 0
    ask(bench)
    assert not bench.device.dark  # a card lights the screen
    bench.tap("back")
    assert answers(bench) == [("r1", "deny")]
    bench.pass_(1)
    bench.pass_(31)
    assert bench.device.dark
    for name in ("talk", "ok", "back", "up", "down"):
        hold(bench, name, 2.0)
        assert bench.state == "idle" and bench.ear.told == []
        assert not bench.device.dark and bench.panel.level == 1
        bench.pass_(1)
        bench.pass_(31)
        assert bench.device.dark


@pytest.mark.parametrize("said", ["no", "No.", "nein danke", "Stop!", "don't do it"])
@pytest.mark.parametrize("spoken", [True, False])
def test_words_can_deny(bench: Bench, said: str, spoken: bool) -> None:
    bench.ask("push it")
    ask(bench)
    say(bench, said, spoken)
    assert answers(bench) == [("r1", "deny")]
    assert bench.state == "thinking" and "interrupt" not in bench.link.names()


def say(bench: Bench, words: str, spoken: bool) -> None:
    if spoken:
        bench.press("talk", 1.0)
        bench.do(ev.Heard(bench.device.talk.ticket, words))
    else:
        bench.do(ev.Typed(words))


@pytest.mark.parametrize("said", ["yes", "allow", "ok", "ja", "always", "allow_always", "y", ""])
@pytest.mark.parametrize("spoken", [True, False])
def test_no_words_allow(bench: Bench, said: str, spoken: bool) -> None:
    bench.ask("push it")
    ask(bench)
    say(bench, said, spoken)
    assert answers(bench) == [] and bench.state == "card"
    assert not said or "Only by button" in bench.screen
    assert [told[0] for told in bench.link.told].count("send") == 1


def test_always_is_a_choice_of_its_own_and_only_where_exod_offers_it(bench: Bench) -> None:
    ask(bench)
    bench.tap(*["down"] * 20)
    assert "deny" in bench.screen and "always" not in bench.screen
    hold(bench)
    assert answers(bench) == []  # held on deny
    bench.tap("back")
    ask(bench, "r2", always=True)
    bench.tap(*["down"] * 20)
    assert "Hold OK: always" in bench.screen
    bench.tap("ok")
    assert len(answers(bench)) == 1
    hold(bench)
    assert answers(bench)[-1] == ("r2", "allow_always")


@pytest.mark.parametrize("offered", ["yes", 1, None, [True], "true"])
def test_what_is_no_clear_offer_is_none(bench: Bench, offered: object) -> None:
    ask(bench, always=offered)
    bench.tap(*["down"] * 20)
    assert "always" not in bench.screen


def test_the_row_that_denies_is_chosen_by_a_tap(bench: Bench) -> None:
    ask(bench)
    bench.tap(*["down"] * 20, "ok")
    assert answers(bench) == [("r1", "deny")]


def test_several_wait_for_each_other(bench: Bench) -> None:
    for number in (1, 2, 3):
        ask(bench, f"r{number}", summary=f"thing {number}")
    for number, choice in ((1, "allow"), (2, "deny"), (3, "allow")):
        assert f"thing {number}" in bench.screen
        hold(bench) if choice == "allow" else bench.tap("back")
        bench.pass_(0.5)
    assert answers(bench) == [("r1", "allow"), ("r2", "deny"), ("r3", "allow")]
    assert bench.state == "idle"


def test_one_told_twice_is_asked_once(bench: Bench) -> None:
    ask(bench)
    ask(bench)
    bench.tap("back")
    assert bench.state == "idle" and len(answers(bench)) == 1


def test_one_that_was_answered_elsewhere_goes_away_and_is_told(bench: Bench) -> None:
    ask(bench)
    bench.do(ev.Button("ok", True))
    bench.pass_(0.5)
    assert bench.wire("approval.resolved", request="r1", choice="deny", by="tui") == "notice"
    assert "Answered elsewhere: denied." in bench.screen.replace("\n", " ")
    bench.pass_(1)
    bench.do(ev.Button("ok", False))
    assert answers(bench) == []


def test_its_time_is_shown_and_runs_out(bench: Bench) -> None:
    bench.ask("push it")
    ask(bench, seconds=9.5)
    assert "0:09" in bench.screen
    assert bench.pass_(9) == "thinking"
    bench.complete("I did not push.")
    bench.do(ev.Spoken(1))
    bench.pass_(4)
    assert "Nobody answered in time: denied." in bench.screen.replace("\n", " ")
    bench.wire("approval.resolved", request="r1", choice="deny", by="timeout")
    bench.tap("ok")
    assert bench.state == "idle" and answers(bench) == []


def test_the_clock_that_is_set_neither_ends_nor_stretches_it(bench: Bench) -> None:
    ask(bench, seconds=60)
    bench.clock.set(86_400)
    assert bench.pass_(30) == "card"
    bench.clock.set(-200_000)
    bench.pass_(31)
    assert bench.state != "card"


def fail(bench: Bench, code: str) -> None:
    """exod refuses the last answer."""
    ticket = next(told[2] for told in reversed(bench.link.told) if told[:2] == ("call", "answer"))
    bench.do(ev.Called("answer", ticket, None, code, "Connection refused"))


def test_an_answer_that_did_not_arrive_is_told_and_asked_for_again(bench: Bench) -> None:
    ask(bench)
    hold(bench)
    fail(bench, "service")
    assert "Connection refused" in bench.screen.replace("\n", " ")
    bench.tap("ok")
    bench.pass_(0.5)
    assert bench.state == "card"
    hold(bench)
    fail(bench, "already_answered")
    assert "already" in bench.screen
    bench.tap("ok")
    assert bench.pass_(0.5) == "idle"
    bench.wire("question.asked", question="q1", text="Which draft?")
    say(bench, "both", spoken=False)
    fail(bench, "service")
    bench.tap("ok")
    assert bench.pass_(0.5) == "question"
    say(bench, "the long one", spoken=False)
    said = [body["answer"] for body in bench.calls("question.answer")]
    assert said == ["both", "the long one"]


def test_a_denial_that_did_not_arrive_leads_away_all_the_same(bench: Bench) -> None:
    ask(bench)
    bench.tap("back")
    fail(bench, "service")
    bench.tap("ok")
    assert bench.pass_(5) == "idle"


def test_one_that_comes_while_letters_are_typed_is_heard(bench: Bench) -> None:
    bench.wire("question.asked", question="q1", text="Which draft?")
    bench.pass_(0.5)
    bench.tap("ok")
    assert bench.state == "entry"
    bench.voice.chimes.clear()
    assert ask(bench) == "entry"
    assert bench.voice.chimes == ["approval"]


def test_a_question_without_words_is_called_one(bench: Bench) -> None:
    for number, text in enumerate(("", " \n ", None, "\u200b\u202e")):
        bench.wire("question.asked", question=f"q{number}", text=text, options=["", " ", "a"])
        bench.pass_(0.5)
        assert bench.state == "question"
        page: Any = bench.device.page
        assert "None" not in page.text and page.choices[0] == "a"
        assert bench.tap("back") == "idle"
    bench.tap("down")
    assert bench.screen.splitlines()[2:5] == ["Question"] * 3


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"request": ""},
        {"request": "r", "args": None, "expires": "soon"},
        {"request": "r", "summary": None, "args": [1], "expires": -5},
        {"request": "r", "summary": "x" * 9000, "args": {"a": "y" * 90_000, "b": None}},
    ],
)
def test_a_request_of_any_shape_can_be_left(bench: Bench, body: dict[str, Any]) -> None:
    bench.wire("approval.requested", **body)
    bench.pass_(0.5)
    assert bench.state in ("card", "idle")
    bench.tap("back")
    assert bench.state == "idle"


def test_nothing_hides_on_a_card(bench: Bench) -> None:
    hidden = {"command": "ls\nrm -rf ~ #\u202e\u200bok"}
    ask(bench, summary="ls\u202e", args=hidden)
    page = bench.device.page
    assert page is not None
    text = page.aloud()
    assert "ls<202e>" in text and "ls ¶ rm -rf ~ #<202e><200b>ok" in text


def test_the_begin_and_the_end_of_a_long_argument_are_shown(bench: Bench) -> None:
    ask(bench, args={"command": "echo " + "x" * 9000 + "; rm -rf ~"})
    page = bench.device.page
    assert page is not None and "command: echo xx" in page.aloud() and "x; rm -rf ~" in page.aloud()


def test_nothing_is_cut_from_a_card_in_silence(bench: Bench) -> None:
    for more in (
        {"summary": "x" * 9000 + "END"},
        {"args": {"x" * 9000: "END"}},
        {"tool": "x" * 9000},
    ):
        ask(bench, **more)
        page = bench.device.page
        assert page is not None
        assert "END" in page.aloud() or "…(" in page.aloud()
        assert "…(" in page.aloud()
        bench.tap("back")


def test_a_card_waits_until_the_person_has_spoken(bench: Bench) -> None:
    bench.do(ev.Button("talk", True))
    bench.pass_(0.5)
    assert ask(bench) == "listening"
    bench.do(ev.Button("talk", False))
    bench.pass_(0.1)
    assert bench.state == "card"


def test_a_question_is_answered_by_a_choice_a_word_or_letters(bench: Bench) -> None:
    for number, way in enumerate(("choice", "spoken", "typed", "letters")):
        id_ = f"q{number}"
        text, options = "Which draft?", ["The short one", "The long one"]
        assert bench.wire("question.asked", question=id_, text=text, options=options) == "question"
        bench.pass_(0.5)
        assert "Which draft?" in bench.screen and "The short one" in bench.screen
        if way == "choice":
            bench.tap("down", "ok")
        elif way == "letters":
            bench.tap("down", "down")
            assert "Answer by letters" in bench.screen
            assert bench.tap("ok") == "entry"
            bench.tap("ok")
            hold(bench)
        else:
            say(bench, "the short one, please", way == "spoken")
        assert bench.calls("question.answer")[-1]["question"] == id_
        assert bench.state == "idle"
    said = [body["answer"] for body in bench.calls("question.answer")]
    assert said == ["The long one", "the short one, please", "the short one, please", "e"]


def test_a_question_is_left_for_later_and_found_in_the_menu(bench: Bench) -> None:
    bench.wire("question.asked", question="q1", text="Which draft?")
    bench.pass_(0.5)
    assert bench.tap("back") == "idle"
    bench.pass_(10)
    assert bench.state == "idle"
    assert bench.tap("down") == "menu"
    assert bench.screen.splitlines()[2] == "Which draft?"
    assert bench.tap("ok") == "question"
    say(bench, "both", spoken=False)
    assert bench.calls("question.answer") == [{"question": "q1", "answer": "both"}]


def test_one_that_nobody_sees_does_not_light_the_screen_for_ever(bench: Bench) -> None:
    bench.wire("question.asked", question="q1", text="Which draft?")
    assert bench.pass_(301) == "idle"
    assert bench.pass_(301) == "idle"
    assert bench.device.cards.later


def test_what_would_act_comes_before_what_only_asks(bench: Bench) -> None:
    bench.wire("question.asked", question="q1", text="Which draft?")
    assert ask(bench) == "card"
    bench.tap("back")
    bench.pass_(0.5)
    assert bench.state == "question"


def test_one_key_alone_allows_and_denies(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(names=("talk",))
    bench.ask("push it")
    ask(bench)
    assert "Hold Talk: allow" in bench.screen
    hold(bench, "talk")
    assert answers(bench) == [("r1", "allow")] and bench.ear.told == []
    ask(bench, "r2")
    while "Talk: deny" not in bench.screen:
        bench.tap("talk")
    hold(bench, "talk")
    assert answers(bench)[-1] == ("r2", "deny")
    ask(bench, "r3")
    bench.press("talk", 0.1)
    bench.press("talk", 0.1)  # twice: back
    assert answers(bench)[-1] == ("r3", "deny")


def test_options_too_long_for_their_line_stand_in_the_text(bench: Bench) -> None:
    options = ["The long draft of Monday", "The long draft of Friday"]
    bench.wire("question.asked", question="q1", text="Which draft?", options=options)
    bench.pass_(0.5)
    page: Any = bench.device.page
    assert page.text == "Which draft?\n• The long draft of Monday\n• The long draft of Friday"
    bench.tap("back")
    bench.wire("question.asked", question="q2", text="Which?", options=["Monday", "Friday"])
    page = bench.device.page
    assert page.text == "Which?"


@pytest.mark.parametrize("held", [True, False])
def test_news_of_the_device_while_one_speaks_to_a_card_end_the_turn_that_asked(
    bench: Bench, held: bool
) -> None:
    bench.ask("push it")
    ask(bench)
    bench.do(ev.Button("talk", True))
    bench.pass_(1)
    if not held:
        bench.do(ev.Button("talk", False))
    assert bench.device.talk.aside == "card"
    bench.do(ev.Alert("warning", "power.restart", urgent=True))
    assert bench.state == "notice"
    bench.do(ev.Button("talk", False))
    bench.tap("ok")
    bench.pass_(0.5)
    assert bench.state == "card"
    bench.tap("back")
    assert "interrupt" in bench.link.names() and bench.state == "idle"
    bench.ask("once more")
    assert bench.delta("Not pushed. And") == "reply"
