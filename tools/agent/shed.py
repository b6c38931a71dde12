"""The tools that were written while Exo runs: taken in after their tests, run in the sandbox, put into quarantine when they
break. Owns which there are; the ledger holds every version of each.

Invariant: an agent tool runs in the sandbox alone, with what it declared; whatever it does costs its call; a tool
in quarantine says why and is not offered; none can keep exod from starting, as they are read after it answers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from exo.core.base.errors import ExoError, HomeError
from exo.core.plugins.registry import Core
from exo.core.protocol.schema import Call
from exo.core.sandbox.host import ENDED, HostFunction, Limits, Sandbox
from exo.core.toolbox.registry import Context, Output, ToolSpec, check_args
from exo.tools.agent.package import Package, read_package
from exo.tools.agent.replay import KEPT, Recorded, Recorder, Records, Replayed, replay, told
from exo.tools.agent.workspace import Draft, Workspace

PREFIX = "tool/"  # of the artifacts
SLOW = 0.5  # of its time that host functions took: then time is not the tool's fault
WORDS = 300  # characters of why a tool is in quarantine
STRIKES = 3  # failures in a row until quarantine; one is enough for a limit that it ran into
TESTED = Limits(seconds=5.0)
Answer = tuple[list[Replayed], int]  # of a replay: its calls, and how many lines could not be read


@dataclass(frozen=True)
class Held:
    """A tool as it is held now: `state` is active or quarantined, `why` what for; `version` of its artifact."""

    package: Package
    state: str = "active"
    why: str = ""
    by: str = "person"
    version: int = 1
    strikes: int = 0
    told: str = ""  # what its replay gave when it was taken in


class Waits:
    """How long a call waits for host functions that ask somebody: a person, the network. `refused` is what one of
    them, or the disk, could not do although it was asked as it is to be."""

    def __init__(self) -> None:
        self._begun, self._spent = 0.0, 0.0
        self.refused = ""

    def __enter__(self) -> None:
        self._begun = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        given_up = kind is not None and not issubclass(kind, Exception)  # it waits no longer
        self._spent += Limits().seconds if given_up else time.monotonic() - self._begun

    def outside(self, error: str) -> bool:
        """Whether a tool failed of what it was refused."""
        last = self.refused.strip().splitlines()[-1:]
        return any(line.strip() in error for line in last)

    def long(self) -> bool:
        return self._spent >= Limits().seconds * SLOW


class Shed:
    """One for an exod. `as_of(session)` is the time (ms UTC) that a fork looks at, 0 for a session that is none."""

    def __init__(
        self,
        core: Core,
        sandbox: Sandbox,
        workspace: Workspace,
        as_of: Callable[[str], int],
        records: Records,
    ) -> None:
        self._core, self._sandbox, self._workspace, self._as_of = core, sandbox, workspace, as_of
        self._records = records
        self._held: dict[str, Held] = {}
        self._offered: dict[str, ToolSpec] = {}  # what of the toolbox is ours
        self._one = asyncio.Lock()
        self._turn = asyncio.Lock()  # of a call that uses the space
        self._loaded = False

    async def load(self) -> None:
        """Take the tools out of the ledger, once."""
        async with self._one:
            if self._loaded or self._core.memory is None:
                return
            at = self._core.as_of("")
            kept = await self._core.memory.run(lambda memory: memory.artifacts.all(at))
            for name, text in kept.items():
                if name.startswith(PREFIX) and name.count("/") == 1:
                    self._take(name.removeprefix(PREFIX), text)
            self._loaded = True

    def _take(self, name: str, text: str) -> None:
        try:
            row = json.loads(text)
            package = read_package(json.dumps(row["package"]))
            held = Held(package, row["state"], row["why"], row["by"], row["version"])
        except (ValueError, KeyError, TypeError, RecursionError, ExoError) as error:
            package = Package(name, "It cannot be read.", "")
            held = Held(package, "quarantined", f"it cannot be read: {error}")
        self._held[name] = held
        self._offer(held)

    def list(self) -> list[Held]:
        """What there is, by name."""
        return [self._held[name] for name in sorted(self._held)]

    def get(self, name: str) -> Held:
        """One of them. Raises ExoError."""
        if name not in self._held:
            do = f"there are: {', '.join(sorted(self._held)) or 'none'}"
            raise ExoError(f"find the tool {name!r}", "no agent tool has that name", do)
        return self._held[name]

    async def add(self, package: Package, by: str, turn: str = "", code: str = "") -> Held:
        """Test a tool and take it in, in the place of one of that name; `turn` is the one that writes it, `code` what wrote it (see Artifacts). Raises
        ExoError, and nothing changed, for a name of a tool that is none of these, for a test that fails and for a
        turn that is over by then."""
        await self.load()
        self._free(package.name)
        for number, test in enumerate(package.tests, 1):
            if fault := await self._tried(package, test):
                raise ExoError(f"take in the tool {package.name!r}", f"its test {number}: {fault}")
        rows, _ = await asyncio.to_thread(self._records.read, package.name)
        note = told(package.name, await replay(self._sandbox, package, rows))
        async with self._one:
            self._free(package.name)
            version = self._held[package.name].version + 1 if package.name in self._held else 1
            held = Held(package, by=by, version=version, told=note)
            return await self._keep(held, by, turn, code)

    def _free(self, name: str) -> None:
        """Raises ExoError for a name of a tool that is none of these, also of one that nobody sees now."""
        there = self._core.tools.get(name)
        if there is not None and there is not self._offered.get(name):
            why = "that is a tool of Exo's own or of a plugin"
            raise ExoError(f"take in the tool {name!r}", why, "choose another name")

    async def remove(self, name: str, by: str) -> None:
        """Let it go; its versions stay in the record. Raises ExoError."""
        await self.load()
        async with self._one:
            self.get(name)
            await self._put(f"{PREFIX}{name}", None, by, "removed")
            self._records.drop(name)
            del self._held[name]
            self._withdraw(name)

    async def quarantine(self, held: Held, why: str) -> None:
        """Offer it no longer; what it was stays to be looked at and mended."""
        async with self._one:
            if self._now(held) is None:
                return
            why = "".join(char if char.isprintable() else " " for char in why[:WORDS])
            held = replace(held, state="quarantined", why=why, strikes=0)
            self._held[held.package.name] = held  # first: also where it cannot be written down
            self._offer(held)
            await self._keep(held, "exo")

    def _now(self, held: Held) -> Held | None:
        """What is held of this very tool, None when it was removed or written anew meanwhile."""
        now = self._held.get(held.package.name)
        return now if now is not None and now.package is held.package else None

    async def replay(self, name: str, last: int = KEPT) -> Answer:
        """Make its last calls again with what was answered then, by the tool as it is now. Raises ExoError."""
        await self.load()
        held = self.get(name)
        rows, odd = await asyncio.to_thread(self._records.read, name, last)
        return await replay(self._sandbox, held.package, rows), odd

    async def run(self, name: str, session: str, args: dict[str, Any], turn: str = "") -> Output:
        """Call a tool. A failure is an error result; too many are its quarantine."""
        held = self.get(name)
        package, line = held.package, await self._line(session)
        draft, waits = Draft(self._workspace, line), Waits()
        heard, now_ms = Recorder(), self._core.clock.now_ms()
        can = heard.over(self._host(package, session, draft, waits))
        # what a call wrote is there before the next one reads
        async with self._turn if "space" in package.can else contextlib.nullcontext():
            result = await self._sandbox.run(package.source, "run", args, can, now=now_ms)
            if heard.whole and not result.error.startswith(("more than", "the ")):
                ends = (result.ok, result.value, result.out, result.error)
                about = (now_ms, turn, held.version, package.code, args, tuple(heard.asked))
                with contextlib.suppress(ExoError, OSError):  # no call fails for its record
                    await asyncio.to_thread(self._records.keep, name, Recorded(*about, *ends))
            if result.ok:
                try:
                    await asyncio.to_thread(draft.commit, f"{name}({', '.join(args)})")
                except (ExoError, OSError) as error:
                    return Output(f"{name}: {error}", False)
        now = self._now(held) or held
        if result.ok:
            if self._now(held):
                self._held[name] = replace(now, strikes=0)
            value = result.value
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            text = text.encode("utf-8", "replace").decode()  # half a character cannot be kept
            return Output((result.out + text).strip() or "(no result)")
        if result.error.startswith("more than") and waits.long():
            return Output(f"{name}: no answer in time ({', '.join(package.can)})", False)
        if result.error == ENDED or waits.outside(result.error):
            return Output(f"{name}: {result.error}", False)
        now = replace(now, strikes=now.strikes + 1)
        if self._now(held):
            self._held[name] = now
        limit = result.error.startswith(("fuel", "more than", "it broke", "the worker died"))
        text = f"{name}: {result.error}"
        if limit or now.strikes >= STRIKES:
            why = result.error if limit else f"{now.strikes} failures in a row: {result.error}"
            await self.quarantine(now, why)
            text += "\n[it is in quarantine now; write it anew with make_tool]"
        return Output(text, False)

    def _host(
        self, package: Package, session: str, draft: Draft, waits: Waits
    ) -> dict[str, HostFunction]:
        """What it may call, by what it declared."""
        can: dict[str, HostFunction] = {}
        if "space" in package.can:
            can |= {name: _disk(work, waits) for name, work in draft.host().items()}
        for name, tool in (("recall", "recall"), ("http", "http_request")):
            if name in package.can:
                can[name] = self._tool(session, tool, waits, package)
        return can

    def _tool(self, session: str, tool: str, waits: Waits, package: Package) -> HostFunction:
        """A tool of Exo's through hooks, gate and approvals, as if the model had called it."""

        code = hashlib.sha256(package.source.encode()).hexdigest()

        async def work(**args: Any) -> str:
            call = Call(
                f"agent-{hashlib.sha256(json.dumps(args).encode()).hexdigest()[:12]}", tool, args
            )
            with waits:
                result = await self._core.act(session, call, by=f"tool:{package.name}", code=code)
            if not result.ok:
                spec = self._core.tools.get(tool)
                if spec is None or not check_args(spec.parameters, args):
                    waits.refused = result.text
                raise ExoError(tool, result.text)
            return result.text

        return work

    async def _tried(self, package: Package, test: dict[str, Any]) -> str:
        """Why a test fails, "" when it holds. Host functions answer what the test says."""
        if fault := check_args(package.parameters, test["args"]):
            return fault
        can: dict[str, HostFunction] = {}
        for name, answer in (test.get("host") or {}).items():
            can[str(name)] = _answers(answer)
        result = await self._sandbox.run(package.source, "run", test["args"], can, TESTED)
        if not result.ok:
            return result.error
        same = json.dumps(result.value, sort_keys=True) == json.dumps(
            test["expect"], sort_keys=True
        )
        return "" if same else f"it gave {json.dumps(result.value)[:200]}"

    async def _keep(self, held: Held, by: str, turn: str = "", code: str = "") -> Held:
        row = {"package": json.loads(held.package.text()), "state": held.state, "why": held.why}
        row |= {"by": held.by, "version": held.version}
        text = json.dumps(row, ensure_ascii=False, sort_keys=True)
        why = held.why or held.told[:WORDS]
        await self._put(f"{PREFIX}{held.package.name}", text, by, why, turn, code)
        self._held[held.package.name] = held
        self._offer(held)
        return held

    async def _put(
        self, name: str, text: str | None, by: str, why: str, turn: str = "", code: str = ""
    ) -> None:
        if self._core.memory is None:
            raise ExoError("keep a tool", "this exod keeps no record")
        if turn:
            await self._core.memory.drain()  # so that the record knows whether it is over
        more = {"code": code, "why": why, "turn": turn}
        await self._core.memory.run(lambda memory: memory.artifacts.put(name, text, by, **more))

    def _offer(self, held: Held) -> None:
        """Have it among the tools, or say there why it cannot be used."""
        package = held.package

        async def handler(context: Context, /, **args: Any) -> Output:
            return await self.run(package.name, context.session, args, context.turn)

        self._withdraw(package.name)
        needs = f"uses {', '.join(package.can)}" if package.can else ""
        spec = ToolSpec(
            package.name,
            f"{package.description} (written by {held.by})",
            package.parameters | {"additionalProperties": False},
            handler,
            risk="medium" if "http" in package.can else "low",
            toolset="agent",
            available=lambda: f"in quarantine: {held.why}" if held.state != "active" else "",
            timeout=0,
            needs=needs,
            code=package.code,
        )
        try:
            self._core.tools.register(spec)
            self._offered[package.name] = spec
        except ValueError as error:  # a plugin took the name meanwhile
            self._held[package.name] = replace(held, state="quarantined", why=str(error))

    def _withdraw(self, name: str) -> None:
        """Offer our tool of that name no longer, if it is ours."""
        if (ours := self._offered.pop(name, None)) and self._core.tools.get(name) is ours:
            self._core.tools.withdraw(name)

    async def _line(self, session: str) -> str:
        """The line of the space that a session works on: its own, as of its beginning, for a fork."""
        at = self._as_of(session)
        if not at:
            return "main"
        await asyncio.to_thread(self._workspace.branch, session, at)
        return session


def _disk(function: Callable[..., Any], waits: Waits) -> HostFunction:
    async def work(**args: Any) -> Any:
        try:
            return await function(**args)
        except (OSError, HomeError) as error:
            waits.refused = str(error)
            raise

    return work


def _answers(answer: Any) -> Callable[..., Awaitable[Any]]:
    async def work(**args: Any) -> Any:
        return answer

    return work
