// Exo protocol 1. Made by exo.tools.protocol; do not edit.

export const PROTOCOL = 1;

export interface AnyResult {
  result: Record<string, unknown>;
}

/** `digest` is the hash of the call as it would run, `axes` its consequences; `always`: whether an allow_always would count for more than this once. */
export interface ApprovalRequested {
  request: string;
  summary: string;
  risk: "low" | "medium" | "high";
  tool: string;
  args: Record<string, unknown>;
  expires: number;
  digest?: string | null;
  axes?: Record<string, unknown> | null;
  always?: boolean | null;
}

export interface ApprovalResolved {
  request: string;
  choice: "allow" | "deny" | "allow_always";
  by: string;
}

/** `by` names the client that the person used, `via` how they answered: a voice may only deny. */
export interface ApprovalRespond {
  request: string;
  choice: "allow" | "deny" | "allow_always";
  by?: string | null;
  via?: "button" | "voice" | "typed" | null;
}

/** A tool call that the assistant made; `args` is the object that the tool was given. */
export interface Call {
  id: string;
  tool: string;
  args: Record<string, unknown>;
}

/** A client asks for something. `id` is the client's, and comes back in the Response. */
export interface Command {
  id: string;
  type: string;
  body?: Record<string, unknown>;
}

export interface CommandList {
}

export interface CommandRun {
  name: string;
  args?: Record<string, unknown> | null;
  session?: string | null;
}

export interface CommandsResult {
  commands: Array<Record<string, unknown>>;
}

export interface ConfigGet {
  keys?: Array<string> | null;
}

/** name -> {value, origin, unit, meaning} */
export interface ConfigResult {
  settings: Record<string, unknown>;
}

/** `counts` says from when on the value is used. */
export interface ConfigSaved {
  counts?: string;
}

export interface ConfigSet {
  key: string;
  value: string | number | number | boolean;
}

/** Tokens before and after. */
export interface ContextCompacted {
  before: number;
  after: number;
}

export interface DecisionQueued {
}

/** `code` is a stable word to compare; `message` is for a person. */
export interface Error {
  code: string;
  message: string;
}

/** Something that happened. `seq` rises by one over the whole stream; `ts` is ms UTC. */
export interface Event {
  id: string;
  seq: number;
  session: string | null;
  type: string;
  ts: number;
  body: Record<string, unknown>;
}

/** On transports of lines; over HTTP it is GET /events. */
export interface EventsSubscribe {
  since?: number | null;
  session?: string | null;
}

export interface HandoffWritten {
}

export interface Hello {
  protocol: number;
  client: string;
  capabilities?: Record<string, unknown> | null;
}

/** `first` is the lowest number that can still be replayed. */
export interface HelloResult {
  protocol: number;
  server: string;
  seq: number;
  capabilities: Array<string>;
  first?: number;
}

/** A message that was found; what matched stands between « and » in `snippet`. */
export interface Hit {
  session: string;
  message: string;
  snippet: string;
}

export interface InboxList {
  entity?: string | null;
  status?: string | null;
}

export interface InboxUpdate {
  id: string;
  status: string;
  resolution?: string | null;
}

export interface InboxUpdated {
}

export interface InterruptResult {
  interrupted: boolean;
}

export interface MemoryQuery {
  verb: string;
  args: Record<string, unknown>;
}

/** One message of a session. `interrupted` marks text that was cut off. */
export interface Message {
  id: string;
  role: "user" | "assistant" | "tool";
  text: string;
  calls?: Array<Call> | null;
  results?: Array<ToolResult> | null;
  interrupted?: boolean | null;
}

export interface MessageCompleted {
  turn: string;
  message: Message;
}

export interface MessageDelta {
  turn: string;
  message: string;
  text: string;
}

export interface ModelsList {
}

export interface ModelsResult {
  models: Array<Record<string, unknown>>;
  roles: Record<string, Array<string>>;
}

export interface ModelsSet {
  role: "main" | "aux" | "decision";
  routes: Array<string>;
}

/** No fields. */
export interface Nothing {
}

export interface Notice {
  level: "info" | "warning" | "error";
  code: string;
  text: string;
}

export interface QuestionAnswer {
  question: string;
  answer: string;
}

export interface QuestionAsked {
  question: string;
  text: string;
  options?: Array<string> | null;
}

export interface ReasoningDelta {
  turn: string;
  message: string;
  text: string;
}

/** The one answer to one Command: `result` when ok, else `error`. */
export interface Response {
  id: string;
  ok: boolean;
  result?: Record<string, unknown> | null;
  error?: Error | null;
}

/** A list whose rows belong to the subsystem that answers. */
export interface Rows {
  rows: Array<Record<string, unknown>>;
}

export interface Search {
  query: string;
  session?: string | null;
  limit?: number | null;
}

export interface SearchResult {
  hits: Array<Hit>;
}

export interface SeatList {
}

/** `toolsets` narrows the tools that the session sees. */
export interface SessionCreate {
  title?: string | null;
  cwd?: string | null;
  toolsets?: Array<string> | null;
}

export interface SessionCreated {
  title: string;
}

/** `at` is the last message that the fork has (none: all of them). */
export interface SessionFork {
  session: string;
  at?: string | null;
}

export interface SessionGet {
  session: string;
}

export interface SessionGetResult {
  session: SessionInfo;
  messages: Array<Message>;
}

/** A fork names its `parent` and the parent's message that it goes on from. */
export interface SessionInfo {
  id: string;
  title: string;
  created: number;
  updated: number;
  turns: number;
  parent?: string | null;
  forked_at?: string | null;
}

export interface SessionList {
  limit?: number | null;
}

export interface SessionListResult {
  sessions: Array<SessionInfo>;
}

export interface SessionRef {
  session: string;
}

/** `prefill` computes what the next request begins with, for a person who is about to speak. */
export interface SessionResume {
  session: string;
  prefill?: boolean | null;
}

export interface SessionUndo {
  session: string;
  turns?: number | null;
}

export interface SessionUpdated {
  title?: string | null;
  turns?: number | null;
  updated?: number | null;
}

export interface SkillsList {
}

export interface SubscribeResult {
  seq: number;
  first: number;
}

export interface SyncUpdated {
}

export interface TaskUpdated {
}

export interface TasksList {
}

export interface TasteEdit {
  id: string;
  text?: string | null;
  action?: string | null;
}

export interface TasteList {
}

export interface TasteUpdated {
}

export interface ToolCompleted {
  call: string;
  ok: boolean;
  text: string;
  ms: number;
}

export interface ToolOutput {
  call: string;
  text: string;
}

/** What a call came to; `ok` is false for an error, whose text the model sees too. */
export interface ToolResult {
  call: string;
  ok: boolean;
  text: string;
}

export interface ToolRun {
  session: string;
  tool: string;
  args: Record<string, unknown>;
}

export interface ToolStarted {
  turn: string;
  call: string;
  tool: string;
  args: Record<string, unknown>;
  risk: "low" | "medium" | "high";
}

export interface ToolsList {
  session?: string | null;
}

export interface ToolsResult {
  tools: Array<Record<string, unknown>>;
}

/** `kind` is what sort of request it was; `model_called` whether a language model worded it; `error` is there when stop_reason is "error"; `recalled` are ids of what was remembered for it. */
export interface TurnCompleted {
  turn: string;
  stop_reason: "end" | "length" | "interrupted" | "rounds" | "error";
  usage: Usage;
  kind?: string | null;
  model_called?: boolean | null;
  error?: Error | null;
  recalled?: Array<string> | null;
}

export interface TurnInterrupt {
  session: string;
}

/** While a turn runs, `send` is refused, `steer` goes in before the next model call, `queue` waits for the end of the turn. `message` is an id that the client chooses for what is said: sent again with the same id after a lost answer, it is answered again and not said twice. `channel` is how it came (typed, unless told). */
export interface TurnSend {
  session: string;
  text: string;
  mode?: "send" | "steer" | "queue" | null;
  message?: string | null;
  channel?: "typed" | "voice" | "console" | null;
}

export interface TurnSendResult {
  accepted: boolean;
  turn: string;
}

export interface TurnStarted {
  turn: string;
}

export interface UiPanel {
  panel: string;
  kind: string;
  action: string;
  data: Record<string, unknown>;
}

/** How many turns were removed. */
export interface UndoResult {
  removed: number;
}

/** Tokens of a turn, summed over its model calls; `cached_tokens` were not computed again. */
export interface Usage {
  prompt_tokens?: number;
  completion_tokens?: number;
  cached_tokens?: number;
  cost?: number | null;
}

/** `usage` of the turn so far, `total` of its session since it was made. */
export interface UsageUpdated {
  turn: string;
  usage: Usage;
  total?: Usage | null;
}

export interface Commands {
  "hello": Hello;
  "session.create": SessionCreate;
  "session.list": SessionList;
  "session.get": SessionGet;
  "session.resume": SessionResume;
  "session.fork": SessionFork;
  "session.undo": SessionUndo;
  "turn.send": TurnSend;
  "turn.interrupt": TurnInterrupt;
  "approval.respond": ApprovalRespond;
  "question.answer": QuestionAnswer;
  "events.subscribe": EventsSubscribe;
  "search": Search;
  "models.list": ModelsList;
  "models.set": ModelsSet;
  "tools.list": ToolsList;
  "tool.run": ToolRun;
  "command.list": CommandList;
  "command.run": CommandRun;
  "skills.list": SkillsList;
  "config.get": ConfigGet;
  "config.set": ConfigSet;
  "tasks.list": TasksList;
  "seat.list": SeatList;
  "taste.list": TasteList;
  "taste.edit": TasteEdit;
  "memory.query": MemoryQuery;
  "inbox.list": InboxList;
  "inbox.update": InboxUpdate;
}

export interface Results {
  "hello": HelloResult;
  "session.create": SessionRef;
  "session.list": SessionListResult;
  "session.get": SessionGetResult;
  "session.resume": SessionRef;
  "session.fork": SessionRef;
  "session.undo": UndoResult;
  "turn.send": TurnSendResult;
  "turn.interrupt": InterruptResult;
  "approval.respond": Nothing;
  "question.answer": Nothing;
  "events.subscribe": SubscribeResult;
  "search": SearchResult;
  "models.list": ModelsResult;
  "models.set": Nothing;
  "tools.list": ToolsResult;
  "tool.run": ToolResult;
  "command.list": CommandsResult;
  "command.run": AnyResult;
  "skills.list": Rows;
  "config.get": ConfigResult;
  "config.set": ConfigSaved;
  "tasks.list": Rows;
  "seat.list": Rows;
  "taste.list": Rows;
  "taste.edit": Nothing;
  "memory.query": AnyResult;
  "inbox.list": Rows;
  "inbox.update": Nothing;
}

export interface Events {
  "session.created": SessionCreated;
  "session.updated": SessionUpdated;
  "turn.started": TurnStarted;
  "turn.completed": TurnCompleted;
  "message.delta": MessageDelta;
  "reasoning.delta": ReasoningDelta;
  "message.completed": MessageCompleted;
  "tool.started": ToolStarted;
  "tool.output": ToolOutput;
  "tool.completed": ToolCompleted;
  "usage.updated": UsageUpdated;
  "context.compacted": ContextCompacted;
  "approval.requested": ApprovalRequested;
  "approval.resolved": ApprovalResolved;
  "question.asked": QuestionAsked;
  "notice": Notice;
  "ui.panel": UiPanel;
  "handoff.written": HandoffWritten;
  "task.updated": TaskUpdated;
  "decision.queued": DecisionQueued;
  "taste.updated": TasteUpdated;
  "inbox.updated": InboxUpdated;
  "sync.updated": SyncUpdated;
}

export type AnyCommand = { [K in keyof Commands]: Omit<Command, "type" | "body"> & { type: K; body: Commands[K] } }[keyof Commands];

export type AnyEvent = { [K in keyof Events]: Omit<Event, "type" | "body"> & { type: K; body: Events[K] } }[keyof Events];
