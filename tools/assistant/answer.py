"""Which of what was found answers a question by itself. Pure. A score says that a belief and a question
share words and meaning; whether it answers is told by what was asked for: a number, a time, a name.

Invariant: a belief that does not hold every name, weekday, month and ordinal of the question, or nothing of the
asked kind, is no answer; of two that both hold, the newer one is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from exo.core.retrieve.candidates import Candidate
from exo.core.retrieve.document import TRUST
from exo.core.retrieve.pack import Hit
from exo.core.retrieve.words import plain, sought, tongue
from exo.tools.assistant.tongue import Language, fold, language

ENOUGH = 0.8  # score of a belief that answers by itself (README.md says how it was found)
NEAR = 0.1  # what is so close to the best may answer in its place
LATELY = 0.7  # the same where what is asked for is there, and of what may tell how things are now
_KINDS = (
    "birthday",
    "age",
    "money",
    "often",
    "number",
    "time",
    "name",
)  # the first that is asked for counts
QUOTED = 200  # characters of a note that is an answer by itself; a longer one is read by the model
NEAREST = (
    0.3  # score of what is told where nothing answers: of what shares a word with the question
)
MEANT = 0.45  # the same of what shares none
TOLD = 2  # of those, at the most
NAMED = (
    0.15  # the same of what names a person that the question names: they may be of two languages
)
KNOWN = 0.5  # score at which a question is about the person's own world
_NAME = re.compile(r"(?<![.!?] )(?<!^)(?<!\w)[A-ZÄÖÜÉÁÍÓÚÑ][\w-]+")
# the first word of a sentence, where what follows makes it a name
_FIRST = re.compile(r"^(?!\w+ed\b)([A-Z][\w-]+)(?= (?:and|has|is|was|will|who|from|\w+s|\w+ed)\b)")


def choose(query: str, found: Sequence[Candidate]) -> Candidate | None:
    """The belief or note that answers `query`, of candidates with the best first."""
    asked = language(_spoken(query))
    rows, line = asked.data["expects"], fold(query)
    now = re.search(rows["now"], line)
    past = re.search(rows["past"], line) and not now
    wanted = names(query, asked)
    # one word in common says little: then the belief must be of the person, as the question is
    alone = len(sought(query)) < 2 and re.search(rows["subject"], line)
    kinds = [kind for kind in _KINDS if re.search(rows[kind], line)]
    times = _times(query)
    best = max((each.score for each in found), default=0.0)
    enough = LATELY if kinds and not now else ENOUGH
    if best < enough:
        return None
    least = LATELY if now else max(enough, best - NEAR)
    fits = [
        each
        for each in found
        if each.score >= least
        and _quotable(each)
        and each.document.trust in TRUST[2:]
        and wanted <= set(plain(each.document.body or each.document.summary))
        and times <= _times(each.document.body)
        and all(_has(kind, each.document.body, query) for kind in kinds[:1])
        and (not alone or _has("own", each.document.body, query))
    ]
    if past or not fits:
        return fits[0] if fits else None
    return max(fits, key=lambda each: each.document.ts)


def nothing(query: str, name: str, hits: Sequence[Hit]) -> tuple[str, bool]:
    """(the words that nothing answers `query`, with what comes nearest; whether something does)."""
    say = language(name or _spoken(query)).say
    near = [
        f"“{hit.text.strip()}”"
        for hit in hits
        if (
            hit.score >= (NEAREST if "bm25" in hit.found_by else MEANT)
            or hit.score >= NAMED
            and _names_whom(hit.text, query)
        )
        and hit.trust in TRUST[2:]
        and 0 < len(hit.text.strip()) <= QUOTED
        and "\n" not in hit.text.strip()
    ][:TOLD]
    if not near:
        return say["nothing"], False
    return say["nearest"].format(text=" ".join(near)), True


def _quotable(each: Candidate) -> bool:
    """A belief, or a note that is no more than a sentence."""
    text = each.document.body.strip()
    short = 0 < len(text) <= QUOTED and "\n" not in text
    return each.document.kind == "node" or each.document.kind == "note" and short


def concerns(query: str, found: Iterable[Candidate]) -> bool:
    """Whether a question that names no person is about the world of this one all the same: it names
    somebody or something that is known."""
    asked = language(_spoken(query))
    line, wanted = fold(query), names(query, asked)
    rows = asked.data["expects"]
    if re.search(rows["world"], line):
        return False
    things = {word for each in re.finditer(rows["thing"], line) for word in plain(each[0])[1:]}
    for each in found:
        words = set(plain(each.document.body or each.document.summary))
        if each.score >= KNOWN and (wanted & words or things & words):
            return True
        if each.score >= NAMED and _names_whom(each.document.body, query):
            return True
    return False


def _names_whom(text: str, query: str) -> bool:
    """Whether `text` names a person that the question names."""
    return bool(people(text, language(_spoken(text))) & set(plain(query)))


def names(text: str, asked: Language) -> set[str]:
    """Proper names in `text`, folded; a language that writes all nouns large gives none."""
    if asked.name == "de":
        return set()
    times = {*asked.tables["weekday"], *asked.tables["month"]}
    found = {word for each in _NAME.findall(text) for word in plain(each)}
    return {each for each in found if each not in times and each.removesuffix("s") not in times}


def people(text: str, said: Language) -> set[str]:
    """Proper names that are no place's, that of its first word too, folded."""
    lone = re.sub(said.data["expects"]["place"], "", text)
    first = {word for each in _FIRST.findall(lone) for word in plain(each)}
    return names(lone, said) | first


def _times(text: str) -> set[tuple[str, float]]:
    """The weekdays, months and ordinals that `text` names ("on Fridays", "the second one"); of the first and the
    second harvest one is no answer to what is asked of the other."""
    said = language(_spoken(text))
    words = {
        form for word in plain(text) if len(word) > 3 for form in (word, word.removesuffix("s"))
    }
    tables = ((name, said.tables[name]) for name in ("weekday", "month", "ordinal"))
    return {(name, table[word]) for name, table in tables for word in words & {*table}}


def _spoken(query: str) -> str:
    name = tongue(plain(query))
    return name if name in ("de", "es") else "en"


def _has(kind: str, text: str, query: str) -> bool:
    """Whether `text` says something of this kind that the question does not."""
    said = language(_spoken(text))
    if kind == "name":
        new = people(text, said) - set(plain(query))
        return bool(new) or said.name == "de"
    if kind == "own":
        return bool(said.pattern(said.data["expects"]["first"].lower()).search(fold(text)))
    return bool(said.pattern(said.data["expects"][f"has_{kind}"]).search(fold(text)))
