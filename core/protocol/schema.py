"""Every envelope, command and event of protocol 1, in this one file.

Commands go in, each gets one Response; Events come out, numbered. Within a version changes only add
optional fields. The registries refuse a 31st command or event: a surface that a person can hold.
`python -m exo.tools.protocol` writes schema.json from these classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, dataclass_transform

VERSION = 1
LIMIT = 30  # command types, and event types, at the most

COMMANDS: dict[str, type] = {}
RESULTS: dict[str, type] = {}
EVENTS: dict[str, type] = {}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Shape:
    """What is derived from it becomes a frozen dataclass; the body of a command (`result` None: an empty
    object) or of an event is registered under its name."""

    def __init_subclass__(cls, command: str = "", result: Any = None, event: str = "") -> None:
        dataclass(frozen=True)(cls)
        if command:
            register(COMMANDS, command, cls)
            RESULTS[command] = result or Nothing
        if event:
            register(EVENTS, event, cls)


def register(table: dict[str, type], name: str, cls: type) -> None:
    """Raises ValueError for a name that is taken, and for one too many."""
    if name in table or len(table) >= LIMIT:
        raise ValueError(f"register {name}: twice, or more than {LIMIT} of its sort")
    table[name] = cls


class Command(Shape):
    """A client asks for something. `id` is the client's, and comes back in the Response."""

    id: str
    type: str
    body: dict[str, Any] = field(default_factory=dict)


class Error(Shape):
    """`code` is a stable word to compare; `message` is for a person."""

    code: str
    message: str


class Response(Shape):
    """The one answer to one Command: `result` when ok, else `error`."""

    id: str
    ok: bool
    result: dict[str, Any] | None = None
    error: Error | None = None


class Event(Shape):
    """Something that happened. `seq` rises by one over the whole stream; `ts` is ms UTC."""

    id: str
    seq: int
    session: str | None
    type: str
    ts: int
    body: dict[str, Any]


# ---- values that several bodies share ------------------------------------------------------------


class Nothing(Shape):
    """No fields."""


class Call(Shape):
    """A tool call that the assistant made; `args` is the object that the tool was given."""

    id: str
    tool: str
    args: dict[str, Any]


class ToolResult(Shape):
    """What a call came to; `ok` is false for an error, whose text the model sees too."""

    call: str
    ok: bool
    text: str


class Message(Shape):
    """One message of a session. `interrupted` marks text that was cut off."""

    id: str
    role: Literal["user", "assistant", "tool"]
    text: str
    calls: list[Call] | None = None
    results: list[ToolResult] | None = None
    interrupted: bool | None = None


class Usage(Shape):
    """Tokens of a turn, summed over its model calls; `cached_tokens` were not computed again."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None


class SessionInfo(Shape):
    """A fork names its `parent` and the parent's message that it goes on from."""

    id: str
    title: str
    created: int
    updated: int
    turns: int
    parent: str | None = None
    forked_at: str | None = None


class SessionRef(Shape):
    session: str


class Hit(Shape):
    """A message that was found; what matched stands between « and » in `snippet`."""

    session: str
    message: str
    snippet: str


# ---- results -------------------------------------------------------------------------------------


class HelloResult(Shape):
    """`first` is the lowest number that can still be replayed."""

    protocol: int
    server: str
    seq: int
    capabilities: list[str]
    first: int = 1


class SessionListResult(Shape):
    sessions: list[SessionInfo]


class SessionGetResult(Shape):
    session: SessionInfo
    messages: list[Message]


class UndoResult(Shape):
    """How many turns were removed."""

    removed: int


class TurnSendResult(Shape):
    accepted: bool
    turn: str


class InterruptResult(Shape):
    interrupted: bool


class SubscribeResult(Shape):
    seq: int
    first: int


class SearchResult(Shape):
    hits: list[Hit]


class Rows(Shape):
    """A list whose rows belong to the subsystem that answers."""

    rows: list[dict[str, Any]]


class ModelsResult(Shape):
    models: list[dict[str, Any]]
    roles: dict[str, list[str]]


class ToolsResult(Shape):
    tools: list[dict[str, Any]]


class CommandsResult(Shape):
    commands: list[dict[str, Any]]


class ConfigResult(Shape):
    """name -> {value, origin, unit, meaning}"""

    settings: dict[str, Any]


class ConfigSaved(Shape):
    """`counts` says from when on the value is used."""

    counts: str = "from the next start"


class AnyResult(Shape):
    result: dict[str, Any]


# ---- commands ------------------------------------------------------------------------------------


class Hello(Shape, command="hello", result=HelloResult):
    protocol: int
    client: str
    capabilities: dict[str, Any] | None = None


class SessionCreate(Shape, command="session.create", result=SessionRef):
    """`toolsets` narrows the tools that the session sees."""

    title: str | None = None
    cwd: str | None = None
    toolsets: list[str] | None = None


class SessionList(Shape, command="session.list", result=SessionListResult):
    limit: int | None = None


class SessionGet(Shape, command="session.get", result=SessionGetResult):
    session: str


class SessionResume(Shape, command="session.resume", result=SessionRef):
    """`prefill` computes what the next request begins with, for a person who is about to speak."""

    session: str
    prefill: bool | None = None


class SessionFork(Shape, command="session.fork", result=SessionRef):
    """`at` is the last message that the fork has (none: all of them)."""

    session: str
    at: str | None = None


class SessionUndo(Shape, command="session.undo", result=UndoResult):
    session: str
    turns: int | None = None


class TurnSend(Shape, command="turn.send", result=TurnSendResult):
    """While a turn runs, `send` is refused, `steer` goes in before the next model call, `queue`
    waits for the end of the turn. `message` is an id that the client chooses for what is said: sent
    again with the same id after a lost answer, it is answered again and not said twice. `channel`
    is how it came (typed, unless told)."""

    session: str
    text: str
    mode: Literal["send", "steer", "queue"] | None = None
    message: str | None = None
    channel: Literal["typed", "voice", "console"] | None = None


class TurnInterrupt(Shape, command="turn.interrupt", result=InterruptResult):
    session: str


class ApprovalRespond(Shape, command="approval.respond"):
    """`by` names the client that the person used, `via` how they answered: a voice may only deny."""

    request: str
    choice: Literal["allow", "deny", "allow_always"]
    by: str | None = None
    via: Literal["button", "voice", "typed"] | None = None


class QuestionAnswer(Shape, command="question.answer"):
    question: str
    answer: str


class EventsSubscribe(Shape, command="events.subscribe", result=SubscribeResult):
    """On transports of lines; over HTTP it is GET /events."""

    since: int | None = None
    session: str | None = None


class Search(Shape, command="search", result=SearchResult):
    query: str
    session: str | None = None
    limit: int | None = None


class ModelsList(Shape, command="models.list", result=ModelsResult): ...


class ModelsSet(Shape, command="models.set"):
    role: Literal["main", "aux", "decision"]
    routes: list[str]


class ToolsList(Shape, command="tools.list", result=ToolsResult):
    session: str | None = None


class ToolRun(Shape, command="tool.run", result=ToolResult):
    session: str
    tool: str
    args: dict[str, Any]


class CommandList(Shape, command="command.list", result=CommandsResult): ...


class CommandRun(Shape, command="command.run", result=AnyResult):
    name: str
    args: dict[str, Any] | None = None
    session: str | None = None


class SkillsList(Shape, command="skills.list", result=Rows): ...


class ConfigGet(Shape, command="config.get", result=ConfigResult):
    keys: list[str] | None = None


class ConfigSet(Shape, command="config.set", result=ConfigSaved):
    key: str
    value: str | int | float | bool


class TasksList(Shape, command="tasks.list", result=Rows): ...


class SeatList(Shape, command="seat.list", result=Rows): ...


class TasteList(Shape, command="taste.list", result=Rows): ...


class TasteEdit(Shape, command="taste.edit"):
    id: str
    text: str | None = None
    action: str | None = None


class MemoryQuery(Shape, command="memory.query", result=AnyResult):
    verb: str
    args: dict[str, Any]


class InboxList(Shape, command="inbox.list", result=Rows):
    entity: str | None = None
    status: str | None = None


class InboxUpdate(Shape, command="inbox.update"):
    id: str
    status: str
    resolution: str | None = None


# ---- events --------------------------------------------------------------------------------------


class SessionCreated(Shape, event="session.created"):
    title: str


class SessionUpdated(Shape, event="session.updated"):
    title: str | None = None
    turns: int | None = None
    updated: int | None = None


class TurnStarted(Shape, event="turn.started"):
    turn: str


class TurnCompleted(Shape, event="turn.completed"):
    """`kind` is what sort of request it was; `model_called` whether a language model worded it;
    `error` is there when stop_reason is "error"; `recalled` are ids of what was remembered for it."""

    turn: str
    stop_reason: Literal["end", "length", "interrupted", "rounds", "error"]
    usage: Usage
    kind: str | None = None
    model_called: bool | None = None
    error: Error | None = None
    recalled: list[str] | None = None


class MessageDelta(Shape, event="message.delta"):
    turn: str
    message: str
    text: str


class ReasoningDelta(Shape, event="reasoning.delta"):
    turn: str
    message: str
    text: str


class MessageCompleted(Shape, event="message.completed"):
    turn: str
    message: Message


class ToolStarted(Shape, event="tool.started"):
    turn: str
    call: str
    tool: str
    args: dict[str, Any]
    risk: Literal["low", "medium", "high"]


class ToolOutput(Shape, event="tool.output"):
    call: str
    text: str


class ToolCompleted(Shape, event="tool.completed"):
    call: str
    ok: bool
    text: str
    ms: int


class UsageUpdated(Shape, event="usage.updated"):
    """`usage` of the turn so far, `total` of its session since it was made."""

    turn: str
    usage: Usage
    total: Usage | None = None


class ContextCompacted(Shape, event="context.compacted"):
    """Tokens before and after."""

    before: int
    after: int


class ApprovalRequested(Shape, event="approval.requested"):
    """`digest` is the hash of the call as it would run, `axes` its consequences; `always`: whether an
    allow_always would count for more than this once."""

    request: str
    summary: str
    risk: Literal["low", "medium", "high"]
    tool: str
    args: dict[str, Any]
    expires: int
    digest: str | None = None
    axes: dict[str, Any] | None = None
    always: bool | None = None


class ApprovalResolved(Shape, event="approval.resolved"):
    request: str
    choice: Literal["allow", "deny", "allow_always"]
    by: str


class QuestionAsked(Shape, event="question.asked"):
    question: str
    text: str
    options: list[str] | None = None


class Notice(Shape, event="notice"):
    level: Literal["info", "warning", "error"]
    code: str
    text: str


class UiPanel(Shape, event="ui.panel"):
    panel: str
    kind: str
    action: str
    data: dict[str, Any]


class HandoffWritten(Shape, event="handoff.written"): ...


class TaskUpdated(Shape, event="task.updated"): ...


class DecisionQueued(Shape, event="decision.queued"): ...


class TasteUpdated(Shape, event="taste.updated"): ...


class InboxUpdated(Shape, event="inbox.updated"): ...


class SyncUpdated(Shape, event="sync.updated"): ...
