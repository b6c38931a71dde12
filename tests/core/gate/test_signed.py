"""What the record says of calls, and what an approval is worth after a death: real processes, SIGKILL."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.client import Client
from exo.core.base.clock import SystemClock
from exo.core.base.errors import ExoError, ProtocolError
from exo.core.base.home import Home
from exo.core.base.unix import reachable
from exo.core.gate.axes import Act
from exo.core.ledger.ledger import Ledger

# exod that dies (SIGKILL) at a moment: before or after a method of a class
DYING = """
import os, signal, sys
place, when = sys.argv.pop(1), sys.argv.pop(1)
from exo.core.engine import actions, loop
from exo.core.toolbox import registry
from exo.core.server import app
owner, name = {
    "take": (actions.Approvals, "take"),
    "run": (registry.Toolbox, "run"),
    "resolve": (actions.Approvals, "_resolve"),
}[place]
inner = getattr(owner, name)
def die():
    os.kill(os.getpid(), signal.SIGKILL)
if place == "run":
    async def outer(self, *words):
        if when == "before":
            die()
        result = await inner(self, *words)
        die()
else:
    def outer(self, *words):
        if when == "before":
            die()
        result = inner(self, *words)
        if when == "after":
            die()
        return result
setattr(owner, name, outer)
sys.exit(app.main())
"""


class Exo:
    """A home with scripted models; `exod()` starts the daemon, `exod(place, when)` one that dies there."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "h").make()
        self.cwd = root / "w"
        self.cwd.mkdir()
        self.client = Client(self.home.exod_socket, 20.0)
        self.models = self._start("-m", "exo.models.app", "--fake")
        self.process: subprocess.Popen[bytes] | None = None
        while not reachable(self.home.models_socket):
            assert self.models.poll() is None
            time.sleep(0.02)

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, *words, "--home", str(self.home.root)]
        return subprocess.Popen(command, env=os.environ | {"EXO_TITLES_IDLE": "0"})

    def exod(self, *dies: str) -> None:
        words = ["-c", DYING, *dies] if dies else ["-m", "exo.core.server.app"]
        self.process = self._start(*words)
        self.client.wait_ready(30)

    def dead(self) -> None:
        assert self.process is not None and self.process.wait(30) == -signal.SIGKILL

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(30) == 0

    def close(self) -> None:
        for each in (self.process, self.models):
            if each is not None and each.poll() is None:
                each.terminate()
                each.wait(30)

    def session(self) -> str:
        return str(self.client.call("session.create", cwd=str(self.cwd))["session"])

    def say(
        self, session: str, command: str, choice: str = "allow", **more: Any
    ) -> tuple[int, str]:
        """(how many questions came, the result's text); ("", "died") when exod did."""
        since = int(self.client.call("hello", protocol=1, client="test")["seq"])
        text = f"please\n!tool bash {json.dumps({'command': command})}"
        self.client.call("turn.send", session=session, text=text)
        asked, result = 0, ""
        with contextlib.suppress(ExoError):
            for event in self.client.events(since, session):
                body = event["body"]
                if event["type"] == "approval.requested":
                    asked += 1
                    request = body["request"]
                    self.client.call("approval.respond", request=request, choice=choice, **more)
                elif event["type"] == "tool.completed":
                    result = body["text"]
                elif event["type"] == "turn.completed":
                    return asked, result
        return asked, "died"

    def record(self, *kinds: str) -> list[dict[str, Any]]:
        """Bodies of the record, which is whole."""
        ledger = Ledger(self.home, SystemClock(), enrol=False)
        assert ledger.verify(full=True).fault is None
        found = [dict(entry.body or {}) for entry in ledger.entries(kinds=kinds)]
        ledger.close()
        return found


@pytest.fixture
def exo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Exo]:
    made = Exo(tmp_path)
    yield made
    made.close()


RUNS = "echo ran >> runs; git push origin main"
PUSH = "git push origin main"


def runs(exo: Exo) -> int:
    path = exo.cwd / "runs"
    return len(path.read_text().split()) if path.exists() else 0


@pytest.mark.parametrize(
    ("place", "when", "ran", "asks"),
    [
        ("resolve", "before", 0, 1),  # the answer never arrived: it is asked again
        ("resolve", "after", 0, 0),  # given and not used: not lost
        ("take", "before", 0, 0),
        ("take", "after", 0, 1),  # used up: whether it ran is not known, so it is asked again
        ("run", "before", 0, 1),
        ("run", "after", 1, 1),  # it ran, and the record has not yet got it
    ],
)
def test_an_approval_is_neither_lost_nor_used_twice(
    exo: Exo, place: str, when: str, ran: int, asks: int
) -> None:
    exo.exod(place, when)
    session = exo.session()
    exo.say(session, RUNS)
    exo.dead()
    assert runs(exo) == ran
    exo.exod()
    assert exo.say(session, RUNS)[0] == asks
    assert runs(exo) == ran + 1
    assert exo.say(session, RUNS)[0] == 1 and runs(exo) == ran + 2  # and never a second time
    exo.stop()
    approvals, actions = exo.record("approval"), exo.record("action")
    given = [each for each in approvals if each["choice"] == "allow"]
    assert len(given) == ran + 2 + (place == "run" and when == "before") + (
        place == "take" and when == "after"
    )
    assert len({each["request"] for each in approvals}) == len(approvals)
    digest = Act("bash", {"command": RUNS}, str(exo.cwd)).digest
    assert {each["digest"] for each in [*given, *actions]} == {digest}
    outcomes = [each for each in exo.record("outcome") if "call" in each]
    assert [each["call"] for each in outcomes] == [each["call"] for each in actions]
    assert not outcomes[0]["ok"] and "interrupted" in outcomes[0]["text"]


def test_each_outcome_stands_in_the_signed_record_of_its_call(exo: Exo) -> None:
    policies = exo.home.store / "policies"
    policies.mkdir(parents=True, exist_ok=True)
    (policies / "gate.toml").write_text('[actions]\ndenied = ["mkfs"]\n')
    exo.exod()
    session = exo.session()
    calls = {"ls": "allow", "touch x": "log", PUSH: "ask", "mkfs /dev/null": "deny"}
    for command in calls:
        exo.say(session, command, "deny")
    exo.stop()
    actions = exo.record("action")
    assert [each["outcome"] for each in actions] == list(calls.values())
    assert [json.loads(each["args"])["command"] for each in actions] == list(calls)
    for each in actions:
        act = Act(each["tool"], json.loads(each["args"]), str(exo.cwd))
        assert each["digest"] == act.digest and each["rule"]
        assert set(each["axes"]) == {"reversibility", "exposure", "cost", "third_party"}
    [asked] = exo.record("approval")
    assert asked["digest"] == actions[2]["digest"] and asked["axes"] == actions[2]["axes"]
    assert asked["choice"] == "deny" and "rules" not in asked
    done = [each["done"] for each in exo.record("outcome") if "call" in each]
    assert done == [True, True, False, False]


def test_a_rule_of_the_session_is_signed_and_outlives_exod(exo: Exo) -> None:
    exo.exod()
    session = exo.session()
    assert exo.say(session, PUSH, "allow_always")[0] == 1
    assert exo.say(session, PUSH)[0] == 0
    assert exo.process is not None
    exo.process.kill()
    exo.process.wait()
    exo.exod()
    assert exo.say(session, PUSH)[0] == 0
    assert exo.say(session, "git push other main")[0] == 1  # another shape
    assert exo.say(exo.session(), PUSH, "deny")[0] == 1  # another session
    for command in ("git push --force origin main", "cat ~/.ssh/id_rsa"):  # the floor, a secret
        assert [exo.say(session, command, "allow_always")[0] for _ in range(2)] == [1, 1]
    exo.stop()
    rules = [each for each in exo.record("approval") if "rules" in each]
    assert [each["choice"] for each in rules] == ["allow_always"]
    assert len(rules[0]["rules"]) == 1 and "push git push origin" in rules[0]["rules"][0]
    used = [each for each in exo.record("action") if each["rule"] == "allowed in this session"]
    assert len(used) == 2 and {each["outcome"] for each in used} == {"log"}
    # a table that says more than the record was signed for changes nothing on the floor
    with contextlib.closing(sqlite3.connect(exo.home.sessions_db)) as link:
        assert link.execute("SELECT count(*) FROM approvals WHERE rules <> ''").fetchone() == (1,)


def test_a_voice_may_deny_and_never_allow(exo: Exo) -> None:
    exo.exod()
    session = exo.session()
    for choice in ("allow", "allow_always"):
        with pytest.raises(ProtocolError, match="a voice may deny, not allow") as caught:
            exo.client.call(
                "turn.send", session=session, text=f"x\n!tool bash {json.dumps({'command': PUSH})}"
            )
            for event in exo.client.events(0, session):
                if event["type"] == "approval.requested":
                    request = event["body"]["request"]
                    exo.client.call("approval.respond", request=request, choice=choice, via="voice")
        assert caught.value.code == "voice_cannot_allow"
        exo.client.call(
            "approval.respond", request=request, choice="deny", via="voice", by="device"
        )
        for event in exo.client.events(0, session):
            if event["type"] == "turn.completed":
                break
        session = exo.session()
    exo.say(session, PUSH, "deny", via="button")
    exo.stop()
    assert [(each["choice"], each["via"]) for each in exo.record("approval")] == [
        ("deny", "voice"),
        ("deny", "voice"),
        ("deny", "button"),
    ]


def test_money_is_counted_by_the_record(exo: Exo) -> None:
    policies = exo.home.store / "policies"
    policies.mkdir(parents=True, exist_ok=True)
    (policies / "budget.toml").write_text("[spend]\nmonth_cents = 1000\n")
    text = '[ask]\nmoney = "log"\nirreversible = "log"\nshared = "log"\nthird_party = "log"\n'
    (policies / "gate.toml").write_text(text)
    exo.exod()
    session = exo.session()
    pay = "stripe payment_intents create --amount 400"
    assert [exo.say(session, pay, "deny")[0] for _ in range(4)] == [0, 0, 1, 1]
    exo.stop()
    assert [each.get("cents") for each in exo.record("action")] == [400] * 4
    assert exo.record("action")[2]["rule"] == "budget: 800 of 1000 cents are spent"


def test_policies_broken_at_the_start_are_strict_and_told_of(exo: Exo) -> None:
    policies = exo.home.store / "policies"
    policies.mkdir(parents=True, exist_ok=True)
    (policies / "gate.toml").write_text("[ask]\npublic = 'perhaps'\n")
    exo.exod()
    session = exo.session()
    assert [exo.say(session, command, "deny")[0] for command in ("ls", "touch x")] == [0, 1]
    assert not (exo.cwd / "x").exists()
    told = []
    for event in exo.client.events(0):
        if event["type"] == "notice":
            told.append(event["body"])
        if event["type"] == "turn.completed" and len(told):
            break
    assert [each["code"] for each in told] == ["policies"]
    assert "policies/gate.toml:2:" in told[0]["text"] and "asks" in told[0]["text"]
