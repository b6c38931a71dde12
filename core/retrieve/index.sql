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
-- one row: how far the store's changes are in here, and the model whose vectors are
CREATE TABLE state (revision INTEGER NOT NULL, model TEXT NOT NULL, width INTEGER NOT NULL) STRICT;
INSERT INTO state VALUES (0, '', 0);
-- of every text in parts; without bits: it waits for its vector, and the model has failed on it so many times
CREATE TABLE vectors (
  n INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, tries INTEGER NOT NULL DEFAULT 0,
  bits BLOB, codes BLOB
) STRICT;
CREATE INDEX vectors_waiting ON vectors (tries) WHERE bits IS NULL;
