"""The gate as a plugin: what it says to the engine, and a real exod with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.client import Client
from exo.core.base.home import Home
from exo.core.base.unix import reachable
from exo.core.gate.gate import Gate
from exo.core.plugins.registry import PluginContext
from exo.tools.gate import plugin

PUSH = "git push origin main"
FLOOR = "git push --force origin main"


def seat(root: Path) -> Any:
    ctx = PluginContext("gate", None, root)
    plugin.register(ctx)
    [(table, name, judge)] = ctx.items
    assert (table, name) == ("slot", "judge")
    return judge


def test_it_takes_the_seat_of_a_home(bench: Any) -> None:
    act = bench.act("bash", {"command": PUSH})
    assert seat(bench.home.root).judge(act, ()) == bench.judge.judge(act)
    with pytest.raises(ValueError, match="needs a home"):
        plugin.register(PluginContext("gate", None))


def test_the_first_calls_of_many_threads_meet_one_judge_with_the_persons_table(bench: Any) -> None:
    bench.write("programs.toml", "[program.deployer]\notherwise = 'push'\n")
    late = seat(bench.home.root)
    gate = Gate(bench.policies, bench.clock, {"judge": late})
    said, start, act = [], threading.Barrier(8), bench.act("bash", {"command": "deployer x"})

    def one() -> None:
        start.wait()
        said.append(gate.check(act))

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each.outcome for each in said} == {"ask"} and len(said) == 8
    assert {each.axes.exposure for each in said} == {"public"}  # the person's own table spoke


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
        assert states["gate"] == "loaded"
        assert not [row["last_fault"] for row in rows if row["faults"]]
        # a policy counts from the next look on, over an earlier allow_always too
        policies = exo.home.store / "policies"
        policies.mkdir(parents=True, exist_ok=True)
        (policies / "gate.toml").write_text('[actions]\ndenied = ["git push"]\n')
        time.sleep(1.1)  # the gate looks once a second
        asked, text, ok = exo.say(PUSH)
        assert not asked and not ok and text.startswith("blocked: the person's policies deny it")
        assert exo.say("ls")[2]


LS = "ls: not understood, no undo"


def test_without_a_judge_all_but_plain_reading_asks(place: Path) -> None:
    with Exo(place, EXO_PLUGINS_OFF="gate") as exo:
        assert exo.say("ls")[0] == [LS]
        assert exo.say("ls", "allow")[1].endswith("[exit code 0]")


@pytest.mark.parametrize(
    "code",
    [
        "raise ValueError('broken')",
        "def register(ctx):\n    ctx.register_judge(None)",
        "class J:\n    def read(self, p): pass\n    def judge(self, act, inside): return 1 / 0\n"
        "def register(ctx):\n    ctx.register_judge(J())",
        "class J:\n    def read(self, p): pass\n    def judge(self, act, inside): return 'fine'\n"
        "def register(ctx):\n    ctx.register_judge(J())",
        "class J:\n    def read(self, p): raise SystemExit(3)\n"
        "def register(ctx):\n    ctx.register_judge(J())",
    ],
)
def test_a_judge_that_is_broken_lets_nothing_through(place: Path, code: str) -> None:
    plugins = Home(place).make().plugins
    plugins.mkdir()
    (plugins / "gate.py").write_text(code + "\n")  # takes its name, and the seat
    with Exo(place) as exo:
        assert exo.say("ls")[0] == [LS]
        assert not exo.say("echo x > made")[2] and not (exo.cwd / "made").exists()
