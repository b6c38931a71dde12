from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.home import Home
from exo.core.gate.axes import Act
from exo.core.gate.decide import Verdict, mark
from exo.core.gate.gate import Gate
from exo.tools.clock import FakeClock
from exo.tools.gate.judge import Consequences

sys.path.insert(0, str(Path(__file__).parent))


class Bench:
    """A gate over a person's folder, with a home of Exo and a working folder in it."""

    def __init__(self, root: Path) -> None:
        self.user, self.cwd = root, root / "project"
        self.cwd.mkdir(parents=True)
        self.home, self.clock = Home(root / ".exo"), FakeClock()
        self.policies = self.home.store / "policies"
        self.policies.mkdir(parents=True)
        self.judge = Consequences(self.home.root)
        self.gate = Gate(self.policies, self.clock, {"judge": self.judge})

    def write(self, name: str, text: str) -> None:
        (self.policies / name).write_text(text)
        self.clock.advance(10)

    def bash(self, command: str, **more: Any) -> Verdict:
        return self.check("bash", {"command": command}, **more)

    def check(
        self,
        tool: str,
        args: dict[str, Any],
        granted: Iterable[str] = (),
        spent: int = 0,
        **more: Any,
    ) -> Verdict:
        return self.gate.check(self.act(tool, args, **more), set(map(mark, granted)), spent)

    def act(self, tool: str, args: dict[str, Any], **more: Any) -> Act:
        return Act(tool, args, str(self.cwd), **more)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    base = Path.home() / ".cache"  # not below /tmp, which is scratch to the gate
    base.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base, prefix="exo-gate-") as folder:
        monkeypatch.setenv("HOME", folder)
        yield Bench(Path(folder))
