PRAGMA secure_delete = ON;
CREATE TABLE documents (
  n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, ts INTEGER NOT NULL, data TEXT NOT NULL
) STRICT;
CREATE INDEX documents_ts ON documents (ts);
CREATE TABLE links (source INTEGER NOT NULL, type TEXT NOT NULL, target TEXT NOT NULL) STRICT;
CREATE INDEX links_source ON links (source);
CREATE INDEX links_target ON links (target);
-- a document, or a piece of a long one; hash: of what is embedded of it
CREATE TABLE parts (
  n INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL, hash BLOB NOT NULL
) STRICT;
CREATE INDEX parts_document ON parts (document);
CREATE INDEX parts_hash ON parts (hash);
-- the text itself stands in documents alone
CREATE VIRTUAL TABLE search USING fts5 (
  title, summary, load_when, tags, body, content = '', tokenize = 'ascii'
);
INSERT INTO search (search, rank) VALUES ('rank', 'bm25(3.0, 2.0, 2.0, 1.0, 1.0)');
-- in how many parts a term stands
CREATE TABLE terms (term TEXT PRIMARY KEY, parts INTEGER NOT NULL) STRICT, WITHOUT ROWID;
-- how far the store's changes are in here
CREATE TABLE synced (revision INTEGER NOT NULL) STRICT;
CREATE TABLE models (n INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, width INTEGER NOT NULL) STRICT;
CREATE TABLE vectors (
  n INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, hash BLOB NOT NULL UNIQUE,
  bits BLOB NOT NULL, codes BLOB NOT NULL
) STRICT;
-- texts without a vector; tries: how often the model has failed on it
CREATE TABLE waiting (hash BLOB PRIMARY KEY, tries INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX waiting_tries ON waiting (tries);
