"""The gate: policies that change and break, judges that are missing or fail, what the core knows by itself."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from exo.core.gate.axes import Act, Axes, Judgement, Part
from exo.core.gate.gate import Gate
from exo.core.gate.policy import Policy, PolicyError, load
from exo.tools.clock import FakeClock


class Judge:
    """Says `found`, or raises it."""

    def __init__(self, found: Any = None) -> None:
        self.found = Judgement((Part(Axes(), "x", "x"),)) if found is None else found

    def read(self, policies: Path) -> None:
        if (policies / "programs.toml").exists():
            raise PolicyError("policies/programs.toml:1", "no good", "mend the line")

    def judge(self, act: Act, inside: tuple[str, ...]) -> Any:
        if isinstance(self.found, BaseException):
            raise self.found
        return self.found


class Place:
    def __init__(self, root: Path) -> None:
        self.policies, self.clock, self.slots = root / "policies", FakeClock(), dict[str, Any]()
        self.policies.mkdir()
        self.cwd = root / "w"
        self.cwd.mkdir()
        self.careful = False
        self.gate = Gate(self.policies, self.clock, self.slots, lambda: self.careful)

    def write(self, name: str, text: str) -> None:
        (self.policies / f"{name}.toml").write_text(text)
        self.clock.advance(2)

    def outcome(self, tool: str = "t", **args: Any) -> str:
        return self.gate.check(Act(tool, args, str(self.cwd))).outcome


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_a_judge_all_but_plain_reading_asks(place: Place, tmp_path: Path) -> None:
    (place.cwd / "up").symlink_to(tmp_path)
    for tool, args in (("time", {}), ("recall", {"query": "x"}), ("list_dir", {"path": "."})):
        assert place.outcome(tool, **args) == "allow"
    assert place.outcome("read_file", path="a/b.txt") == "allow"
    assert place.outcome("search_files", pattern="x") == "allow"
    for path in ("../x", "/etc/passwd", "up/x", ".env", "a/.git/config", "a\0b"):
        assert place.outcome("read_file", path=path) == "ask", path
    for tool in ("bash", "write_file", "note", "timer", "http_request", "lamp", ""):
        assert place.outcome(tool, command="ls") == "ask", tool


@pytest.mark.parametrize(
    "found",
    [
        ValueError("broken"),
        SystemExit(3),
        RecursionError(),
        "fine",
        7,
        Judgement((Part(Axes("fine"), "x"),)),
        Judgement((Part(Axes("reversible", "private", "none", "no"), "x"), 3)),  # type: ignore[arg-type]
        Judgement(cents=-5),
        Judgement(cents="much"),  # type: ignore[arg-type]
        Judgement(cents=2**60),
    ],
)
def test_a_judge_that_fails_or_talks_nonsense_leaves_a_question(place: Place, found: Any) -> None:
    place.slots["judge"] = Judge(found)
    assert place.outcome() == "ask"
    place.slots["judge"] = Judge()
    assert place.outcome() == "log"


def test_policies_broken_at_the_start_are_strict(place: Place) -> None:
    place.slots["judge"] = Judge()
    place.write("gate", "[ask]\npublic = 'perhaps'\n")
    assert place.outcome() == "ask"
    assert "policies/gate.toml:2:" in place.gate.fault and "asks" in place.gate.fault
    place.slots["judge"] = Judge(Judgement((Part(Axes(), "x", changes=False),)))
    assert place.outcome() == "allow"  # a reading
    place.write("gate", "")
    place.slots["judge"] = Judge()
    assert place.outcome() == "log" and not place.gate.fault


def test_policies_that_break_later_leave_the_last_good_ones(place: Place) -> None:
    place.slots["judge"] = Judge()
    place.write("overrides", "[tools.t]\noutcome = 'deny'\n")
    place.slots["judge"] = Judge(Judgement((Part(Axes(), "x", "x", frozenset({"tool:t"})),)))
    assert place.outcome() == "deny"
    for name in ("budget", "programs"):  # a file of the core's, and one that is the judge's
        place.write(name, "[spend]\nmonth_cents = 'x'\n")
        assert place.outcome() == "deny" and "stay in force" in place.gate.fault
        assert f"policies/{name}.toml:" in place.gate.fault
        (place.policies / f"{name}.toml").unlink()
        place.clock.advance(2)
        assert place.outcome() == "deny" and not place.gate.fault


def test_every_change_asks_where_that_is_the_setting(place: Place) -> None:
    place.slots["judge"] = Judge()
    place.write("gate", "[[cell]]\nreversibility = 'reversible'\noutcome = 'allow'\n")
    assert place.outcome() == "allow"
    place.careful = True
    assert place.outcome() == "ask" and place.outcome("time") == "ask"
    place.slots["judge"] = Judge(Judgement((Part(Axes(), "x", changes=False),)))
    assert place.outcome() == "allow"


def test_many_threads(place: Place) -> None:
    place.slots["judge"] = Judge()
    place.write("gate", "[ask]\nchanges = 'deny'\n")
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.append(place.outcome())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["deny"] * 16


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("gate", "[ask]\nirreversible = 'never'\n", 2),
        ("gate", "[ask]\n\nunknown = 'allow'\n", 3),
        ("gate", "[ask]\npubic = 'ask'\n", 2),
        ("gate", "a = 1\nb = \n", 2),
        ("gate", "[ask]\nx = '", 2),
        ("gate", "[[cell]]\nexposure = 'world'\noutcome = 'log'\n", 2),
        ("gate", "[[cell]]\nexposure = 'public'\n", 1),
        ("gate", "[[cell]]\nthird_party = 1\noutcome = 'log'\n", 2),
        ("gate", "# x\nask = 3\n", 2),
        ("gate", "cell = 'x'\n", 1),
        ("overrides", "[tools.bash]\n", 1),
        ("scopes", "[private]\nfolders = [3]\n", 2),
        ("scopes", "[private]\nprincipal = 'yes'\n", 2),
        ("budget", "[spend]\nmonth_cents = true\n", 2),
        ("posting", "[posting]\nlongest = 1.5\n", 2),
    ],
)
def test_an_error_is_named_with_its_line(place: Place, name: str, text: str, line: int) -> None:
    place.write(name, text)
    with pytest.raises(PolicyError, match=rf"policies/{name}\.toml:{line}: "):
        load(place.policies)


def test_what_is_no_text_is_refused_too(place: Place) -> None:
    (place.policies / "gate.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PolicyError):
        load(place.policies)
    (place.policies / "gate.toml").unlink()
    (place.policies / "gate.toml").mkdir()
    with pytest.raises(PolicyError):
        load(place.policies)


def test_every_key_reaches_the_policy(place: Place, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", str(place.cwd))
    place.write("gate", "[ask]\nlooks = 'log'\n[[cell]]\ncost = 'money'\noutcome = 'deny'\n")
    place.write("overrides", "[tools.a]\noutcome = 'ask'\n[hosts.'NAS.local']\noutcome = 'log'\n")
    place.write(
        "scopes", "[private]\nprincipal = false\nfolders = ['~/d']\n[folders]\ninside = ['/x']\n"
    )
    place.write("budget", "[spend]\nmonth_cents = 5\n")
    place.write("posting", "[posting]\nlongest = 3\nnever = ['a']\n")
    policy = load(place.policies)
    assert policy.ask == Policy().ask | {"looks": "log"}
    assert policy.cells == ({"cost": "money", "outcome": "deny"},)
    assert policy.overrides == {"tool:a": "ask", "host:nas.local": "log"}
    assert policy.folders == (f"{place.cwd}/d",) and policy.inside == ("/x",)
    assert (policy.month_cents, policy.longest, policy.never) == (5, 3, ("a",))


@pytest.mark.timeout(60)
def test_a_judge_that_hangs_while_it_reads_keeps_nobody_who_decides(place: Place) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(Judge):
        def read(self, policies: Path) -> None:
            entered.set()
            leave.wait(50)

    place.slots["judge"] = Slow()
    act = Act("t", {}, str(place.cwd))
    thread = threading.Thread(target=lambda: place.gate.judge(act))
    thread.start()
    assert entered.wait(50)
    found = Judgement((Part(Axes(), "x", "x"),))
    assert place.gate.decide(act, found).outcome == "ask"  # strict until they are read
    leave.set()
    thread.join(50)
    assert place.gate.decide(act, found).outcome == "log"


def test_a_pipe_is_no_policy_and_keeps_nobody(place: Place) -> None:
    place.write("gate", '[actions]\ndenied = ["t"]')
    assert place.outcome() == "deny"
    (place.policies / "gate.toml").unlink()
    os.mkfifo(place.policies / "gate.toml")
    place.clock.advance(2)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(place.outcome()), daemon=True)
    thread.start()
    thread.join(5)
    assert found == ["deny"] and "no regular file" in place.gate.fault


@pytest.mark.parametrize("what", ["gone", "circle", "large", "folder"])
def test_what_cannot_be_read_leaves_the_policies_in_force(place: Place, what: str) -> None:
    """A link into a card that was taken out is no wish to have no policies."""
    place.write("gate", '[actions]\ndenied = ["t"]')
    assert place.outcome() == "deny"
    path = place.policies / "gate.toml"
    if what == "large":
        path.write_text("# " + "x" * 100_000_000)
    else:
        path.unlink()
        if what == "folder":
            path.mkdir()
        else:
            path.symlink_to(path if what == "circle" else place.policies / "nowhere")
    place.clock.advance(2)
    begun = time.monotonic()
    assert place.outcome() == "deny" and "gate.toml" in place.gate.fault
    assert time.monotonic() - begun < 5
    if what == "gone":
        (place.policies / "nowhere").write_text("")
        place.clock.advance(2)
        assert place.outcome() == "ask" and not place.gate.fault
