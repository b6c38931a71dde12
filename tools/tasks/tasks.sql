CREATE TABLE tasks (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL DEFAULT 'task', -- task, timer or reminder
  line TEXT NOT NULL, zone TEXT NOT NULL, text TEXT NOT NULL, session TEXT NOT NULL,
  ask INTEGER NOT NULL, missed TEXT NOT NULL, wake TEXT NOT NULL, since INTEGER NOT NULL,
  slot INTEGER, -- when it is to fire next, ms UTC; null: never again
  seen TEXT NOT NULL DEFAULT '', -- what the condition gave last
  holder TEXT NOT NULL DEFAULT '', until INTEGER NOT NULL DEFAULT 0, -- the lease
  rests TEXT NOT NULL DEFAULT '' -- why it comes no more, where what it needs is gone
) STRICT;
CREATE INDEX tasks_slot ON tasks (slot);
CREATE TABLE moved (id TEXT PRIMARY KEY) STRICT; -- timers that came out of sessions.sqlite
