"""Every envelope, command and event of protocol 1, in this one file.

Commands go in, each gets one Response; Events come out, numbered. Within a version changes only add
optional fields. The registries refuse a 31st command or event: a surface that a person can hold.
`python -m exo.tools.protocol` writes schema.json from these classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, dataclass_transform

VERSION = 1
LIMIT = 30  # command types, and event types, at the most

T = TypeVar("T", bound=type[Any])
COMMANDS: dict[str, type] = {}
RESULTS: dict[str, type] = {}
EVENTS: dict[str, type] = {}


@dataclass(frozen=True)
class Command:
    """A client asks for something. `id` is the client's, and comes back in the Response."""

    id: str
    type: str
    body: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Error:
    """`code` is a stable word to compare; `message` is for a person."""

    code: str
    message: str


@dataclass(frozen=True)
class Response:
    """The one answer to one Command: `result` when ok, else `error`."""

    id: str
    ok: bool
    result: dict[str, Any] | None = None
    error: Error | None = None


@dataclass(frozen=True)
class Event:
    """Something that happened. `seq` rises by one over the whole stream; `ts` is ms UTC."""

    id: str
    seq: int
    session: str | None
    type: str
    ts: int
    body: dict[str, Any]


def _register(table: dict[str, type], name: str) -> Callable[[T], T]:
    def keep(cls: T) -> T:
        if name in table or len(table) >= LIMIT:
            raise ValueError(f"register {name}: twice, or more than {LIMIT} of its sort")
        table[name] = dataclass(frozen=True)(cls)
        return cls

    return keep


@dataclass_transform(frozen_default=True)
def command(name: str, result: type | None = None) -> Callable[[T], T]:
    """Register a command's body class and the class of its result (None: an empty object)."""
    RESULTS[name] = result or Nothing
    return _register(COMMANDS, name)


@dataclass_transform(frozen_default=True)
def event(name: str) -> Callable[[T], T]:
    """Register an event's body class."""
    return _register(EVENTS, name)


# ---- values that several bodies share ------------------------------------------------------------


@dataclass(frozen=True)
class Nothing:
    """No fields."""


@dataclass(frozen=True)
class Call:
    """A tool call that the assistant made; `args` is the object that the tool was given."""

    id: str
    tool: str
    args: dict[str, Any]


@dataclass(frozen=True)
class ToolResult:
    """What a call came to; `ok` is false for an error, whose text the model sees too."""

    call: str
    ok: bool
    text: str


@dataclass(frozen=True)
class Message:
    """One message of a session. `interrupted` marks text that was cut off."""

    id: str
    role: Literal["user", "assistant", "tool"]
    text: str
    calls: list[Call] | None = None
    results: list[ToolResult] | None = None
    interrupted: bool | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens of a turn, summed over its model calls; `cached_tokens` were not computed again."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None


@dataclass(frozen=True)
class SessionInfo:
    """A fork names its `parent` and the parent's message that it goes on from."""

    id: str
    title: str
    created: int
    updated: int
    turns: int
    parent: str | None = None
    forked_at: str | None = None


@dataclass(frozen=True)
class SessionRef:
    session: str


@dataclass(frozen=True)
class Hit:
    """A message that was found; what matched stands between « and » in `snippet`."""

    session: str
    message: str
    snippet: str


# ---- results -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HelloResult:
    """`first` is the lowest number that can still be replayed."""

    protocol: int
    server: str
    seq: int
    capabilities: list[str]
    first: int = 1


@dataclass(frozen=True)
class SessionListResult:
    sessions: list[SessionInfo]


@dataclass(frozen=True)
class SessionGetResult:
    session: SessionInfo
    messages: list[Message]


@dataclass(frozen=True)
class UndoResult:
    """How many turns were removed."""

    removed: int


@dataclass(frozen=True)
class TurnSendResult:
    accepted: bool
    turn: str


@dataclass(frozen=True)
class InterruptResult:
    interrupted: bool


@dataclass(frozen=True)
class SubscribeResult:
    seq: int
    first: int


@dataclass(frozen=True)
class SearchResult:
    hits: list[Hit]


@dataclass(frozen=True)
class Rows:
    """A list whose rows belong to the subsystem that answers."""

    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class ModelsResult:
    models: list[dict[str, Any]]
    roles: dict[str, list[str]]


@dataclass(frozen=True)
class ToolsResult:
    tools: list[dict[str, Any]]


@dataclass(frozen=True)
class CommandsResult:
    commands: list[dict[str, Any]]


@dataclass(frozen=True)
class ConfigResult:
    """name -> {value, origin, unit, meaning}"""

    settings: dict[str, Any]


@dataclass(frozen=True)
class ConfigSaved:
    """`counts` says from when on the value is used."""

    counts: str = "from the next start"


@dataclass(frozen=True)
class AnyResult:
    result: dict[str, Any]


# ---- commands ------------------------------------------------------------------------------------


@command("hello", HelloResult)
class Hello:
    protocol: int
    client: str
    capabilities: dict[str, Any] | None = None


@command("session.create", SessionRef)
class SessionCreate:
    """`toolsets` narrows the tools that the session sees."""

    title: str | None = None
    cwd: str | None = None
    toolsets: list[str] | None = None


@command("session.list", SessionListResult)
class SessionList:
    limit: int | None = None


@command("session.get", SessionGetResult)
class SessionGet:
    session: str


@command("session.resume", SessionRef)
class SessionResume:
    """`prefill` computes what the next request begins with, for a person who is about to speak."""

    session: str
    prefill: bool | None = None


@command("session.fork", SessionRef)
class SessionFork:
    """`at` is the last message that the fork has (none: all of them)."""

    session: str
    at: str | None = None


@command("session.undo", UndoResult)
class SessionUndo:
    session: str
    turns: int | None = None


@command("turn.send", TurnSendResult)
class TurnSend:
    """While a turn runs, `send` is refused, `steer` goes in before the next model call, `queue`
    waits for the end of the turn. `message` is an id that the client chooses for what is said: sent
    again with the same id after a lost answer, it is answered again and not said twice. `channel`
    is how it came (typed, unless told)."""

    session: str
    text: str
    mode: Literal["send", "steer", "queue"] | None = None
    message: str | None = None
    channel: Literal["typed", "voice", "console"] | None = None


@command("turn.interrupt", InterruptResult)
class TurnInterrupt:
    session: str


@command("approval.respond")
class ApprovalRespond:
    """`by` names the client that the person used."""

    request: str
    choice: Literal["allow", "deny", "allow_always"]
    by: str | None = None


@command("question.answer")
class QuestionAnswer:
    question: str
    answer: str


@command("events.subscribe", SubscribeResult)
class EventsSubscribe:
    """On transports of lines; over HTTP it is GET /events."""

    since: int | None = None
    session: str | None = None


@command("search", SearchResult)
class Search:
    query: str
    session: str | None = None
    limit: int | None = None


@command("models.list", ModelsResult)
class ModelsList:
    pass


@command("models.set")
class ModelsSet:
    role: Literal["main", "aux", "decision"]
    routes: list[str]


@command("tools.list", ToolsResult)
class ToolsList:
    session: str | None = None


@command("tool.run", ToolResult)
class ToolRun:
    session: str
    tool: str
    args: dict[str, Any]


@command("command.list", CommandsResult)
class CommandList:
    pass


@command("command.run", AnyResult)
class CommandRun:
    name: str
    args: dict[str, Any] | None = None
    session: str | None = None


@command("skills.list", Rows)
class SkillsList:
    pass


@command("config.get", ConfigResult)
class ConfigGet:
    keys: list[str] | None = None


@command("config.set", ConfigSaved)
class ConfigSet:
    key: str
    value: str | int | float | bool


@command("tasks.list", Rows)
class TasksList:
    pass


@command("seat.list", Rows)
class SeatList:
    pass


@command("taste.list", Rows)
class TasteList:
    pass


@command("taste.edit")
class TasteEdit:
    id: str
    text: str | None = None
    action: str | None = None


@command("memory.query", AnyResult)
class MemoryQuery:
    verb: str
    args: dict[str, Any]


@command("inbox.list", Rows)
class InboxList:
    entity: str | None = None
    status: str | None = None


@command("inbox.update")
class InboxUpdate:
    id: str
    status: str
    resolution: str | None = None


# ---- events --------------------------------------------------------------------------------------


@event("session.created")
class SessionCreated:
    title: str


@event("session.updated")
class SessionUpdated:
    title: str | None = None
    turns: int | None = None
    updated: int | None = None


@event("turn.started")
class TurnStarted:
    turn: str


@event("turn.completed")
class TurnCompleted:
    """`kind` is what sort of request it was; `model_called` whether a language model worded it;
    `error` is there when stop_reason is "error"; `recalled` are ids of what was remembered for it."""

    turn: str
    stop_reason: Literal["end", "length", "interrupted", "rounds", "error"]
    usage: Usage
    kind: str | None = None
    model_called: bool | None = None
    error: Error | None = None
    recalled: list[str] | None = None


@event("message.delta")
class MessageDelta:
    turn: str
    message: str
    text: str


@event("reasoning.delta")
class ReasoningDelta:
    turn: str
    message: str
    text: str


@event("message.completed")
class MessageCompleted:
    turn: str
    message: Message


@event("tool.started")
class ToolStarted:
    turn: str
    call: str
    tool: str
    args: dict[str, Any]
    risk: Literal["low", "medium", "high"]


@event("tool.output")
class ToolOutput:
    call: str
    text: str


@event("tool.completed")
class ToolCompleted:
    call: str
    ok: bool
    text: str
    ms: int


@event("usage.updated")
class UsageUpdated:
    """`usage` of the turn so far, `total` of its session since it was made."""

    turn: str
    usage: Usage
    total: Usage | None = None


@event("context.compacted")
class ContextCompacted:
    """Tokens before and after."""

    before: int
    after: int


@event("approval.requested")
class ApprovalRequested:
    request: str
    summary: str
    risk: Literal["low", "medium", "high"]
    tool: str
    args: dict[str, Any]
    expires: int


@event("approval.resolved")
class ApprovalResolved:
    request: str
    choice: Literal["allow", "deny", "allow_always"]
    by: str


@event("question.asked")
class QuestionAsked:
    question: str
    text: str
    options: list[str] | None = None


@event("notice")
class Notice:
    level: Literal["info", "warning", "error"]
    code: str
    text: str


@event("ui.panel")
class UiPanel:
    panel: str
    kind: str
    action: str
    data: dict[str, Any]


@event("handoff.written")
class HandoffWritten:
    pass


@event("task.updated")
class TaskUpdated:
    pass


@event("decision.queued")
class DecisionQueued:
    pass


@event("taste.updated")
class TasteUpdated:
    pass


@event("inbox.updated")
class InboxUpdated:
    pass


@event("sync.updated")
class SyncUpdated:
    pass
