"""exo-decide: typed questions about a short text, answered by heads over its sentence vector. Owns the
shipped graph, the person's own heads beside it, and how scores become probabilities; a caller embeds.

A question whose mechanism has a head is answered by it; any other by how well the state matches each option,
which needs no training on those options. Invariant: every answer's probabilities sum to 1."""

from __future__ import annotations

import contextlib
import io
import json
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exo.core.base.files import make_folder, write_atomic
from exo.models import heads, personal
from exo.models.heads import Head, softmax
from exo.models.onnx import session
from exo.models.personal import Rows, enough, held
from exo.models.questions import Asked, DecideRequest, FitRequest
from exo.models.replies import BadRequest

NAME = "exo-decide"
PACKAGE = Path(__file__).parent  # where the shipped files lie
COMMON = 1000  # sentences of everybody that a head of a person is fitted beside
KEPT = 1024  # option texts whose vector is remembered, 1.5 MB


class Decider:
    """`own` is the folder of the person's heads; it may be lost, they are made again from the record."""

    def __init__(self, own: Path, shipped: Path = PACKAGE) -> None:
        self._meta = json.loads((shipped / f"{NAME}.json").read_text())
        self._graph = session(shipped / f"{NAME}.onnx", 1)
        self._own = own
        self._vectors: OrderedDict[str, Any] = OrderedDict()
        self._heads: dict[str, tuple[Head, int]] = {}
        self._slices: dict[str, slice] = {}
        at = 0
        for name in self._meta["order"]:
            width = len(self._meta["heads"][name]["answers"])
            self._slices[name] = slice(at, at + width)
            at += width
            with contextlib.suppress(OSError, ValueError, KeyError):
                self._heads[name] = self._load(name)

    @property
    def trunk(self) -> str:
        """The embedding model that the heads were trained on."""
        return str(self._meta["trunk"]["name"])

    def wanting(self, asked: DecideRequest) -> list[str]:
        """The texts to embed for `asked`: the state first, then options not met before."""
        texts = [text for each in asked.questions.values() for text in self._texts(each)]
        return [asked.state, *dict.fromkeys(text for text in texts if text not in self._vectors)]

    def answer(self, asked: DecideRequest, vectors: Sequence[Sequence[float]]) -> dict[str, Any]:
        """One answer a question, in the shapes of /v1/systemone; `vectors` are those of `wanting`."""
        import numpy as np

        new = self.wanting(asked)[1:]
        for text, vector in zip(new, vectors[1:], strict=True):
            self._vectors[text] = np.array(vector, np.float32)
        state = np.array([vectors[0]], np.float32)
        texts = [text for each in asked.questions.values() for text in self._texts(each)]
        options = np.zeros((max(1, len(texts)), state.shape[1]), np.float32)
        for at, text in enumerate(texts):
            options[at] = self._vectors[text]
            self._vectors.move_to_end(text)
        words = heads.words([asked.state])
        feeds = {"state": state, "words": words, "options": options}
        match, scores = self._graph.run(None, feeds)
        seen, at, out = np.hstack([state, words]), 0, {}
        for name, question in asked.questions.items():
            count = len(self._texts(question))
            sure, by = self._sure(question, match[at : at + count, 0], scores[0], seen)
            at += count
            out[name] = shaped(question, [float(each) for each in sure]) | {"by": by}
        while len(self._vectors) > KEPT:
            self._vectors.popitem(last=False)
        return out

    def by_words(self, mechanism: str, text: str, language: str) -> str:
        """The answer of a head that sees nothing but the words, so that no text is embedded; "" where it is
        not sure enough, or has not learnt that language. 0.1 ms."""
        import numpy as np

        told = self._meta["heads"][mechanism]
        if not told["words_alone"] or language not in told["languages"]:
            return ""
        state = np.zeros((1, self._meta["trunk"]["width"]), np.float32)
        words = heads.words([text])
        feeds = {"state": state, "words": words, "options": state}
        [scores] = self._graph.run(["heads"], feeds)
        sure = self._chances(mechanism, scores[0], np.hstack([state, words]))[0]
        best = int(sure.argmax())
        answer = str(told["answers"][best])
        return answer if sure[best] >= told["sure"][answer] else ""

    def taught(self, asked: FitRequest) -> list[str]:
        """The texts to embed for `asked`: the states, then what everybody says. Raises BadRequest."""
        answers = self._meta["heads"].get(asked.mechanism, {}).get("answers")
        if answers is None:
            raise BadRequest(f"fit {asked.mechanism}", "no head has that name")
        if wrong := set(asked.labels) - set(answers):
            raise BadRequest(f"fit {asked.mechanism}", f"{sorted(wrong)[0]!r} is no answer of it")
        if not enough(held(asked.states)):
            return list(asked.states)
        return [*asked.states, *(text for part in _common(asked.mechanism) for text in part.texts)]

    def fit(self, asked: FitRequest, vectors: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Try a head of the person's own labels; `vectors` are those of `taught`. Where the shipped one does best, the
        one before is gone back from. Returns {kept, version, rows, held, measures?, common?}."""
        import numpy as np

        before, version = self._heads.get(asked.mechanism, (None, 0))
        texts, out = self.taught(asked), held(asked.states)
        told = {"rows": len(out), "held": int(out.sum())}
        if not enough(out):
            return {"kept": "shipped" if before is None else "before", "version": version, **told}
        meta = self._meta["heads"][asked.mechanism]
        answers, alone = meta["answers"], meta["words_alone"]
        train, test = _common(asked.mechanism)
        labels = np.array(
            [answers.index(each) for each in (*asked.labels, *train.labels, *test.labels)]
        )
        seen = heads.features(texts, np.array(vectors, np.float32) * (not alone))
        ends = [len(out), len(out) + len(train.texts)]
        own, taught, common = map(Rows, np.split(seen, ends), np.split(labels, ends))
        standing = {"shipped": self._shipped(asked.mechanism)}
        standing |= {} if before is None else {"before": before}
        found = personal.attempt(own, asked.weights, out, taught, common, standing, asked.threshold)
        if found.kept == "new":
            self._save(asked.mechanism, found.head, version := version + 1)
        elif found.kept == "shipped" and before is not None:
            version = 0
            del self._heads[asked.mechanism]
            self._path(asked.mechanism).unlink(missing_ok=True)
        more = {"measures": found.measures, "common": found.common}
        return {"kept": found.kept, "version": version, **told, **more}

    def _sure(self, question: Asked, match: Any, scores: Any, seen: Any) -> tuple[Any, str]:
        """(a probability for each option, who said so)."""
        import numpy as np

        told = self._meta["heads"].get(question.mechanism)
        if told and set(question.options) <= set(told["answers"]):
            at = [told["answers"].index(option) for option in question.options]
            sure, by = self._chances(question.mechanism, scores, seen)
            return sure[at] / sure[at].sum(), by
        fit = self._meta["match"]
        if question.kind == "noul":
            slope, offset = fit["yes"]
            yes = 1 / (1 + np.exp(-(slope * match[0] + offset)))
            return np.array([1 - yes, yes]), "match"
        return softmax(match / fit["temperature"]), "match"

    def _chances(self, mechanism: str, scores: Any, seen: Any) -> tuple[Any, str]:
        """(a probability for each of the head's answers, who said so)."""
        if mechanism in self._heads:
            head, version = self._heads[mechanism]
            return softmax(head.scores(seen)[0] / head.temperature), f"own {version}"
        divisor = self._meta["heads"][mechanism]["temperature"]
        return softmax(scores[self._slices[mechanism]] / divisor), "head"

    def _texts(self, question: Asked) -> list[str]:
        """The option texts whose match is looked at; none where a head answers."""
        told = self._meta["heads"].get(question.mechanism)
        if told and set(question.options) <= set(told["answers"]):
            return []
        return list(question.texts)

    def _shipped(self, mechanism: str) -> Head:
        """The shipped head, read back from the graph: its answers to the unit vectors."""
        import numpy as np

        width, part = self._meta["trunk"]["width"], self._slices[mechanism]
        rows, unit = [], np.zeros((1, width + heads.WORDS), np.float32)
        none = np.zeros((1, width), np.float32)
        feeds = {"state": unit[:, :width], "words": unit[:, width:], "options": none}
        bias = self._graph.run(["heads"], feeds)[0][0, part]
        for at in range(unit.shape[1]):
            unit[0, at] = 1
            rows.append(self._graph.run(["heads"], feeds)[0][0, part])
            unit[0, at] = 0
        divisor = self._meta["heads"][mechanism]["temperature"]
        return Head(np.array(rows) - bias, bias, divisor)

    def _path(self, mechanism: str) -> Path:
        return self._own / f"{mechanism}.npz"

    def _save(self, mechanism: str, head: Head, version: int) -> None:
        import numpy as np

        make_folder(self._own)
        file = io.BytesIO()
        np.savez(
            file,
            weights=head.weights,
            bias=head.bias,
            of=np.array(self._mark()),
            temperature=np.array(head.temperature),
            version=np.array(version),
        )
        write_atomic(self._path(mechanism), file.getvalue())
        self._heads[mechanism] = head, version

    def _load(self, mechanism: str) -> tuple[Head, int]:
        """The person's head. Raises OSError, ValueError, KeyError for none, or one of another trunk."""
        import numpy as np

        with np.load(self._path(mechanism), allow_pickle=False) as data:
            if str(data["of"]) != self._mark():
                raise ValueError("it stands on other weights")
            head = Head(data["weights"], data["bias"], float(data["temperature"]))
            return head, int(data["version"])

    def _mark(self) -> str:
        return f"{self._meta['trunk']['sha256']} {self._meta['format']}"


def shaped(question: Asked, sure: list[float]) -> dict[str, Any]:
    """One answer as /v1/systemone shows it."""
    if question.kind == "noul":
        return {"type": "noul", "noul": sure[1]}
    probabilities = dict(zip(question.options, sure, strict=True))
    best = max(probabilities, key=lambda option: probabilities[option])
    out = {"type": question.kind, "probabilities": probabilities, "confidence": probabilities[best]}
    if question.kind == "choice":
        return out | {"choice": best}
    return out | {
        "score": sum(at * each for at, each in enumerate(sure)),
        "legend": list(probabilities),
    }


def as_prompt(state: str, question: Asked) -> str:
    """The question to a language model whose reply is to be one option."""
    if question.kind == "noul":
        return f"{state}\n\n{question.texts[0]}: yes or no? Reply with one word."
    lines = "\n".join(question.texts)
    return f"{state}\n\nWhich of these is it? Reply with its name alone.\n{lines}"


def _common(mechanism: str) -> list[Any]:
    """The sentences that everybody says, to learn from and to be measured by; of many, some, for each is
    embedded anew."""
    from exo.models.training.data import seed  # numpy: not at the start

    return [part.thinned(COMMON) for part in seed(mechanism)]
