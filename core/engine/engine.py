"""Answers commands. Wires sessions, hub, model and tools together; long work goes on in turns."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from exo.core.base.clock import Clock
from exo.core.base.errors import ExoError, HomeError
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.base.sqlite import Database
from exo.core.context.engine import ContextEngine
from exo.core.decide.calibration import Calibration
from exo.core.decide.decider import Decider
from exo.core.decide.live import Decisions
from exo.core.decide.providers import providers
from exo.core.engine.actions import Actions, Approvals
from exo.core.engine.erase import erase
from exo.core.engine.loop import Loop, Rules, Turn
from exo.core.engine.offers import Offers
from exo.core.engine.reader import Past, Reader, past
from exo.core.engine.sessions import Sessions, Waiting, check_count, check_id, lost, new_id, spoken
from exo.core.engine.titles import word
from exo.core.gate.gate import Gate
from exo.core.plugins.hooks import Hooks
from exo.core.plugins.loader import Plugins
from exo.core.plugins.registry import Command as PluginCommand
from exo.core.plugins.registry import Core, Registry
from exo.core.plugins.slots import Slots
from exo.core.protocol import schema
from exo.core.protocol.codec import refused
from exo.core.protocol.schema import Call, Command, Message, Notice
from exo.core.retrieve.embedder import SocketEmbedder
from exo.core.retrieve.forget import Needles
from exo.core.retrieve.provider import Provider
from exo.core.router.model import Model
from exo.core.server.hub import Hub
from exo.core.substrate.guard import HOLDS, MOST, Guard
from exo.core.substrate.secrets import device_secrets
from exo.core.toolbox.registry import Toolbox

if TYPE_CHECKING:
    from exo.core.retrieve.memory import Memory

T = TypeVar("T")
PATIENCE = 3.0  # seconds that running turns have to write their end when exod stops
RETRY = 1.0  # seconds between tries to start what waits, on a disk that refuses
HITS = 20  # of one search, unless told


class Engine(Offers):
    """The engine behind the dispatcher. `start` before the first command, `close` after the last."""

    def __init__(
        self,
        database: Database,
        hub: Hub,
        model: Model,
        settings: Settings,
        clock: Clock,
        *,
        notes: Path,
        work: Path,
        server: str,
        plugins: Path | None = None,
        closed: tuple[Path, ...] = (),
        home: Home | None = None,
    ) -> None:
        self._hub = hub
        self._model = model
        self._settings = settings
        self._clock = clock
        self._work = work
        self._server = server
        self.sessions = Sessions(database, clock)
        self._database = database
        self.secrets = device_secrets(home) if home else None
        self.tools = Toolbox(settings.number("tool.timeout"), self.secrets)
        hook_time = settings.number("hook.timeout")
        self._registry = Registry(self.tools, Hooks(hook_time))
        self.plugins = Plugins(self._registry, plugins, set(settings.words("plugins.off")))
        about = PluginCommand("plugins", "What is plugged in.", self._plugins_command)
        self._registry.commands["plugins"] = about
        self._slots = Slots(self._registry, hook_time)
        self._results = database.path.parent / "results"
        wait = settings.number("approval.timeout")
        self._approvals = Approvals(database, hub, self.sessions.outbox, wait)
        gate = Gate(
            home.store / "policies" if home else None,
            clock,
            self._registry.slots,
            lambda: settings.text("tools.ask") == "medium",
        )
        prompts = Path(__file__).with_name("prompts")
        # a model that does not say where it runs is taken to be here: then nobody waits for summaries
        local = getattr(model, "local", lambda role: True)
        self.context = ContextEngine(database, hub, model, self.tuned, clock, lambda: local("aux"))
        rules = Rules(
            settings.count("turn.rounds"),
            settings.count("turn.retries"),
            join=settings.count("deltas.join_ms") / 1000,
        )
        self._loop = Loop(
            self.sessions,
            hub,
            model,
            Actions(
                self.tools, self._registry.hooks, self._approvals, gate, self._spent, self._tell
            ),
            self._slots,
            self._reader,
            clock.local,
            self.context,
            opening(prompts),
            rules,
            closed,
            self._results,
            self._decisions(home),
        )
        self._turns: dict[str, Turn] = {}
        self._memory: Provider | None = None
        if home is not None:
            self._memory = self._remember(home)
            self.plugins.fallback("memory", self._memory.register)
        self.plugins.core = Core(
            *(settings, clock, self._registry.slots, notes, self._registry.channels, self.tools),
            *(self._loop.act, self.before, self.undo_before, self.panel, self.sessions.as_of),
            *(self.new_session, self.deliver, self.sessions.info, self._memory, self.secrets),
        )
        self._guard = Guard(home.state / "starts.json", clock) if home else None
        self._closing = False
        self._tasks: set[asyncio.Task[Any]] = set()  # beside the turns; each may be cancelled
        # the command `turn.send` is answered by the method `on_turn_send`
        self._handlers: dict[str, Any] = {}
        for name in schema.COMMANDS:
            method = "on_" + name.replace(".", "_")
            if hasattr(self, method):
                self._handlers[name] = getattr(self, method)

    def _decisions(self, home: Home | None) -> Decisions:
        def record(facts: dict[str, Any]) -> None:
            session, turn = facts.pop("session", ""), facts.pop("turn", "")
            with contextlib.suppress(HomeError), self._hub.commit():  # no turn fails for it
                id_ = new_id()
                self.sessions.outbox.put("decision", id_, session, turn, asked=id_, **facts)

        decider = Decider(
            lambda: providers(self._settings, home.models_socket) if home else [],
            Calibration(home.cache / "decide" if home else None),
            record if home else lambda facts: None,
            self.tuned_for,
        )
        found = Decisions(decider, lambda id_: self._turns[id_].id if id_ in self._turns else "")
        self.plugins.builtin("decide", found.register)
        return found

    def _remember(self, home: Home) -> Provider:
        def opens() -> Memory:
            from exo.core.retrieve.memory import Memory  # libsodium, SQLite: not at the start

            return Memory(home, self._clock, SocketEmbedder(home.models_socket))

        def said(session: str) -> str:
            """The last two messages of the person: "remember that" means the one before."""
            told = [m.text for m in self.sessions.messages(session) if m.role == "user"]
            return "\n".join(told[-2:])

        outbox = self.sessions.outbox
        lines = self._settings.count("reply.lines")
        more = (self._tell, self._erased, lines, self._reader)
        return Provider(home, opens, outbox, said, lambda: not self._turns, *more)

    def _tell(self, code: str, text: str) -> None:
        with contextlib.suppress(HomeError):
            self._hub.publish(None, Notice("warning", code, text))

    async def _spent(self) -> int:
        """What this month's actions have cost, in cents, by the record."""
        from exo.core.ledger.mirror import spent  # libsodium, as above

        if self._memory is None:
            return 0
        await self._memory.drain()
        since = self._clock.local().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return await self._memory.run(lambda memory: spent(memory.ledger, since.timestamp() * 1000))

    async def _erased(self, needles: Needles) -> None:
        """Take what is forgotten out of the schedule and the conversations, and out of what memory holds of them."""
        self._schedule.erase(needles)
        erase(self._database, self._hub, needles)
        for keeper in (self.sessions, self.context.store, self._hub):
            keeper.drop_caches()

    async def handle(self, command: Command, body: Any, hub: Hub) -> Any:
        handler = self._handlers.get(command.type)
        if handler is None:
            raise refused("unsupported", command.type, "this exod does not do that yet")
        return await handler(body)

    def start(self) -> None:
        """Mend what a crash left, go on with what waits, load the plugins. After starts that did not hold,
        with the plugins and artifacts of the last one that did."""
        good = self._guard.begin() if self._guard else None
        if good is not None:
            self.sessions.good_at, self.plugins.only = good.ts, set(good.plugins)
            when = self._clock.local(good.ts)
            why = "starts failed: plugins, tools, prompts and context settings are those of"
            self._tell("guard", f"{MOST} {why} {when:%Y-%m-%d %H:%M %Z}; `exo doctor` says more")
        self._approvals.close_lost()
        for session, turn in self.sessions.left_running():
            self._loop.end_lost(session, turn)
        for session in self.sessions.waiting_sessions():
            self._next(session)
        self._background(self._plug_in(), "tool plugins")
        self._background(self._hold())
        self._rest_all()

    async def _hold(self) -> None:
        await self.plugins.ready()
        await asyncio.sleep(HOLDS)
        self._held()

    def _held(self) -> None:
        """After a while of life, or at an orderly end: this start was a good one, or cut short."""
        loaded = [row["name"] for row in self.plugins.records() if row["state"] == "loaded"]
        whole = self.plugins.loading is not None and self.plugins.loading.done()
        with contextlib.suppress(HomeError):
            if self._guard is not None:
                self._guard.held(loaded if whole else None)

    async def close(self) -> None:
        """Interrupt running turns, with their record, and stop; what waits goes on at the next start."""
        self._closing = True
        tasks = [turn.task for turn in self._turns.values() if turn.task is not None]
        for turn in self._turns.values():
            turn.interrupt()
        self._held()
        await self.plugins.close()
        others = list(self._tasks)
        for task in others:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)
        for task in tasks:
            task.cancel()  # the disk refused its end: the next start writes that
        await asyncio.gather(*tasks, *others, return_exceptions=True)
        if self._memory is not None:
            await self._memory.close()
        await self.context.close()

    @property
    def busy(self) -> bool:
        """Whether a turn or a tool runs, plugins load, or something is to come: reasons to stay."""
        acts = any(task.get_name().startswith("tool ") for task in self._tasks)
        return acts or bool(self._turns) or self._schedule.busy

    # ---- sessions --------------------------------------------------------------------------------

    async def on_hello(self, body: schema.Hello) -> schema.HelloResult:
        if body.protocol != schema.VERSION:
            why = f"this exod speaks {schema.VERSION}, the client {body.protocol}"
            raise refused("protocol", "agree on a protocol", why)
        hub = self._hub
        live = ["events.subscribe", *self._handlers]
        return schema.HelloResult(schema.VERSION, self._server, hub.seq, live, hub.first)

    async def on_session_create(self, body: schema.SessionCreate) -> schema.SessionRef:
        cwd = Path(body.cwd) if body.cwd else self._work
        if not cwd.is_absolute() or not os.path.isdir(cwd):  # noqa: PTH112 - Path's raises when too long
            why = "there is no such folder; give a full path"
            raise refused("bad_cwd", f"work in {str(cwd)[:200]!r}", why)
        toolsets = body.toolsets
        if toolsets is None:
            toolsets = self._settings.words("tools.sets") or None
        return schema.SessionRef(self.new_session(body.title or "", cwd, toolsets))

    def new_session(
        self, title: str, cwd: Path | None = None, toolsets: list[str] | None = None
    ) -> str:
        """Make a session, in the folder where work is done unless told. Raises StorageError."""
        with self._hub.commit() as add:
            title = " ".join(title.split())[:200]
            id_ = self.sessions.create(title, cwd or self._work, toolsets)
            add(id_, schema.SessionCreated(title))
        return id_

    async def on_session_list(self, body: schema.SessionList) -> schema.SessionListResult:
        limit = check_count("session.list.limit", body.limit, 50)
        return schema.SessionListResult(self.sessions.recent(limit))

    async def on_session_get(self, body: schema.SessionGet) -> schema.SessionGetResult:
        info = self.sessions.info(body.session)
        return schema.SessionGetResult(info, self.sessions.messages(body.session))

    async def on_session_resume(self, body: schema.SessionResume) -> schema.SessionRef:
        self.sessions.info(body.session)
        if body.session not in self._turns and self.sessions.unanswered(body.session):
            with self._hub.commit(durable=True) as add:  # calls that a crash left without a result
                last = self.sessions.last_turn(body.session)
                self.sessions.mend(add, body.session, last)
        self.context.touch(body.session)
        warms = f"prefill {body.session}"
        if body.prefill and body.session not in self._turns and not self._named(warms):
            self._rest_all()  # somebody is about to speak
            self._background(self._prefill(body.session), warms)
        return schema.SessionRef(body.session)

    async def on_search(self, body: schema.Search) -> schema.SearchResult:
        limit = check_count("search.limit", body.limit, HITS)
        if body.session is not None:
            self.sessions.info(body.session)
        return schema.SearchResult(self.sessions.index.find(body.query, body.session, limit))

    async def on_session_fork(self, body: schema.SessionFork) -> schema.SessionRef:
        """A fork of a session whose turn runs has what stood when it was made, in whole rounds."""
        with self._hub.commit(durable=True) as add:
            fork = self.sessions.fork(body.session, body.at)
            self.context.store.copy(body.session, fork)
            add(fork, schema.SessionCreated(self.sessions.info(fork).title))
            self.sessions.tell(add, fork)
        return schema.SessionRef(fork)

    async def on_session_undo(self, body: schema.SessionUndo) -> schema.UndoResult:
        self.sessions.info(body.session)
        turns = check_count("session.undo.turns", body.turns, 1)
        if body.session in self._turns:
            raise refused("turn_running", "undo", "a turn runs in this session; interrupt it first")
        with self._hub.commit(durable=True) as add:
            removed = self.sessions.undo(body.session, turns)
            left = self.sessions.messages(body.session)
            self.context.forget_after(body.session, left[-1].id if left else "")
            self.sessions.tell(add, body.session)
        return schema.UndoResult(removed)

    async def _plug_in(self) -> None:
        await self.plugins.ready()
        if self._memory is not None:
            await self._memory.go_on()

    def _background(self, work: Coroutine[Any, Any, T], name: str = "") -> asyncio.Task[T]:
        """Do something that may be dropped at any time, in the background."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _named(self, name: str) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks if task.get_name() == name]

    def _rest_all(self) -> None:
        """Nothing happens now: word titles after a while of that."""
        for task in self._named("titles"):
            task.cancel()
        idle = self._settings.number("titles.idle")
        if idle and not self._turns and not self._closing:
            self._background(word(self.sessions, self._hub, self._model, idle), "titles")

    async def _rest(self, session: str) -> None:
        """After a turn: fold while nobody waits, and let the server compute the new prefix."""
        try:
            changed = await self.context.rest(session)
        except ExoError:
            return  # a disk that refuses: the next turn folds, or says so
        if changed and session not in self._turns:
            await self._prefill(session)

    async def _prefill(self, session: str) -> None:
        await self.plugins.ready()
        try:
            await self._slots.artifacts(session, self.sessions.as_of(session))
            request = await self._loop.request(session, wait=False)
            await self._model.prefill("main", request)
        except ExoError:
            return  # only speed is lost: the turn itself will say what is wrong

    # ---- turns -----------------------------------------------------------------------------------

    async def on_turn_send(self, body: schema.TurnSend) -> schema.TurnSendResult:
        self.sessions.info(body.session)
        text = spoken(body.text)
        message = new_id() if body.message is None else check_id(body.message)
        if known := self.sessions.sent(body.session, message):
            return schema.TurnSendResult(True, known)
        return self._send(body.session, text, message, body.mode, body.channel or "typed")

    def _send(
        self, session: str, text: str, message: str, mode: str | None, channel: str
    ) -> schema.TurnSendResult:
        turn = Turn(session, new_id(), text, channel=channel)
        running = self._turns.get(session)
        if running is None:
            self._loop.accept(turn, message)
            self._run(turn)
            return schema.TurnSendResult(True, turn.id)
        if [name for name, _ in self._reader().plan(text, self._clock.local()).calls] == ["stop"]:
            running.interrupt()
            mode = "queue"
        if mode not in ("steer", "queue"):
            why = "a turn runs in this session"
            raise refused("turn_running", "send a turn", f"{why}; send it as steer or queue")
        id_ = running.id if mode == "steer" else turn.id
        with self._hub.commit(durable=True):
            self.sessions.wait(session, Waiting(id_, message, text, mode), channel)
        return schema.TurnSendResult(True, id_)

    async def deliver(self, session: str, text: str, key: str, ask: bool, bell: str = "") -> bool:
        """Once a key: tell the person `text`, `ask` it as if it had been sent at its time (its words teach nothing), or
        show it, be the session there or not, as a notice of code `bell`. False: it was done before. Raises
        ProtocolError for a session that is gone, StorageError."""
        if not bell:
            self.sessions.info(session)
        if self.sessions.sent(session, key):
            return False
        if ask:
            self._send(session, text, key, "queue", "task")
            return True
        with self._hub.commit(durable=True) as add:
            if bell:
                self.sessions.mark(session, key)
            else:
                self.sessions.say(add, session, new_id(), Message(key, "assistant", text))
            add(session or None, Notice("info", bell or "reminder", text))
        return True

    async def on_turn_interrupt(self, body: schema.TurnInterrupt) -> schema.InterruptResult:
        self.sessions.info(body.session)
        turn = self._turns.get(body.session)
        acting = self._named(f"tool {body.session}")
        for task in acting:
            task.cancel()
        if turn is not None:
            turn.interrupt()
        return schema.InterruptResult(turn is not None or bool(acting))

    async def on_approval_respond(self, body: schema.ApprovalRespond) -> schema.Nothing:
        by = body.by or "client"
        self._approvals.respond(body.request, body.choice, by, body.via or "")
        return schema.Nothing()

    def _reader(self) -> Reader:
        found = self._registry.slots.get("reader")
        return found if isinstance(found, Reader) else Reader()

    def before(self, session: str, replied: bool = False) -> Past | None:
        """The turn before the present one, or the last one that has a reply: one may have failed since."""
        return past(self.sessions.messages(session), replied)

    def undo_before(self, session: str) -> Past | None:
        """Take that turn back; returns it, None when there is none."""
        messages = self.sessions.messages(session)
        if (before := past(messages)) is None:
            return None
        with self._hub.commit(durable=True) as add:
            self.sessions.undo(session, 1, self.sessions.last_turn(session))
            kept = {message.id for message in self.sessions.messages(session)}
            old = [m.id for m in messages if m.id in kept][:-2]  # all but this turn's own
            self.context.forget_after(session, old[-1] if old else "")
            self.sessions.tell(add, session)
        return before

    def panel(self, session: str, action: str, data: dict[str, Any]) -> None:
        """A command to the device."""
        self._hub.publish(session, schema.UiPanel("device", "command", action, data))

    def _run(self, turn: Turn) -> None:
        self._turns[turn.session] = turn
        self._rest_all()
        turn.task = asyncio.create_task(self._turn(turn))
        turn.task.add_done_callback(lambda task: self._ended(turn))

    async def _turn(self, turn: Turn) -> None:
        await self.plugins.ready()
        await self._loop.run(turn)
        if turn.reply:
            self._background(self._slots.heard(turn.session, turn.text, turn.reply))
        if self._memory is not None:
            self._background(self._memory.go_on())
        if turn.model_called:
            self._background(self._slots.used(turn.session, turn.usage))
        self._background(self._registry.hooks.fire("on_turn_end", session_id=turn.session))

    def _ended(self, turn: Turn) -> None:
        if self._turns.get(turn.session) is turn:
            del self._turns[turn.session]
            self._next(turn.session)
            self._rest_all()
            if turn.session not in self._turns and not self._closing:
                self._background(self._rest(turn.session), f"rest {turn.session}")

    def _next(self, session: str) -> None:
        """Start the turn that waits, if one does (a steer that came too late is a turn of its own)."""
        if self._closing or session in self._turns:
            return
        try:
            waiting = self.sessions.waiting(session)
            if not waiting:
                return
            row = waiting[0]
            id_ = new_id() if row.mode == "steer" else row.turn
            turn = Turn(session, id_, row.text)
            self._loop.accept(turn, row.message, row)
        except HomeError:  # the disk refuses: the hub has said so; it was accepted, so try on
            asyncio.get_running_loop().call_later(RETRY, self._next, session)
            return
        self._run(turn)

    # ---- what there is ---------------------------------------------------------------------------

    async def on_tool_run(self, body: schema.ToolRun) -> schema.ToolResult:
        """A tool for a client, through the same hooks; turn.interrupt stops it too."""
        self.sessions.info(body.session)
        await self.plugins.ready()
        call = Call(new_id(), body.tool, body.args)
        task = self._background(self._loop.act(body.session, call), f"tool {body.session}")
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        if task.cancelled():
            return lost(call)
        return task.result()


def opening(prompts: Path) -> list[dict[str, Any]]:
    """The messages of system.md and of examples.md (`> ` before what a person says, nothing before
    the answer)."""
    messages = [{"role": "system", "content": (prompts / "system.md").read_text().strip()}]
    for line in filter(str.strip, (prompts / "examples.md").read_text().splitlines()):
        role = "user" if line.startswith("> ") else "assistant"
        messages.append({"role": role, "content": line.removeprefix("> ")})
    return messages
