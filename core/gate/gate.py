"""The gate: what a judge says of a call, decided on by the policies as they stand. Owns the reloading of the
policies and what holds without a judge; runs nothing, asks nobody.

Invariant: `judge` and `decide` never raise; without a judge, and with one that fails, every call but a
plain reading is not understood. Policies with an error leave the last good ones in force, and where there
were none, the strict ones."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from exo.core.base.clock import Clock
from exo.core.gate.axes import Act, Axes, Judge, Judgement, Part
from exo.core.gate.decide import Verdict, decide
from exo.core.gate.policy import STRICT, Policy, load

LOOK = 1.0  # seconds between two looks at the policies
# tools of the core that only read, with the argument that names a place
_PLAIN = {"time": "", "recall": "", "why": ""}
_PLAIN |= dict.fromkeys(("read_file", "list_dir", "search_files"), "path")


class Gate:
    """`folder` holds the policies (None: the defaults); `slots` has the judge, if there is one; `careful` is
    whether every change asks. `fault` says what is wrong with the policies."""

    def __init__(
        self,
        folder: Path | None,
        clock: Clock,
        slots: Mapping[str, Any],
        careful: Callable[[], bool] = lambda: False,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._slots = slots
        self._careful = careful
        self._seen: object = None
        self._looked = -LOOK
        self._policy: Policy | None = None
        self._lock = threading.Lock()
        self.fault = ""

    def check(self, act: Act, granted: Collection[str] = (), spent: int = 0) -> Verdict:
        """The verdict on a call; `granted` and `spent` as for `decide`."""
        return self.decide(act, self.judge(act), granted, spent)

    def judge(self, act: Act) -> Judgement:
        """What the judge says, or that the call is not understood."""
        policy = self.policy()
        judge: Judge | None = self._slots.get("judge")
        try:
            found = judge.judge(act, policy.inside) if judge else plain(act)
            return sound(found)
        except BaseException as error:  # noqa: BLE001 - a call that breaks the judge is never let through
            return doubtful(act, f"the judge failed on it ({type(error).__name__}: {error})")

    def decide(
        self, act: Act, judgement: Judgement, granted: Collection[str] = (), spent: int = 0
    ) -> Verdict:
        """See the function of that name; by the policies as they were last read: it never waits."""
        policy = self.current
        if self._careful():
            policy = replace(policy, ask=policy.ask | {"changes": "ask"}, cells=())
        return decide(act, judgement, policy, granted, spent)

    @property
    def current(self) -> Policy:
        return self._policy or STRICT

    def policy(self) -> Policy:
        """The policies, read again when a file has changed."""
        with self._lock:
            now = self._clock.monotonic()
            if self._policy is None or now - self._looked >= LOOK:
                self._looked = now
                seen = _stamps(self._folder)
                if self._policy is None or seen != self._seen:
                    self._seen = seen
                    self._policy = self._read()
            return self._policy

    def _read(self) -> Policy:
        self.fault = ""
        if self._folder is None:
            return Policy()
        try:
            policy = load(self._folder)
            if "judge" in self._slots:
                self._slots["judge"].read(self._folder)
            return policy
        except BaseException as error:  # noqa: BLE001 - whatever is wrong with them, the gate stands
            kept = "the ones before stay in force" if self._policy else "every change asks"
            self.fault = f"{error}; {kept}"
            return self._policy or STRICT


def sound(found: Judgement) -> Judgement:
    """What a judge said, where it fits. Raises TypeError, ValueError."""
    if not isinstance(found, Judgement) or found.axes.weight < 0:
        raise TypeError(f"it said {found!r:.80}")
    if found.cents is not None and not 0 <= int(found.cents) < 2**40:
        raise ValueError(f"it said {found.cents!r} cents")
    return found


def plain(act: Act) -> Judgement:
    """What the core knows by itself: a reading tool looks, inside the folder and at nothing hidden."""
    names = _PLAIN.get(act.tool)
    place = str(act.args.get(names or "", ""))
    full = os.path.realpath(Path(act.cwd, place)) if "\0" not in place else ""
    inside = Path(full).is_relative_to(os.path.realpath(act.cwd)) and "/." not in f"/{place}"
    if names is None or names and not (inside or place == "."):
        return doubtful(act, "no judge is there to say what it does")
    look = Part(Axes(), act.line, changes=False)
    return Judgement((look,), touched=frozenset({full} if names else ()))


def doubtful(act: Act, why: str) -> Judgement:
    """A call that is not understood."""
    return Judgement(doubts=(why,), names=frozenset({f"tool:{act.tool}"}))


def _stamps(folder: Path | None) -> list[tuple[str, int, int]]:
    with contextlib.suppress(OSError):
        rows = [(each.name, each.stat()) for each in folder.glob("*.toml")] if folder else []
        return sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in rows)
    return []
