"""Which conversation's tokens lie in which llama.cpp sequence. Owns the book-keeping of the context's
cells: prefixes are shared between sequences, the least recently used conversation gives way, and aux
work never pushes out a live conversation.

Invariant: `slot.tokens` is exactly what llama.cpp holds for that sequence; whoever cannot keep that
promise drops the slot."""

from __future__ import annotations

from dataclasses import dataclass, field

from exo.models.llama import Llama, NoRoom

LIVE, AUX = 6, 2  # conversations kept at a time
SCRATCH = LIVE + AUX  # the sequence used while a prefix is saved
COUNT = SCRATCH + 1
SHARE = 16  # tokens; a shorter common beginning is not worth sharing


@dataclass
class Slot:
    """One sequence. The first `shared` tokens lie in cells that `parent` holds too."""

    number: int
    live: bool
    key: str = ""
    tokens: list[int] = field(default_factory=list)
    used: int = 0
    parent: Slot | None = None
    shared: int = 0
    busy: bool = False


class Sequences:
    """The slots of one context. `live_cells` and `aux_cells` are what each kind may fill."""

    def __init__(self, llama: Llama, live_cells: int, aux_cells: int) -> None:
        self._llama = llama
        self._room = {True: live_cells, False: aux_cells}
        self._slots = [Slot(number, number < LIVE) for number in range(LIVE + AUX)]
        self._turn = 0

    def claim(self, key: str, live: bool, tokens: list[int], extra: int) -> Slot:
        """The slot for a prompt, cut back to what it has in common with it (`slot.tokens`), with room
        for the prompt and `extra` more tokens. At least the prompt's last token is left to compute."""
        slot = self._find(key, live)
        self._turn += 1
        slot.key, slot.used = key, self._turn
        most = len(tokens) - 1
        own = common(slot.tokens, tokens, most)
        giver = max(self._slots, key=lambda each: common(each.tokens, tokens, most))
        theirs = common(giver.tokens, tokens, most)
        if self._llama.partial and giver is not slot and theirs >= own + SHARE:
            self.drop(slot)
            slot.key = key
            self._llama.copy(giver.number, slot.number, theirs)
            slot.tokens, slot.parent, slot.shared = list(tokens[:theirs]), giver, theirs
        else:
            self.cut(slot, own)
        self._make_room(slot, len(tokens) + extra)
        return slot

    def cut(self, slot: Slot, count: int) -> None:
        """Keep only the first `count` tokens; none, when the model's memory cannot forget in part."""
        if count >= len(slot.tokens):
            return
        if not self._llama.cut(slot.number, count):
            self._llama.cut(slot.number, 0)
            count = 0
        self._release(slot, count)
        del slot.tokens[count:]
        slot.shared = min(slot.shared, count)

    def drop(self, slot: Slot) -> None:
        """Forget the slot's conversation."""
        self._llama.cut(slot.number, 0)
        self._release(slot, 0)
        slot.key, slot.tokens, slot.parent, slot.shared = "", [], None, 0

    def extend(self, slot: Slot, tokens: list[int], last: bool) -> None:
        """Compute more tokens of the slot. Raises ModelError after dropping the slot."""
        try:
            while True:
                try:
                    self._llama.decode(slot.number, tokens, len(slot.tokens), last)
                    break
                except NoRoom:
                    if not self._evict(slot, slot.live):
                        raise
        except Exception:
            self.drop(slot)
            raise
        slot.tokens += tokens

    def fill(self, slot: Slot, tokens: list[int], state: bytes) -> bool:
        """Put a saved state that holds `tokens` into the slot; False, and an empty slot, if it does not
        fit."""
        key = slot.key
        self.drop(slot)
        slot.key = key
        if not self._llama.restore(slot.number, state) or self._llama.held(slot.number) != len(
            tokens
        ):
            self._llama.cut(slot.number, 0)
            return False
        slot.tokens = list(tokens)
        return True

    def snapshot(self, slot: Slot, count: int) -> bytes:
        """The state of the slot's first `count` tokens; b"" when llama.cpp declines."""
        self._llama.cut(SCRATCH, 0)
        self._llama.copy(slot.number, SCRATCH, count)
        try:
            return self._llama.state(SCRATCH)
        finally:
            self._llama.cut(SCRATCH, 0)

    def cells(self, live: bool) -> int:
        """Cells that the slots of one kind fill."""
        return sum(len(each.tokens) - each.shared for each in self._slots if each.live is live)

    def _find(self, key: str, live: bool) -> Slot:
        mine = [each for each in self._slots if each.live is live and not each.busy]
        for each in mine:
            if each.tokens and each.key == key:
                return each
        return min(mine, key=lambda each: (bool(each.tokens), each.used))

    def _make_room(self, slot: Slot, need: int) -> None:
        def wanted() -> int:
            return self.cells(slot.live) + need - len(slot.tokens)

        while wanted() > self._room[slot.live] and self._evict(slot, slot.live):
            pass

    def _evict(self, slot: Slot, live: bool) -> bool:
        """Drop the least recently used other conversation of that kind; False when there is none."""
        others = [
            each for each in self._slots if each.live is live and each.tokens and not each.busy
        ]
        others = [each for each in others if each is not slot]
        if not others:
            return False
        self.drop(min(others, key=lambda each: each.used))
        return True

    def _release(self, slot: Slot, count: int) -> None:
        """The slot gives up its tokens from `count` on: one that shares them becomes their holder."""
        heirs = [each for each in self._slots if each.parent is slot and each.shared > count]
        if not heirs:
            return
        heir = max(heirs, key=lambda each: each.shared)
        for each in heirs:
            if each is not heir:
                each.parent = heir
        heir.parent, heir.shared = (slot, count) if count else (slot.parent, slot.shared)
        if heir.parent is None:
            heir.shared = 0


def common(left: list[int], right: list[int], most: int) -> int:
    """How many tokens both begin with, at most `most`."""
    size = min(len(left), len(right), most)
    if left[:size] == right[:size]:
        return max(0, size)
    for index in range(size):
        if left[index] != right[index]:
            return index
    return size
