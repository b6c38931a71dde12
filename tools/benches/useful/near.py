"""Does a line answer, or is it only about the same thing? Eight invented people (people/, README.md): what recall puts first,
what the product answers outright, what it tells as nearest, without any language model.

`python -m exo.tools.benches.useful near`"""

from __future__ import annotations

import datetime
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exo.core.base.home import Home
from exo.core.retrieve.candidates import Candidate
from exo.core.retrieve.memory import Memory
from exo.tools.assistant import answer
from exo.tools.benches.quality import MiniLM
from exo.tools.clock import FakeClock

FOLDER = Path(__file__).parent / "people"
PEOPLE = tuple(path.name.split(".")[0] for path in sorted(FOLDER.glob("*.notes.jsonl")))
LANGUAGES = {"carpenter": "de", "cook": "es"}  # the others speak English
FIRST = 8  # hits of a recall
LATER = datetime.timedelta(days=2)  # after the last note


@dataclass(frozen=True)
class Verdict:
    """`answered`: right, old (it held once), wrong, or "": then `told` says whether a nearest line answers. `place` of the
    first hit that answers, from 1, 0 for none."""

    known: bool
    answered: str
    told: bool
    place: int


class Listening:
    """The reader of recall, which keeps what it chose."""

    chosen: Candidate | None = None

    def choose(self, query: str, found: Sequence[Candidate]) -> Candidate | None:
        self.chosen = answer.choose(query, found)
        return self.chosen

    def concerns(self, query: str, found: Sequence[Candidate]) -> bool:
        return False


def rows(name: str, what: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{name}.{what}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def told(
    home: Home, clock: FakeClock, notes: Sequence[tuple[str, str]], now: datetime.datetime
) -> Memory:
    """A store that was told each (ISO time, text) at its time, with all vectors made; then it is `now` (UTC)."""
    model = MiniLM()
    model.embed(["x"])

    def go(to: datetime.datetime) -> None:
        clock.set(to.replace(tzinfo=datetime.UTC).timestamp() - clock.now_ms() / 1000)

    memory = Memory(home, clock, model)
    memory.store.init({})
    for time, text in notes:
        go(datetime.datetime.fromisoformat(time))
        memory.remember(text)
    while memory.index.embed_some(model, 64):
        pass
    go(now)
    return memory


def judged(name: str) -> list[Verdict]:
    """A person's questions, asked two days after the last note."""
    notes = rows(name, "notes")
    now = datetime.datetime.fromisoformat(notes[-1]["ts"]) + LATER
    ids = {row["text"].strip(): row["id"] for row in notes}
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        home = Home(Path(folder)).make()
        memory = told(home, FakeClock(), [(row["ts"], row["text"]) for row in notes], now)
        found = [_judge(memory, row, ids) for row in rows(name, "questions")]
        memory.close()
    return found


def _judge(memory: Memory, row: dict[str, Any], ids: dict[str, str]) -> Verdict:
    reader = Listening()
    hits = memory.recall(row["text"], reader=reader).hits
    places = [ids.get(hit.text.strip()) in row["answers"] for hit in hits[:FIRST]]
    place = places.index(True) + 1 if True in places else 0
    if reader.chosen is None:
        said, _ = answer.nothing(row["text"], "", hits)
        near = any(text in said for text, id_ in ids.items() if id_ in row["answers"])
        return Verdict(bool(row["answers"]), "", near, place)
    chosen = ids.get(reader.chosen.document.body.strip())
    kind = "right" if chosen in row["answers"] else "wrong"
    kind = "old" if chosen in row["superseded"] else kind
    return Verdict(bool(row["answers"]), kind, False, place)


def figures(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Shares of the questions that have an answer, and of those that have none."""
    known = [each for each in verdicts if each.known]
    unknown = [each for each in verdicts if not each.known]
    kinds = Counter(each.answered or ("near" if each.told else "abstained") for each in known)
    found = {"first": sum(each.place == 1 for each in known) / len(known)}
    found["first 8"] = sum(each.place > 0 for each in known) / len(known)
    found |= {
        kind: kinds[kind] / len(known) for kind in ("right", "near", "old", "wrong", "abstained")
    }
    found["none: answered"] = sum(bool(each.answered) for each in unknown) / len(unknown)
    return found


def table() -> Iterator[str]:
    """A row a language."""
    by: dict[str, list[Verdict]] = {}
    for name in PEOPLE:
        by.setdefault(LANGUAGES.get(name, "en"), []).extend(judged(name))
    names = list(figures(by["en"]))
    yield f"| language | questions | {' | '.join(names)} |"
    yield f"|---|---:|{'---:|' * len(names)}"
    for language, verdicts in by.items():
        cells = " | ".join(f"{value:.2f}" for value in figures(verdicts).values())
        yield f"| {language} | {len(verdicts)} | {cells} |"
