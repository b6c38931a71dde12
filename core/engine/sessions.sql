PRAGMA page_size = 1024;
CREATE TABLE events (seq INTEGER PRIMARY KEY, session TEXT, data TEXT NOT NULL) STRICT;
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  cwd TEXT NOT NULL,
  created INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  turns INTEGER NOT NULL DEFAULT 0,
  parent TEXT,
  forked_at TEXT,
  running TEXT,
  toolsets TEXT,
  prompt_tokens INTEGER NOT NULL DEFAULT 0,
  completion_tokens INTEGER NOT NULL DEFAULT 0,
  cached_tokens INTEGER NOT NULL DEFAULT 0,
  cost REAL
) STRICT;
CREATE TABLE messages (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  session TEXT NOT NULL,
  turn TEXT NOT NULL,
  created INTEGER NOT NULL,
  data TEXT NOT NULL
) STRICT;
CREATE INDEX messages_session ON messages (session, n);
CREATE TABLE waiting (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  session TEXT NOT NULL,
  turn TEXT NOT NULL,
  message TEXT NOT NULL,
  text TEXT NOT NULL,
  mode TEXT NOT NULL
) STRICT;
CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  session TEXT NOT NULL,
  created INTEGER NOT NULL,
  choice TEXT,
  digest TEXT NOT NULL DEFAULT '',
  rules TEXT NOT NULL DEFAULT '',
  used INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE nodes (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  session TEXT NOT NULL,
  level INTEGER NOT NULL,
  place INTEGER NOT NULL,
  last INTEGER NOT NULL,
  text TEXT NOT NULL,
  made_by TEXT NOT NULL
) STRICT;
CREATE INDEX nodes_session ON nodes (session, level, place);
CREATE TABLE views (session TEXT PRIMARY KEY, last INTEGER NOT NULL, nodes TEXT NOT NULL) STRICT;
CREATE TABLE outbox (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  session TEXT NOT NULL,
  turn TEXT NOT NULL,
  ts INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE TABLE undone (message TEXT PRIMARY KEY, session TEXT NOT NULL, turn TEXT NOT NULL) STRICT;
CREATE TABLE untitled (session TEXT PRIMARY KEY) STRICT;
CREATE VIEW texts AS SELECT n, searchable(data) AS text FROM messages;
CREATE VIRTUAL TABLE search USING fts5 (
  text, content = 'texts', content_rowid = 'n',
  tokenize = "unicode61 remove_diacritics 2 categories 'L* M* N* Co So'"
);
