"""The book-keeping of llama.cpp's sequences, over a context that checks every promise."""

from __future__ import annotations

import random

import pytest
from exo.core.base.errors import ModelError
from exo.models.llama import NoRoom
from exo.models.sequences import Sequences, common


class Context:
    """A context of cells: what llama.cpp would hold."""

    def __init__(self, cells: int, partial: bool = True) -> None:
        self.cells, self.partial = cells, partial
        self.held_: dict[int, list[tuple[int, int]]] = {}  # sequence -> (cell, token)
        self.next = 0
        self.broken = False

    def cut(self, sequence: int, start: int) -> bool:
        if start and not self.partial:
            return False
        self.held_[sequence] = self.held_.get(sequence, [])[:start]
        return True

    def copy(self, source: int, target: int, count: int) -> None:
        assert not self.held_.get(target)
        self.held_[target] = self.held_[source][:count]

    def decode(self, sequence: int, tokens: list[int], start: int, last: bool) -> None:
        if self.broken:
            raise ModelError("compute", "broken")
        assert len(self.held_.get(sequence, [])) == start
        used = {cell for cells in self.held_.values() for cell, _ in cells}
        if len(used) + len(tokens) > self.cells:
            raise NoRoom("compute", "full")
        for token in tokens:
            self.held_.setdefault(sequence, []).append((self.next, token))
            self.next += 1

    def tokens(self, sequence: int) -> list[int]:
        return [token for _, token in self.held_.get(sequence, [])]


def run(made: Sequences, key: str, tokens: list[int], live: bool = True) -> int:
    """Claim, compute, and say how many tokens were kept."""
    slot = made.claim(key, live, tokens, 4)
    kept = len(slot.tokens)
    made.extend(slot, tokens[kept:], True)
    assert slot.tokens == tokens
    return kept


def test_a_prompt_that_grew_is_computed_from_where_it_grew() -> None:
    made = Sequences(Context(1000), 600, 400)
    assert run(made, "a", [1, 2, 3]) == 0
    assert run(made, "a", [1, 2, 3, 4, 5]) == 3
    assert run(made, "a", [1, 2, 9]) == 2
    assert run(made, "a", [1, 2, 9]) == 2  # the last token is always computed


def test_aux_work_never_pushes_out_a_live_conversation() -> None:
    made = Sequences(Context(1000), 600, 400)
    live = list(range(500))
    run(made, "live", live)
    for key in range(6):
        run(made, f"aux{key}", [1000 + key] * 390, live=False)
    assert run(made, "live", [*live, 1]) == 500


def test_the_least_recently_used_conversation_gives_way() -> None:
    made = Sequences(Context(1000), 600, 400)
    run(made, "a", [1] * 250)
    run(made, "b", [2] * 250)
    run(made, "a", [1] * 251)
    run(made, "c", [3] * 250)
    assert run(made, "a", [1] * 252) == 251
    assert run(made, "b", [2] * 251) == 0


def test_a_shared_beginning_takes_its_cells_once() -> None:
    context = Context(1000)
    made = Sequences(context, 600, 400)
    head = list(range(300))
    for key in range(5):
        kept = run(made, f"k{key}", [*head, 1000 + key, *[key] * 20])
        assert kept == (300 if key else 0)
    assert made.cells(True) == 300 + 5 * 21
    assert len({cell for cells in context.held_.values() for cell, _ in cells}) == 300 + 5 * 21


def test_a_memory_that_cannot_forget_in_part_forgets_all() -> None:
    made = Sequences(Context(1000, partial=False), 600, 400)
    run(made, "a", [1, 2, 3, 4])
    assert run(made, "a", [1, 2, 9]) == 0


def test_a_failure_leaves_no_false_promise() -> None:
    context = Context(1000)
    made = Sequences(context, 600, 400)
    run(made, "a", [1, 2, 3])
    context.broken = True
    with pytest.raises(ModelError):
        run(made, "a", [1, 2, 3, 4])
    context.broken = False
    assert run(made, "a", [1, 2, 3, 4]) == 0


@pytest.mark.parametrize("seed", range(20))
def test_what_is_promised_is_what_is_held(seed: int) -> None:
    """Random conversations: every slot's tokens are the context's, and the count of cells is right
    enough that live and aux work always find room."""
    chance = random.Random(seed)
    context = Context(1000)
    made = Sequences(context, 600, 400)
    talks: dict[str, list[int]] = {}
    for _ in range(120):
        key = f"k{chance.randrange(12)}"
        live = chance.random() < 0.7
        base = chance.choice([[], [7] * 40, [7] * 40 + [8] * 60])
        old = talks.get(key, base)
        tokens = [*old[: chance.randrange(len(old) + 1)], *[chance.randrange(5) for _ in range(60)]]
        talks[key] = tokens = tokens[-300:] if chance.random() < 0.1 else tokens[:380]
        run(made, key, tokens, live)
        for slot in made._slots:
            assert slot.tokens == context.tokens(slot.number)
            assert slot.shared <= len(slot.tokens)


def test_common() -> None:
    assert common([1, 2, 3], [1, 2, 4], 9) == 2
    assert common([1, 2], [1, 2, 3], 1) == 1
    assert common([], [1], 5) == 0
