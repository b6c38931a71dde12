"""Decisions: who is asked in which order, what is done when nobody is sure, and that no answer of a model
ever makes the product less careful."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError, ServiceError, SettingError
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.decide.calibration import FILE, Calibration
from exo.core.decide.decider import Decider
from exo.core.decide.live import READ, Decisions
from exo.core.decide.providers import Hosted, Local, providers
from exo.core.decide.question import MECHANISMS, MILLION, Mechanism, asked, per_million
from exo.core.engine.outbox import Row
from exo.core.ledger.ledger import Ledger
from exo.core.ledger.mirror import Mirror
from hypothesis import given
from hypothesis import strategies as st

TOOL = Mechanism("tool", {"timer": "", "music": ""})


class Scripted:
    """A provider that says what it is told to, fails, or takes its time."""

    def __init__(
        self,
        name: str = "p",
        sure: Mapping[str, float] | None = None,
        *,
        error: Exception | None = None,
        takes: float = 0,
        timeout: float = 5.0,
        slow: bool = False,
    ) -> None:
        self.name, self.timeout, self.slow = name, timeout, slow
        self._sure, self._error, self._takes = sure, error, takes
        self.asked: list[tuple[str, list[str]]] = []

    async def ask(self, state: str, questions: Mapping[str, Mechanism], wait: float) -> Any:
        self.asked.append((state, list(questions)))
        await asyncio.sleep(self._takes)
        if self._error is not None:
            raise self._error
        found = {}
        for name, each in questions.items():
            even = dict.fromkeys(each.options, 1 / len(each.options))
            fits = self._sure is not None and set(self._sure) <= set(each.options)
            found[name] = {**dict.fromkeys(each.options, 0.0), **self._sure} if fits else even  # type: ignore[dict-item]
        return found


def make(*asked_: Scripted, folder: Path | None = None) -> tuple[Decider, list[dict[str, Any]]]:
    facts: list[dict[str, Any]] = []
    return Decider(lambda: asked_, Calibration(folder), facts.append, tuned()), facts  # type: ignore[arg-type]


def tuned(held: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """The settings as these artifacts make them, for every session."""

    async def of(session: str) -> Settings:
        return Settings(Path("/nowhere"), {}).under(held or {})

    return of


def decide(*asked_: Scripted, mechanism: Mechanism = TOOL, **more: Any) -> Any:
    return asyncio.run(make(*asked_)[0].decide(mechanism, "wake me", **more))


def test_rules_come_first_and_nobody_else_is_asked() -> None:
    provider = Scripted(sure={"music": 1.0})
    found = decide(provider, ruled="timer")
    assert (found.answer, found.provider, found.abstained) == ("timer", "rules", False)
    assert found.probabilities == {"timer": MILLION, "music": 0} and not provider.asked


def test_the_first_that_answers_is_believed() -> None:
    first, second = Scripted("a", {"timer": 0.9, "music": 0.1}), Scripted("b", {"music": 1.0})
    found = decide(first, second)
    assert (found.answer, found.provider) == ("timer", "a") and not second.asked


@pytest.mark.parametrize(
    "broken",
    [
        Scripted("a", error=ServiceError("ask", "status 429")),
        Scripted("a", error=ConnectionRefusedError()),
        Scripted("a", {"music": 1.0}, takes=30.0, timeout=0.05),
    ],
)
def test_a_time_out_or_an_error_moves_to_the_next(broken: Scripted) -> None:
    found = decide(broken, Scripted("b", {"timer": 0.9, "music": 0.1}))
    assert (found.answer, found.provider) == ("timer", "b")


def test_unsure_is_an_answer_and_the_safe_one_is_taken() -> None:
    second = Scripted("b", {"yes": 1.0})
    found = decide(
        Scripted("a", {"yes": 0.7, "no": 0.3}), second, mechanism=MECHANISMS["action.riskier"]
    )
    assert (found.answer, found.abstained, found.provider) == ("no", True, "a")
    assert not second.asked


def test_nobody_answers_and_nothing_is_known() -> None:
    found = decide(mechanism=MECHANISMS["recall.depth"])
    assert (found.answer, found.abstained, found.provider) == ("shallow", True, "none")
    assert sum(found.probabilities.values()) == MILLION


def test_a_slow_provider_is_asked_only_where_nobody_waits() -> None:
    unsure, slow = (
        Scripted("a", {"timer": 0.5, "music": 0.5}),
        Scripted("main", {"music": 1.0}, slow=True),
    )
    assert decide(unsure, slow).abstained and not slow.asked
    assert decide(unsure, slow, patience=5.0).answer == "music"


def test_one_pass_for_several_questions() -> None:
    provider = Scripted()
    found = asyncio.run(make(provider)[0].decide_all(READ, "hello"))
    assert set(found) == {each.name for each in READ} and len(provider.asked) == 1


# ---- tighten only ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=lambda each: each.name)
@given(data=st.data())
def test_no_answer_is_less_careful_than_the_rules(
    mechanism: Mechanism, data: st.DataObject
) -> None:
    options = list(mechanism.options)
    ruled = data.draw(st.sampled_from(["", *options]))
    weights = data.draw(st.lists(st.floats(0.001, 1), min_size=len(options), max_size=len(options)))
    total = sum(weights)
    sure = {option: each / total for option, each in zip(options, weights, strict=True)}
    alone = decide(mechanism=mechanism, ruled=ruled)
    found = decide(Scripted(sure=sure), mechanism=mechanism, ruled=ruled)
    assert sum(found.probabilities.values()) == MILLION
    if mechanism.careful:
        care = mechanism.careful.index
        assert care(found.answer) >= care(alone.answer if ruled else mechanism.careful[0])
    elif ruled:
        assert found.answer == ruled


def test_every_mechanism_that_can_harm_says_which_answer_is_careful() -> None:
    """What a decision may change in the product: a call may be asked about, a recall may go deeper. Those
    two are the mechanisms with answers that differ in care; their defaults are what is done without."""
    assert {each.name for each in MECHANISMS.values() if each.careful} == {
        "action.riskier",
        "recall.depth",
    }
    for each in MECHANISMS.values():
        assert set(each.careful) in (set(), set(each.options))
        assert each.safe in ("", *each.options)


@pytest.mark.parametrize("sure", [{"yes": 1.0}, {"no": 1.0}, {"yes": 0.5, "no": 0.5}, None])
@pytest.mark.parametrize("risk", ["low", "medium", "high"])
def test_the_second_look_at_a_call_can_only_ask(sure: Any, risk: str) -> None:
    decisions = Decisions(make(Scripted(sure=sure))[0], lambda session: "t")
    call = decisions.pre_tool_call("bash", {"command": "rm -rf ~"}, risk, "s")
    found = asyncio.run(call)
    assert found is None or (found.action == "approve" and risk != "low")
    assert (found is not None) == (sure == {"yes": 1.0} and risk != "low")


@given(
    st.sampled_from(sorted(MECHANISMS)),
    st.data(),
    st.floats(0.001, 0.999),
    st.lists(st.floats(0.001, 1), min_size=8, max_size=8),
)
def test_no_threshold_makes_an_answer_less_careful_than_the_rules(
    name: str, data: st.DataObject, made: float, weights: list[float]
) -> None:
    """Of every mechanism, with any number that is taken or refused."""
    mechanism, key = MECHANISMS[name], f"threshold/{name}"
    ruled = data.draw(st.sampled_from(["", *mechanism.options]))
    options = list(mechanism.options)
    shares = [weights[n % len(weights)] + n / 1000 for n, _ in enumerate(options)]
    sure = {each: share / sum(shares) for each, share in zip(options, shares, strict=True)}
    decider, _ = make(Scripted(sure=sure))
    decider._settings = tuned({key: str(made)})
    found = asyncio.run(decider.decide(mechanism, "x", ruled=ruled)).answer
    if ruled and mechanism.careful:
        assert mechanism.careful.index(found) >= mechanism.careful.index(ruled)
    elif ruled:
        assert found == ruled
    else:
        (least, _), best = (
            asyncio.run(decider._settings("")).origin(key.replace("/", ".")),
            max(sure.values()),
        )
        assert found == (max(sure, key=sure.__getitem__) if best > least else mechanism.safe)
        assert name != "action.riskier" or least <= 0.8


@pytest.mark.parametrize("made", ["0.01", "0.5", "0.8", "0.95", "0.99"])
@pytest.mark.parametrize("yes", [0.3, 0.55, 0.79, 0.81, 0.97])
def test_no_threshold_makes_the_second_look_ask_less_often(made: str, yes: float) -> None:
    asked_first = []
    for held in ({}, {"threshold/action.riskier": made}):
        decider, _ = make(Scripted(sure={"yes": yes, "no": 1 - yes}))
        decider._settings = tuned(held)
        found = Decisions(decider, lambda session: "t").pre_tool_call("bash", {}, "high", "s")
        asked_first.append(asyncio.run(found) is not None)
    assert asked_first[1] >= asked_first[0] == (yes > 0.8)


# ---- what is recorded -----------------------------------------------------------------------------------


def test_the_record_holds_hashes_and_probabilities_and_no_text(tmp_path: Path) -> None:
    decider, facts = make(Scripted(sure={"blue whale": 0.9, "red fox": 0.1}))
    question = asked("which animal", {"blue whale": "", "red fox": ""})
    asyncio.run(decider.decide(question, "my secret diary", session="s", turn="t"))
    asyncio.run(decider.decide(MECHANISMS["request.kind"], "my secret diary"))
    ledger = Ledger(Home(tmp_path).make(), SystemClock())
    rows = [
        Row(str(n), "decision", "s", "t", 1, {"asked": str(n), **each})
        for n, each in enumerate(facts)
    ]
    first, second = Mirror(ledger).write(rows)
    assert not Mirror(ledger).write(rows), "handed in again, nothing is written twice"
    text = json.dumps([first.body, second.body])
    for word in ("secret", "diary", "whale", "fox", "animal"):
        assert word not in text
    assert first.body is not None and second.body is not None
    assert sorted(first.body["probabilities"].values()) == [100000, 900000]
    assert first.body["answer"] in first.body["probabilities"]
    assert second.body["mechanism"] == "request.kind"
    assert first.body["state"] == second.body["state"] != ""
    ledger.close()


@given(st.lists(st.floats(1e-6, 1), min_size=2, max_size=40))
def test_parts_of_a_million_sum_to_it(weights: list[float]) -> None:
    sure = {str(n): each / sum(weights) for n, each in enumerate(weights)}
    assert sum(per_million(sure).values()) == MILLION


# ---- calibration ----------------------------------------------------------------------------------------


def test_a_temperature_is_applied_the_mechanisms_before_the_generic(tmp_path: Path) -> None:
    calibration = Calibration(tmp_path)
    raw = {"a": 0.9, "b": 0.1}
    assert calibration.apply("p", "m", raw) == pytest.approx(raw)
    (tmp_path / FILE).write_text(json.dumps({"p": 2.0, "p m": 4.0, "q": 1000}))
    generic, own = calibration.apply("p", "x", raw)["a"], calibration.apply("p", "m", raw)["a"]
    assert 0.5 < own < generic < 0.9
    assert calibration.apply("q", "x", raw)["a"] > 0.5, "a temperature out of range is bounded"


@pytest.mark.parametrize("damaged", ["", "[1]", '{"p": "x"}', "{"])
def test_a_damaged_file_leaves_probabilities_as_they_are(tmp_path: Path, damaged: str) -> None:
    (tmp_path / FILE).write_text(damaged)
    assert Calibration(tmp_path).apply("p", "m", {"a": 0.9, "b": 0.1})["a"] == pytest.approx(0.9)


# ---- who is asked ---------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Callable[..., tuple[str, list[Any]]]]:
    """server(status, answers): a server of /v1/systemone; its address and what it was sent."""
    made: list[http.server.HTTPServer] = []

    def start(status: int, answers: Any) -> tuple[str, list[Any]]:
        seen: list[Any] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(size))
                seen.append((self.path, self.headers.get("Authorization"), body))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps({"answers": answers}).encode())

            def log_message(self, *args: Any) -> None:
                pass

        made.append(http.server.HTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=made[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{made[-1].server_port}", seen

    yield start
    for each in made:
        each.shutdown()
        each.server_close()


def test_a_hosted_server_gets_the_state_without_secrets(
    server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"type": "choice", "choice": "timer", "probabilities": {"timer": 0.8, "music": 0.2}}
    url, seen = server(200, {"tool": answer})
    monkeypatch.setenv("DECIDE_TEST_KEY", "k1")
    hosted = Hosted(url, "DECIDE_TEST_KEY", "jev")
    found = asyncio.run(hosted.ask("the password is hunter2", {"tool": TOOL}, 5.0))
    assert found == {"tool": {"timer": 0.8, "music": 0.2}}
    [(path, key, body)] = seen
    assert path == "/v1/systemone" and key == "Bearer k1" and body["model"] == "jev"
    assert "hunter2" not in json.dumps(body)
    assert body["questions"]["tool"]["criteria"] == {"timer": None, "music": None}


@pytest.mark.parametrize(
    ("status", "answers"),
    [
        (429, {}),
        (200, {"tool": {"probabilities": {"timer": 1.0}}}),
        (200, {"tool": {"probabilities": {"timer": "x", "music": 0}}}),
        (200, {"tool": {"probabilities": {"timer": -1.0, "music": 2.0}}}),
    ],
)
def test_what_is_no_answer_is_an_error(
    server: Callable[..., Any], status: int, answers: Any
) -> None:
    url, _ = server(status, answers)
    with pytest.raises(ServiceError):
        asyncio.run(Hosted(url, "", "").ask("x", {"tool": TOOL}, 5.0))


def test_providers_are_those_of_the_settings_in_their_order(tmp_path: Path) -> None:
    def named(text: str, **more: str) -> list[str]:
        environ = {"EXO_DECIDE_PROVIDERS": text, **more}
        return [each.name for each in providers(Settings(tmp_path, environ), tmp_path / "s")]

    assert [each.name for each in providers(Settings(tmp_path, {}), tmp_path)] == ["local"]
    assert named("rules") == [] == named("")
    assert named("main, local") == ["main", "local"]
    assert named("local hosted", EXO_DECIDE_URL="http://h") == ["local", "hosted"]
    with pytest.raises(SettingError, match=r"decide\.url"):
        named("hosted")
    with pytest.raises(SettingError, match="oracle"):
        named("oracle")


def test_nobody_on_the_socket_costs_no_time(tmp_path: Path) -> None:
    decider, _ = make(Local(tmp_path / "none.sock"))  # type: ignore[arg-type]
    begun = time.monotonic()
    found = asyncio.run(decider.decide(MECHANISMS["turn.end"], "and then"))
    assert found.answer == "finished" and found.abstained
    assert time.monotonic() - begun < 5.0  # it does not wait for a time-out that never comes


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("x", None),
        ("", {"a": "", "b": ""}),
        ("x", {"a": ""}),
        ("x", {"a": "", " ": ""}),
        ("x", {"a": 1, "b": 2}),
        ("x", ["a", "b"]),
        ("x", {str(n): "" for n in range(300)}),
    ],
)
def test_a_question_that_is_none_says_why(name: str, options: object) -> None:
    with pytest.raises(ExoError, match="decide"):
        asked(name, options)


def test_yes_and_no_make_a_question_that_its_name_words() -> None:
    question = asked("is_urgent", {"yes": "", "no": ""})
    assert question.kind == "noul" and question.wire()["instructions"] == "is urgent"
    assert question.read({"noul": 0.25}) == {"no": 0.75, "yes": 0.25}


@pytest.mark.parametrize(
    "text", ['{"local": NaN}', '{"local": 1' + "0" * 400 + "}", "[" * 100_000, "{"]
)
def test_a_damaged_file_of_temperatures_leaves_probabilities_as_they_came(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "calibration.json").write_text(text)
    found = Calibration(tmp_path).apply("local", "x", {"a": 0.7, "b": 0.3})
    assert found == pytest.approx({"a": 0.7, "b": 0.3})
