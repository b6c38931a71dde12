"""Artifacts: the texts that decide how Exo works (prompts, texts of tools, settings, code of tools), as versions in the
ledger. Owns which version holds; knows nothing of what an artifact means.

Invariant: the latest version wins, none is ever changed or lost, and a version says who wrote it and, where code
wrote it, the hash of that code. An older one comes back as a new version with its text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from exo.core.base.errors import ExoError
from exo.core.base.settings import changes
from exo.core.ledger.entry import Draft
from exo.core.ledger.ledger import Ledger

LONGEST = 200_000  # characters of a text
_NAME = re.compile(r"[a-z][a-z0-9_-]*(?:/[\w.-]+){1,4}")


@dataclass(frozen=True)
class Version:
    """`number` counts from 1 within its name; `text` None: from here on there is none; `by` is person, model,
    or tool:NAME; `code` the sha256 of the code that wrote it; `why` what it was changed for; `ts` ms UTC."""

    name: str
    number: int
    text: str | None
    by: str
    code: str
    why: str
    ts: int
    entry: str


class Artifacts:
    """The versions in one ledger, in replay order; usable by its thread. `over(turn)` is whether it has ended."""

    def __init__(self, ledger: Ledger, over: Callable[[str], bool] = lambda turn: False) -> None:
        self._ledger, self._over = ledger, over
        self._read, self._named = 0, dict[str, list[Version]]()

    def put(
        self, name: str, text: str | None, by: str, code: str = "", why: str = "", turn: str = ""
    ) -> Version:
        """Make `text` the version that holds; the same text again makes none. `turn` is the one that writes.
        Raises ExoError, and nothing changed, for a name or text that cannot be and for a turn that is over."""
        if not _NAME.fullmatch(name) or len(text or "") > LONGEST:
            do = f"names are like prompt/system, texts have at most {LONGEST} characters"
            raise ExoError(f"keep the artifact {name[:80]!r}", "its name or size is refused", do)
        if text is not None:
            changes(name, text)
        body = {"name": name, "text": text, "by": by, "code": code, "why": why, "turn": turn}

        def draft() -> Draft:  # with the writer's lock held: of two writers one comes second
            if turn and self._over(turn):
                raise ExoError(f"keep the artifact {name}", f"its turn {turn[:40]} is over")
            refs = tuple(each.entry for each in self.history(name)[-1:])
            return Draft("artifact", body, refs)

        if [each.text for each in self.history(name)[-1:]] != [text]:
            self._ledger.append(draft)
        return self.history(name)[-1]

    def history(self, name: str) -> list[Version]:
        """Every version, the first first; [] for none."""
        now = self._ledger.position()
        changed = any(self._ledger.entries(self._read, ("artifact", "forget")))
        if now < self._read or changed:  # all anew: what is merged may belong before what is known
            self._named = {}
            for row in self._ledger.entries(kinds=("artifact",)):  # of any device and time
                body = row.body or {}
                named, text = body.get("name"), body.get("text", 0)
                if isinstance(named, str) and isinstance(text, str | None):
                    rows = self._named.setdefault(named, [])
                    by, code, why = (str(body.get(key, "")) for key in ("by", "code", "why"))
                    rows.append(Version(named, len(rows) + 1, text, by, code, why, row.ts, row.id))
        self._read = now
        return self._named.get(name, [])

    def get(self, name: str, at: int = 0) -> Version | None:
        """The version that holds, or held at `at` (ms UTC; 0: now)."""
        held = [each for each in self.history(name) if not at or each.ts <= at]
        return held[-1] if held and held[-1].text is not None else None

    def names(self, start: str = "") -> list[str]:
        """Names of artifacts that begin so, also of those that hold no longer."""
        self.history("")
        return sorted(name for name in self._named if name.startswith(start))

    def all(self, at: int = 0) -> dict[str, str]:
        """Every text that holds, by name."""
        held = {name: self.get(name, at) for name in self.names()}
        return {name: each.text or "" for name, each in held.items() if each is not None}
