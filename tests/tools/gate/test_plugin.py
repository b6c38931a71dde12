"""The gate as a plugin: what it says to the engine, and a real exod with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.client import Client
from exo.core.base.home import Home
from exo.core.base.unix import reachable
from exo.core.plugins.hooks import approve
from exo.core.plugins.registry import PluginContext
from exo.tools.gate import plugin

PUSH = "git push origin main"
FLOOR = "git push --force origin main"


class Fake:
    """Takes what a plugin registers."""

    def __init__(self, home: Path | None) -> None:
        self.home = home
        self.taken: list[Callable[..., Any]] = []

    def register_gate(self, function: Callable[..., Any]) -> None:
        self.taken.append(function)


@pytest.fixture
def say(bench: Any) -> Callable[..., Any]:
    ctx = Fake(bench.home.root)
    plugin.register(ctx)  # type: ignore[arg-type]
    [check] = ctx.taken

    def ask(command: str) -> Any:
        return check("bash", {"command": command}, str(bench.cwd), "high", "")

    return ask


def test_verdicts_become_what_a_hook_may_say(bench: Any, say: Any) -> None:
    assert say("ls") is None and say("touch x") is None
    asked, verdict = say(PUSH), bench.bash(PUSH)
    assert asked == approve(verdict.summary, verdict.grant) and asked.rule
    floor = say(FLOOR)
    assert floor == approve(bench.bash(FLOOR).summary) and not floor.rule
    assert not say("cat ~/.ssh/id_rsa").rule


def test_a_denial_says_what_and_by_which_rule(bench: Any, say: Any) -> None:
    bench.write("gate.toml", '[actions]\ndenied = ["git push"]\n')
    said = say(PUSH)
    assert said.action == "block" and "denied git push" in said.reason and PUSH in said.reason
    assert say("ls") is None


def test_policies_with_an_error_are_told_of_once(bench: Any, say: Any, capsys: Any) -> None:
    bench.write("gate.toml", "[ask]\npublic = 'perhaps'\n")
    assert say(PUSH) and say(PUSH)
    assert capsys.readouterr().err.count("gate.toml:2") == 1


def test_the_slot_is_a_guard(bench: Any) -> None:
    ctx = PluginContext("gate", None, bench.home.root)
    plugin.register(ctx)
    assert [(table, name) for table, name, _ in ctx.items] == [
        ("slot", "gate"),
        ("hook", "pre_tool_call"),
    ]
    assert ctx.items[1][2].guard
    with pytest.raises(ValueError, match="needs a home"):
        plugin.register(PluginContext("gate", None))


def test_the_first_calls_of_many_threads_meet_one_gate_with_the_persons_policies(
    bench: Any,
) -> None:
    bench.write("gate.toml", '[actions]\ndenied = ["git push"]\n')
    made: list[Any] = []

    def opens() -> Any:
        made.append(plugin.open_gate(bench.home.root))
        return made[-1]

    guard, said = plugin.Guard(opens), list[Any]()
    start = threading.Barrier(8)

    def one() -> None:
        start.wait()
        said.append(guard.check("bash", {"command": PUSH}, str(bench.cwd), "high", ""))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and {each.action for each in said} == {"block"}


def test_loading_it_reads_no_table() -> None:
    code = (
        "import sys; from pathlib import Path; from exo.core.plugins import PluginContext\n"
        "from exo.tools.gate import plugin\n"
        "plugin.register(PluginContext('gate', None, Path('/nowhere')))\n"
        "print(sorted(name for name in sys.modules if name.startswith('exo.tools')))"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == str(["exo.tools", "exo.tools.gate", "exo.tools.gate.plugin"])


# ---- a real exod with scripted models ------------------------------------------------------------


class Exo:
    """exod and exo-models --fake of one home; `say` has the model make calls, and answers questions."""

    def __init__(self, root: Path, **env: str) -> None:
        self.home = Home(root).make()
        self.cwd = root.parent / "work"
        self.cwd.mkdir(exist_ok=True)
        self.env = {k: v for k, v in os.environ.items() if k != "EXO_HOME"} | env
        self.client = Client(self.home.exod_socket, timeout=30.0)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.seen = 0

    def __enter__(self) -> Exo:
        words = ["--home", str(self.home.root)]
        for module in (["exo.models.app", "--fake"], ["exo.core.server.app"]):
            command = [sys.executable, "-m", *module, *words]
            self.processes.append(subprocess.Popen(command, env=self.env))
        try:
            self.client.wait_ready(30)
            while not reachable(self.home.models_socket):
                assert self.processes[0].poll() is None
                time.sleep(0.01)
            self.session = self.client.call("session.create", cwd=str(self.cwd))["session"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(30)

    def say(self, command: str, choice: str = "deny") -> tuple[list[str], str, bool]:
        """(the questions that came, the result's text, ok)."""
        text = f"please\n!tool bash {json.dumps({'command': command})}"
        turn = self.client.call("turn.send", session=self.session, text=text)["turn"]
        asked: list[str] = []
        result: dict[str, Any] = {}
        for event in self.client.events(self.seen, self.session):
            body, self.seen = event["body"], event["seq"]
            if event["type"] == "approval.requested":
                asked.append(body["summary"])
                assert body["args"] == {"command": command}
                self.client.call("approval.respond", request=body["request"], choice=choice)
            elif event["type"] == "tool.completed":
                result = body
            elif event["type"] == "turn.completed":
                assert body["turn"] == turn and body["stop_reason"] == "end"
                return asked, result["text"], result["ok"]
        raise AssertionError("the stream ended")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_a_session_with_the_gate(place: Path) -> None:
    with Exo(place) as exo:
        (exo.cwd / "here.txt").write_text("x")
        assert exo.say("ls") == ([], "here.txt\n[exit code 0]", True)
        summary = f"{PUSH}: the world sees it, partly undone"
        asked, text, ok = exo.say(PUSH)
        assert asked == [summary] and not ok and "the person said no" in text
        assert exo.say("ls")[2]  # the session is well
        messages = exo.client.call("session.get", session=exo.session)["messages"]
        assert sum(bool(m.get("calls")) for m in messages) == 3
        # always: once, then quiet for the same shape alone
        assert exo.say(PUSH, "allow_always")[0] == [summary]
        asked, text, _ = exo.say(PUSH)
        assert asked == [] and "said no" not in text
        assert len(exo.say("git push other main")[0]) == 1
        for _ in range(2):  # the floor asks again and again
            assert len(exo.say(FLOOR, "allow_always")[0]) == 1
        assert exo.say(PUSH)[0] == []
        rows = exo.client.call("command.run", name="plugins")["result"]["plugins"]
        states = {row["name"]: row["state"] for row in rows}
        assert (states["gate"], states["ask"]) == ("loaded", "off")
        assert not [row["last_fault"] for row in rows if row["faults"]]
        # a policy counts from the next look on, over an earlier allow_always too
        policies = exo.home.store / "policies"
        policies.mkdir(parents=True, exist_ok=True)
        (policies / "gate.toml").write_text('[actions]\ndenied = ["git push"]\n')
        time.sleep(1.1)  # the gate looks once a second
        asked, text, ok = exo.say(PUSH)
        assert not asked and not ok and text.startswith("blocked: the person's policies deny it")
        assert exo.say("ls")[2]


def test_without_the_gate_the_old_questions_are_back(place: Path) -> None:
    with Exo(place, EXO_PLUGINS_OFF="gate") as exo:
        assert exo.say("ls")[0] == ["Run: ls"]
        assert exo.say("ls", "allow")[1].endswith("[exit code 0]")


def test_a_gate_that_is_broken_asks_or_blocks_and_lets_nothing_through(place: Path) -> None:
    plugins = Home(place).make().plugins
    plugins.mkdir()
    (plugins / "gate.py").write_text("raise ValueError('broken')\n")  # takes its name
    with Exo(place) as exo:
        assert exo.say("ls")[0] == ["Run: ls"]
