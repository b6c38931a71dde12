"""One turn, from what a person said to the last word of the answer. Everything it works with is handed
in, so each part can be tested alone.

Invariant: however a turn ends (done, interrupted, a dead model, a full disk, a bug), the session holds
whole rounds, partial text is kept, and exactly one turn.completed is published if the disk allows it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import sys
import traceback
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from exo.core.base.errors import ContextOverflow, ExoError, HomeError, ModelError, StorageError
from exo.core.context.builder import shorten
from exo.core.context.engine import ContextEngine
from exo.core.decide.live import Decisions, Read
from exo.core.engine.actions import Actions
from exo.core.engine.calls import read_calls
from exo.core.engine.deltas import Joiner
from exo.core.engine.reader import Plan, Reader, past
from exo.core.engine.sessions import Sessions, Waiting, added, lost, new_id, title_of
from exo.core.plugins.slots import Remembered, Slots
from exo.core.protocol import schema
from exo.core.protocol.schema import Call, Error, Message, Notice, ToolResult, Usage
from exo.core.retrieve.pack import quoted
from exo.core.retrieve.words import sought
from exo.core.router.model import Done, Model, Request, Text
from exo.core.server.hub import Hub
from exo.core.toolbox.registry import Context

REPEATS = 3  # the same failing call in so many rounds in a row ends the turn
SHRINKS = 4  # halvings of a request that the model finds too long
MEANT = 12  # messages that a question may be about
RECORDED = 4000  # characters of a tool's result that the record keeps

StopReason = Literal["end", "length", "interrupted", "rounds", "error"]


@dataclass(frozen=True)
class Rules:
    """The limits of a turn; times in seconds."""

    rounds: int = 24
    retries: int = 3
    backoff: float = 0.5
    join: float = 0.1


@dataclass
class Turn:
    """A turn that runs. `task` is what `interrupt` cancels."""

    session: str
    id: str
    text: str
    usage: Usage = Usage()
    channel: str = "typed"
    kind: str | None = "chat"
    model_called: bool | None = False
    task: asyncio.Task[None] | None = None
    message: str = ""  # id of the reply that is being written
    said: str = ""  # its text so far
    reply: str = ""  # the last whole text of the assistant
    language: str = "en"  # of a command's answer
    recalled: Remembered = Remembered()  # what the memory provider knows to this message
    failures: dict[str, int] = field(default_factory=dict)  # call -> rounds in a row
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


@dataclass
class Loop:
    """Runs turns; holds no state between them. `opening` is what every request begins with: the system
    prompt, then examples that show a small model the tone (3 more of 16 plain questions came out right
    with them)."""

    _sessions: Sessions
    _hub: Hub
    _model: Model
    _actions: Actions
    _slots: Slots
    _reader: Callable[[], Reader]
    _now: Callable[[], datetime.datetime]
    _context: ContextEngine
    _opening: list[dict[str, Any]]
    _rules: Rules
    _closed: tuple[Path, ...] = ()
    _results: Path | None = None
    _decisions: Decisions | None = None

    def accept(self, turn: Turn, message: str, waiting: Waiting | None = None) -> None:
        """Make the person's words durable: message, events, running mark in one FULL commit."""
        said = Message(message, "user", turn.text)
        with self._hub.commit(durable=True) as add:
            self._sessions.mend(add, turn.session, turn.id)
            if waiting is not None:
                self._sessions.take(waiting)
            else:
                self._sessions.accept(turn.session, turn.id, message, turn.text, turn.channel)
            self._sessions.say(add, turn.session, turn.id, said)
            self._sessions.begin(turn.session, turn.id, title_of(turn.text))
            add(turn.session, schema.TurnStarted(turn.id))

    async def run(self, turn: Turn) -> None:
        """Answer an accepted turn. Never raises."""
        reason: StopReason = "error"
        error: ExoError | None = None
        turn.begun = True
        try:
            with self._context.live():
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

    def end_lost(self, session: str, id_: str) -> None:
        """Write the end of a turn that a crash cut off: what was said is kept."""
        message, said = self._sessions.said_so_far(session, id_)
        turn = Turn(session, id_, "", kind=None, model_called=None, message=message, said=said)
        what = "exod stopped in the middle of the answer"
        self._write_end(turn, "error", ExoError(what, do="ask again", code="restarted"))

    async def _answer(self, turn: Turn) -> StopReason:
        await self._slots.artifacts(turn.session, self._sessions.as_of(turn.session))
        before = past(self._sessions.messages(turn.session))
        reader, found = self._reader(), Read()
        plan = reader.plan(turn.text, self._now(), before)
        turn.kind, calls = plan.kind, [Call(new_id(), *each) for each in plan.calls]
        if await self._did(turn, plan, calls):
            return "end"
        query = plan.query or turn.text
        recall = self._slots.recall(turn.session, query)
        if self._decisions is None:
            turn.recalled = await recall
        else:  # both want the same vector: side by side they cost little more than one
            read = self._decisions.read(turn.session, turn.id, turn.text)
            found, turn.recalled = await asyncio.gather(read, recall)
            named = (found.tool, found.sure, self._now())
            if found.tool and (picked := reader.pick(turn.text, *named)):
                calls = [Call(new_id(), *each) for each in picked.calls]
                low = all(self._actions.tools.risk(call) == "low" for call in calls)
                if low and await self._did(turn, picked, calls):
                    return "end"
            turn.kind = "question" if found.kind == "question" else plan.kind
            if found.deep:
                turn.recalled = await self._slots.recall(turn.session, query, found.deep)
        recalled = turn.recalled
        answer = recalled.answer if turn.kind == "question" else ""
        asks = found.kind == "question" or recalled.near and found.likely == "question"
        if not answer and recalled.nothing and (recalled.ours or asks):
            said = self._mentioned(turn, query)
            # a larger model may find the answer in the conversation, and, where a decision alone takes it for
            # such a question, in what is near
            if await self._small() or not said and (recalled.ours or not recalled.text):
                near = reader.nothing(query, "", [quoted(said)])[0] if said else recalled.nothing
                answer, turn.recalled, turn.kind = near, Remembered(), "question"
        if answer:
            self._store(turn, Message(new_id(), "assistant", answer))
            return "end"
        instead = reader.instead(turn.text, found.likely)
        if instead and await self._small() and await self._did(turn, instead, []):
            return "end"
        code, why = "rounds", f"stopped after {self._rules.rounds} rounds of tools"
        for _ in range(self._rules.rounds):
            done = await self._ask(turn)
            if not done.calls and done.reason == "length":
                return "length"
            if not done.calls:
                return "end"
            known = self._sessions.messages(turn.session)
            taken = {call.id for message in known for call in message.calls or []}
            calls, faults = read_calls(done.calls, taken)
            results = await self._round(turn, turn.message, turn.said, calls, faults)
            self._steer(turn)
            failed = [
                f"{call.tool} {raw.arguments}"
                for call, raw, result in zip(calls, done.calls, results, strict=True)
                if not result.ok
            ]
            turn.failures = {each: turn.failures.get(each, 0) + 1 for each in failed}
            if max(turn.failures.values(), default=0) >= REPEATS:
                code, why = "repeating", "stopped: the model repeats a tool call that fails"
                break
        self._hub.publish(turn.session, Notice("warning", code, why))
        return "rounds"

    async def _small(self) -> bool:
        """Whether the model that would answer is too small to be trusted with more than words."""
        with contextlib.suppress(ModelError):
            return await self._model.small("main")
        return False

    async def _did(self, turn: Turn, plan: Plan, calls: list[Call]) -> bool:
        """Make the calls of a plan, or say what it says; False where it has neither."""
        if not calls and not plan.said:
            return False
        turn.kind, turn.language, said = plan.kind, plan.language, plan.said
        if calls:
            results = await self._round(turn, new_id(), "", calls, {})
            said = "\n".join(result.text for result in results)
        self._store(turn, Message(new_id(), "assistant", said))
        return True

    def _mentioned(self, turn: Turn, query: str) -> str:
        """What the person said in this conversation that may hold the answer; "" for nothing."""
        said = [m.text for m in self._sessions.messages(turn.session)[-MEANT:] if m.role == "user"]
        plan, now = self._reader().plan, self._now()
        told = (text for text in reversed(said[:-1]) if plan(text, now).kind == "chat")
        return next((text for text in told if set(sought(query)) & set(sought(text))), "")

    async def _ask(self, turn: Turn) -> Done:
        """One model call, retried and shrunk only while nothing was shown. Text goes out as it comes;
        a reply without calls is completed here."""
        shrink = tries = 0
        turn.model_called = True
        while True:
            turn.message = new_id()
            turn.said = ""
            turn.shown = False
            try:
                request = await self.request(turn.session, shrink, turn.recalled.text)
                done = await self._stream(turn, request)
                self._context.heard(done.usage)
                break
            except ContextOverflow:
                if turn.shown or shrink >= SHRINKS:
                    raise
                shrink += 1
            except ModelError as error:
                if turn.shown or not error.retryable or tries >= self._rules.retries:
                    raise
                backoff = self._rules.backoff * 2**tries
                await asyncio.sleep(max(backoff, error.retry_after or 0))
                tries += 1
        if not done.calls:
            self._store(turn, Message(turn.message, "assistant", turn.said))
        return done

    async def request(
        self, session: str, shrink: int = 0, recalled: str = "", wait: bool = True
    ) -> Request:
        """What the model would be asked now, for this session; each `shrink` halves its length."""
        made = self._slots.held.get(session, {})
        limits = self._context.limits(session, shrink)
        opening = list(self._opening)
        opening[0] = opening[0] | {"content": made.get("prompt/system", opening[0]["content"])}
        if pack := await self._slots.pack(session):
            text = f"{opening[0]['content']}\n\n{shorten(pack, limits.window // 4)}"
            opening[0] = opening[0] | {"content": text}
        specs = self._actions.tools.specs(self._sessions.toolsets(session))
        tools = [spec.openai(made.get(f"text/{spec.name}", "")) for spec in specs]
        more: dict[str, Any] = {"recall": recalled, "shrink": shrink, "wait": wait}
        built = await self._context.build(session, opening, tools, **more)
        if await self._small():
            built = self._reader().spared(built)
        messages = await self._slots.reshape(session, built)
        # a plugin that reshapes may touch what is the same for all: then nothing is
        fixed = len(opening) if messages[: len(opening)] == opening else 0
        return Request(messages, tools, limits.reply, session, fixed)

    async def _stream(self, turn: Turn, request: Request) -> Done:
        def joiner(delta: type[schema.MessageDelta | schema.ReasoningDelta]) -> Joiner:
            def save(text: str) -> None:
                self._hub.publish(turn.session, delta(turn.id, turn.message, text))

            return Joiner(save, self._rules.join)

        texts = joiner(schema.MessageDelta)
        reasonings = joiner(schema.ReasoningDelta)
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
        for each in turn.joiners:
            each.flush()
        turn.joiners = []
        if done is None:
            raise ExoError("read the reply", "the model's stream has no end")
        turn.usage = added(turn.usage, done.usage)
        with self._hub.commit() as add:
            total = self._sessions.spend(turn.session, done.usage)
            add(turn.session, schema.UsageUpdated(turn.id, turn.usage, total))
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
                fault = faults.get(call.id, "")
                results.append(await self.act(turn.session, call, turn, fault))
        finally:
            results += [lost(call) for call in calls[len(results) :]]
            self._store(turn, Message(new_id(), "tool", "", results=results))
        return results

    async def act(
        self, session: str, call: Call, by: Turn | None = None, fault: str = "", /, **wrote: str
    ) -> ToolResult:
        """Run a call through gate, hooks and approvals; with a `fault` it is not made. Only a call of a
        turn is told of by events; every call goes into the record, with what the gate said and who made it
        where that was code (`wrote`: by, code)."""
        turn, language = (by.id, by.language) if by else ("", "en")
        key = f"{turn or new_id()}:{call.id}"
        put = self._sessions.outbox.put
        context = self._context_of(session, call, language, turn)
        verdict = fault or await self._actions.judge(call, context)
        facts = wrote | {"tool": call.tool, "args": json.dumps(call.args, ensure_ascii=False)}
        facts |= {} if isinstance(verdict, str) else verdict.record()
        risk = self._actions.tools.risk(call)
        with self._hub.commit() as add:
            put("action", f"{key}:action", session, turn, call=call.id, **facts)
            if turn:
                add(session, schema.ToolStarted(turn, call.id, call.tool, call.args, risk))
        if isinstance(verdict, str):
            result, spent, done = ToolResult(call.id, False, verdict), 0, False
        else:
            result, spent, done = await self._actions.run(call, context, verdict, turn)
        await asyncio.sleep(0)  # output that is on its way stands before the result
        with self._hub.commit() as add:
            how = {"ok": result.ok, "done": done, "text": result.text[:RECORDED]}
            put("outcome", f"{key}:outcome", session, turn, call=call.id, **how)
            if turn:
                add(session, schema.ToolCompleted(call.id, result.ok, result.text, spent))
        return result

    def _context_of(self, session: str, call: Call, language: str, turn: str) -> Context:
        """What a call works with. Output may come from the worker thread of the tool."""
        loop = asyncio.get_running_loop()

        def show(text: str) -> None:
            with contextlib.suppress(StorageError):  # the hub has told of it
                self._hub.publish(session, schema.ToolOutput(call.id, text))

        def emit(text: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
                loop.call_soon_threadsafe(show, text)

        cwd = self._sessions.cwd(session)
        toolsets = self._sessions.toolsets(session)
        more = (self._results, self._closed, toolsets, language, turn)
        return Context(session, cwd, emit, *more)

    def _steer(self, turn: Turn) -> None:
        """Slip in what the person sent meanwhile with mode `steer`."""
        for row in self._sessions.waiting(turn.session, "steer"):
            message = Message(row.message, "user", row.text)
            with self._hub.commit(durable=True) as add:
                self._sessions.take(row)
                self._sessions.say(add, turn.session, turn.id, message)

    def _store(self, turn: Turn, message: Message) -> None:
        with self._hub.commit() as add:
            self._sessions.say(add, turn.session, turn.id, message)
        if message.role == "assistant" and not message.calls:
            turn.reply = message.text
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
        with self._hub.commit(durable=True) as add:
            self._sessions.mend(add, turn.session, turn.id)  # the disk refused a result
            if turn.said:
                part = Message(turn.message, "assistant", turn.said, interrupted=True)
                self._sessions.say(add, turn.session, turn.id, part)
            self._sessions.end(turn.session)
            fault = None
            if error is not None:
                fault = Error(error.code, str(error))
                add(turn.session, Notice("error", fault.code, fault.message))
            facts = (turn.usage, turn.kind, turn.model_called)
            ids = list(turn.recalled.ids)
            add(turn.session, schema.TurnCompleted(turn.id, reason, *facts, fault, ids))
            end = {"stop_reason": reason, "kind": turn.kind or "", "text": turn.reply or turn.said}
            about = f"{turn.id}:end", turn.session, turn.id
            self._sessions.outbox.put("outcome", *about, model=turn.model_called, **end)
            self._sessions.tell(add, turn.session)
        turn.said = ""
