PRAGMA secure_delete = ON;
CREATE TABLE items (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, source TEXT NOT NULL, external TEXT NOT NULL, url TEXT NOT NULL,
  title TEXT NOT NULL, text TEXT NOT NULL, tags TEXT NOT NULL, created TEXT NOT NULL, tier TEXT NOT NULL,
  review TEXT NOT NULL, trust TEXT NOT NULL, hash TEXT NOT NULL, ts INTEGER NOT NULL, entries TEXT NOT NULL
) STRICT;
CREATE INDEX items_hash ON items (hash);
-- sha, data: what the file shall hold ('-': no file); disk, mtime, size: what was last seen of it on the disk
CREATE TABLE files (
  path TEXT PRIMARY KEY, stem TEXT NOT NULL DEFAULT '', id TEXT NOT NULL DEFAULT '', sha TEXT NOT NULL DEFAULT '-',
  disk TEXT NOT NULL DEFAULT '', mtime INTEGER NOT NULL DEFAULT 0, size INTEGER NOT NULL DEFAULT 0,
  trust TEXT NOT NULL DEFAULT 'self', ts INTEGER NOT NULL DEFAULT 0, entries TEXT NOT NULL DEFAULT '',
  norm TEXT NOT NULL DEFAULT '', data BLOB
) STRICT;
CREATE INDEX files_stem ON files (stem);
CREATE INDEX files_id ON files (id);
CREATE INDEX files_norm ON files (norm);
-- what every sync reads, apart from the bytes
CREATE INDEX files_seen ON files (path, sha, disk, mtime, size);
CREATE TABLE changes (rev INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
-- revisions of tables that were made anew are none of those before: they begin at the microsecond
INSERT INTO meta VALUES ('first', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000);
INSERT INTO sqlite_sequence (name, seq) SELECT 'changes', value FROM meta;
