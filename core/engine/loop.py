"""One turn, from what a person said to the last word of the answer. Everything it works with is handed
in, so each part can be tested alone.

Invariant: however a turn ends (done, interrupted, a dead model, a full disk, a bug), the session holds
whole rounds, partial text is kept, and exactly one turn.completed is published if the disk allows it."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

from exo.core.base.errors import ContextOverflow, ExoError, HomeError, ModelError
from exo.core.context.builder import Limits, build
from exo.core.decide.rules import Plan
from exo.core.engine.deltas import Joiner
from exo.core.engine.sessions import Sessions, Waiting, new_id, title_of, unanswered
from exo.core.protocol.codec import read_json
from exo.core.protocol.schema import (
    Call,
    Error,
    Message,
    MessageCompleted,
    MessageDelta,
    Notice,
    ReasoningDelta,
    SessionUpdated,
    ToolCompleted,
    ToolOutput,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnStarted,
    Usage,
    UsageUpdated,
)
from exo.core.router.model import Done, Model, RawCall, Request, Text
from exo.core.server.hub import Hub
from exo.core.toolbox.registry import Context, Toolbox

StopReason = Literal["end", "length", "interrupted", "rounds", "error"]


@dataclass(frozen=True)
class Rules:
    """The limits of a turn; times in seconds."""

    rounds: int = 24
    retries: int = 3
    backoff: float = 0.5
    join: float = 0.1
    limits: Limits = Limits()


@dataclass
class Turn:
    """A turn that runs. `task` is what `interrupt` cancels."""

    session: str
    id: str
    text: str
    usage: Usage = Usage()
    kind: str = "chat"
    model_called: bool = False
    task: asyncio.Task[None] | None = None
    message: str = ""  # id of the reply that is being written
    said: str = ""  # its text so far
    joiners: list[Joiner] = field(default_factory=list)
    shown: bool = False  # whether the model call that runs put anything on a screen
    begun: bool = False
    stopped: bool = False
    ending: bool = False

    def interrupt(self) -> None:
        """Stop it. A task cancelled before its first step, or while it writes its end, would never
        write that end: then the mark alone is set."""
        self.stopped = True
        if self.begun and not self.ending and self.task is not None:
            self.task.cancel()


class Loop:
    """Runs turns; holds no state between them."""

    def __init__(
        self,
        sessions: Sessions,
        hub: Hub,
        model: Model,
        tools: Toolbox,
        plan: Callable[[str], Plan],
        opening: list[dict[str, Any]],
        rules: Rules,
    ) -> None:
        """`opening` is what every request begins with: the system prompt, then examples that show a
        small model the tone (3 more of 16 plain questions came out right with them)."""
        self._sessions, self._hub, self._model = sessions, hub, model
        self._tools, self._plan, self._opening, self._rules = tools, plan, opening, rules

    def accept(self, turn: Turn, message: str, waiting: Waiting | None = None) -> None:
        """Make the person's words durable: message, events, running mark in one FULL commit."""
        said = Message(message, "user", turn.text)
        messages = self._sessions.messages(turn.session)
        with self._hub.commit(durable=True) as add:
            if mend := unanswered(messages):
                self._sessions.add(turn.session, turn.id, mend)
                add(turn.session, MessageCompleted(turn.id, mend))
            if waiting is not None:
                self._sessions.take(waiting)
            else:
                self._sessions.outbox.put(message, turn.session, turn.id, turn.text)
            self._sessions.add(turn.session, turn.id, said)
            self._sessions.begin(turn.session, turn.id, title_of(turn.text))
            add(turn.session, MessageCompleted(turn.id, said), TurnStarted(turn.id))

    async def run(self, turn: Turn) -> None:
        """Answer an accepted turn. Never raises."""
        reason: StopReason = "error"
        error: ExoError | None = None
        turn.begun = True
        try:
            reason = "interrupted" if turn.stopped else await self._answer(turn)
        except asyncio.CancelledError:
            reason = "interrupted"
        except ExoError as caught:
            error = caught
        except Exception as bug:  # noqa: BLE001 - a bug ends the turn, not the session
            traceback.print_exc(file=sys.stderr)
            error = ExoError("answer", f"{type(bug).__name__}: {bug}", "see the log of exod")
        turn.ending = True
        await self._finish(turn, reason, error)

    async def _answer(self, turn: Turn) -> StopReason:
        plan = self._plan(turn.text)
        turn.kind = plan.kind
        if plan.calls:
            calls = [Call(new_id(), name, args) for name, args in plan.calls]
            results = await self._round(turn, new_id(), "", calls, {})
            said = "\n".join(result.text for result in results)
            self._store(turn, Message(new_id(), "assistant", said))
            return "end"
        for _ in range(self._rules.rounds):
            done = await self._ask(turn)
            if not done.calls:
                return "length" if done.reason == "length" else "end"
            calls, faults = _read_calls(done.calls)
            await self._round(turn, turn.message, turn.said, calls, faults)
            self._steer(turn)
        text = f"stopped after {self._rules.rounds} rounds of tools"
        self._hub.publish(turn.session, Notice("warning", "rounds", text))
        return "rounds"

    async def _ask(self, turn: Turn) -> Done:
        """One model call, retried and shrunk only while nothing was shown. Text goes out as it comes;
        a reply without calls is completed here."""
        limits, tries = self._rules.limits, 0
        turn.model_called = True
        while True:
            turn.message, turn.said, turn.shown = new_id(), "", False
            try:
                done = await self._stream(turn, self.request(turn.session, limits))
                break
            except ContextOverflow:
                if turn.shown or limits.window < 512:
                    raise
                limits = Limits(limits.window // 2, min(limits.reply, limits.window // 4), 2)
            except ModelError as error:
                if turn.shown or not error.retryable or tries >= self._rules.retries:
                    raise
                await asyncio.sleep(self._rules.backoff * 2**tries)
                tries += 1
        if not done.calls:
            self._store(turn, Message(turn.message, "assistant", turn.said))
        return done

    def request(self, session: str, limits: Limits | None = None) -> Request:
        """What the model would be asked now, for this session."""
        limits = limits or self._rules.limits
        messages = self._sessions.messages(session)
        request = build(self._opening, messages, limits)
        tools = [spec.openai() for spec in self._tools.specs()]
        return Request(request, tools, limits.reply, session, len(self._opening))

    async def _stream(self, turn: Turn, request: Request) -> Done:
        def save_text(text: str) -> None:
            self._hub.publish(turn.session, MessageDelta(turn.id, turn.message, text))

        def save_reasoning(text: str) -> None:
            self._hub.publish(turn.session, ReasoningDelta(turn.id, turn.message, text))

        texts = Joiner(save_text, self._rules.join)
        reasonings = Joiner(save_reasoning, self._rules.join)
        turn.joiners = [texts, reasonings]
        done: Done | None = None
        # closed here, not when the garbage is collected: a model that nobody hears must stop
        async with aclosing(self._model.stream("main", request)) as events:
            async for event in events:
                if isinstance(event, Done):
                    done = event
                    continue
                turn.shown = True
                if isinstance(event, Text):
                    turn.said += event.text
                    texts.feed(event.text)
                else:
                    reasonings.feed(event.text)
        for joiner in turn.joiners:
            joiner.flush()
        turn.joiners = []
        if done is None:
            raise ExoError("read the reply", "the model's stream has no end")
        turn.usage = _sum(turn.usage, done.usage)
        self._hub.publish(turn.session, UsageUpdated(turn.id, turn.usage))
        return done

    async def _round(
        self, turn: Turn, message: str, text: str, calls: list[Call], faults: dict[str, str]
    ) -> list[ToolResult]:
        """Store the assistant's calls, run them in order, store all results as one tool message. An
        interrupt between the two gives every call without a result one that says so."""
        self._store(turn, Message(message, "assistant", text, calls))
        results: list[ToolResult] = []
        try:
            for call in calls:
                results.append(await self._call(turn, call, faults.get(call.id, "")))
        except asyncio.CancelledError:
            results += [
                ToolResult(call.id, False, "interrupted before completion")
                for call in calls[len(results) :]
            ]
            self._store(turn, Message(new_id(), "tool", "", results=results))
            raise
        self._store(turn, Message(new_id(), "tool", "", results=results))
        return results

    async def _call(self, turn: Turn, call: Call, fault: str) -> ToolResult:
        risk = self._tools.risk(call.tool)
        started = ToolStarted(turn.id, call.id, call.tool, call.args, risk)
        self._hub.publish(turn.session, started)
        begun = time.monotonic()
        if fault:
            result = ToolResult(call.id, False, fault)
        else:
            context = self.tool_context(turn.session, call.id)
            result = await self._tools.run(call.id, call.tool, call.args, context)
        spent = round((time.monotonic() - begun) * 1000)
        completed = ToolCompleted(call.id, result.ok, result.text, spent)
        self._hub.publish(turn.session, completed)
        return result

    def tool_context(self, session: str, call: str) -> Context:
        """The surroundings of a tool call; output may come from the worker thread of the tool."""
        loop = asyncio.get_running_loop()

        def emit(text: str) -> None:
            loop.call_soon_threadsafe(self._hub.publish, session, ToolOutput(call, text))

        return Context(session, self._sessions.cwd(session), emit)

    def _steer(self, turn: Turn) -> None:
        """Slip in what the person sent meanwhile with mode `steer`."""
        for row in self._sessions.waiting(turn.session, "steer"):
            message = Message(row.message, "user", row.text)
            with self._hub.commit(durable=True) as add:
                self._sessions.take(row)
                self._sessions.add(turn.session, turn.id, message)
                add(turn.session, MessageCompleted(turn.id, message))

    def _store(self, turn: Turn, message: Message) -> None:
        with self._hub.commit() as add:
            self._sessions.add(turn.session, turn.id, message)
            add(turn.session, MessageCompleted(turn.id, message))
        if message.id == turn.message:
            turn.said = ""  # only now: until it is saved, `_write_end` has to keep it

    async def _finish(self, turn: Turn, reason: StopReason, error: ExoError | None) -> None:
        """Write the end of the turn; on a disk that refuses, try until it does not: the hub tells
        those who listen, and no client waits for an end that never comes."""
        wait = 0.25
        while True:
            try:
                self._write_end(turn, reason, error)
                return
            except HomeError:
                await asyncio.sleep(wait)
                wait = min(wait * 2, 10.0)

    def _write_end(self, turn: Turn, reason: StopReason, error: ExoError | None) -> None:
        for joiner in turn.joiners:
            joiner.drop()  # message.completed carries the whole text
        mend = unanswered(self._sessions.messages(turn.session))
        with self._hub.commit(durable=True) as add:
            if mend is not None:  # the disk refused a result
                self._sessions.add(turn.session, turn.id, mend)
                add(turn.session, MessageCompleted(turn.id, mend))
            if turn.said:
                part = Message(turn.message, "assistant", turn.said, interrupted=True)
                self._sessions.add(turn.session, turn.id, part)
                add(turn.session, MessageCompleted(turn.id, part))
            self._sessions.end(turn.session)
            if error is not None:
                add(turn.session, Notice("error", error.code, str(error)))
            fault = Error(error.code, str(error)) if error is not None else None
            add(
                turn.session,
                TurnCompleted(turn.id, reason, turn.usage, turn.kind, turn.model_called, fault),
            )
            info = self._sessions.info(turn.session)
            add(turn.session, SessionUpdated(info.title, info.turns, info.updated))
        turn.said = ""


def _read_calls(raw: list[RawCall]) -> tuple[list[Call], dict[str, str]]:
    """Calls with their arguments read, and per call id what is wrong with those that are none. Ids are
    made unique, so that each result finds its call."""
    calls: list[Call] = []
    faults: dict[str, str] = {}
    for each in raw:
        id_ = each.id if each.id and all(each.id != call.id for call in calls) else new_id()
        args: Any = {}
        try:
            args = read_json(each.arguments)
        except ValueError as error:
            faults[id_] = f"the arguments are no JSON ({error}): {each.arguments[:500]}"
        if not isinstance(args, dict):
            faults[id_], args = f"the arguments are no JSON object: {each.arguments[:500]}", {}
        calls.append(Call(id_, each.name, args))
    return calls, faults


def _sum(a: Usage, b: Usage) -> Usage:
    cost = None if a.cost is None and b.cost is None else (a.cost or 0) + (b.cost or 0)
    return Usage(
        a.prompt_tokens + b.prompt_tokens,
        a.completion_tokens + b.completion_tokens,
        a.cached_tokens + b.cached_tokens,
        cost,
    )
