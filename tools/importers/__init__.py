"""What `exo import` can bring in: one small module a source, one table of them. A source reads a file or a
folder that belongs to somebody else and changes nothing in it.

Another source is a module with `read(path) -> Iterator[NewItem | Passed]` and a row here."""

from __future__ import annotations

# name -> (module in exo.tools.importers, what PATH is)
SOURCES: dict[str, tuple[str, str]] = {
    "markdown": ("markdown", "a folder of Markdown notes, an Obsidian vault too"),
    "bookmarks": ("bookmarks", "a file of bookmarks as browsers export them (HTML)"),
    "jsonl": (
        "jsonl",
        "a file with one JSON object a line: text, title?, url?, created?, tags?, id?",
    ),
}
