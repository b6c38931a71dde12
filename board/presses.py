"""What fingers do, out of what pins tell: edges (monotonic time, name, level) become clean changes, and
these become press, hold, double, chord and repeat. Pure: no clock, no thread, no pin.

Settler: bounce, a key held when we start, a stuck key, a lost release. Presses: the gestures, over it.
Invariant: any edges may come in any order; time that runs on releases every key, and nothing is told of
a name that was not pressed first."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

NEVER = math.inf
ARROWS = ("up", "down", "left", "right")


@dataclass(frozen=True)
class Timing:
    """Seconds. `settle`: a level counts once it stayed so long; `stuck`: a key that stays down longer
    is let go and not heard until it comes up; `hold`: a press that lasts so long is one; `double`: from
    the first release to the second press; `chord`: between the keys of one."""

    settle: float = 0.01
    stuck: float = 120.0
    hold: float = 0.8
    double: float = 0.3
    chord: float = 0.15
    repeat_after: float = 0.4
    repeat_every: float = 0.12


TIMING = Timing()


@dataclass(frozen=True)
class Change:
    """A key went down or up. `at` is the time of the edge, not of its settling; `stuck` says that the
    release is ours, because the key stayed down too long."""

    at: float
    name: str
    down: bool
    stuck: bool = False


@dataclass
class _Pin:
    raw: bool = False
    since: float = 0.0  # of the raw level
    down: bool = False  # as told
    pressed: float = 0.0
    deaf: bool = False  # held at boot, or stuck: until it is seen up

    def due(self, timing: Timing) -> float:
        if self.raw != (self.down or self.deaf):
            return self.since + timing.settle
        return self.pressed + timing.stuck if self.down else NEVER


class Settler:
    """Edges in, changes out, each told once and in turn."""

    def __init__(
        self, names: Iterable[str], timing: Timing = TIMING, held: Collection[str] = ()
    ) -> None:
        """`held` are the keys that are down already: not heard until they come up."""
        self.timing = timing
        self._pins = {name: _Pin(raw=name in held, deaf=name in held) for name in names}
        self.now = 0.0  # the latest time that was told

    @property
    def names(self) -> tuple[str, ...]:
        """The keys."""
        return tuple(self._pins)

    @property
    def unsettled(self) -> float:
        """Since when a level waits to settle; infinity when none does."""
        pins = self._pins.values()
        return min((pin.since for pin in pins if pin.raw != (pin.down or pin.deaf)), default=NEVER)

    @property
    def down(self) -> set[str]:
        """The keys that are down, as told."""
        return {name for name, pin in self._pins.items() if pin.down}

    @property
    def deaf(self) -> set[str]:
        """The keys that are not heard: held since the start, or stuck."""
        return {name for name, pin in self._pins.items() if pin.deaf}

    @property
    def due(self) -> float:
        """When `tick` has something to do, at the latest; infinity when nothing is under way."""
        return min((pin.due(self.timing) for pin in self._pins.values()), default=NEVER)

    def edge(self, at: float, name: str, level: bool) -> list[Change]:
        """A pin changed: `level` is True for pressed. A name that is not ours is passed over."""
        changes = self.tick(at)
        pin = self._pins.get(name)
        if pin and pin.raw != level:
            pin.raw, pin.since = level, self.now
            changes += self.tick(at)
        return changes

    def tick(self, at: float, levels: Mapping[str, bool] | None = None) -> list[Change]:
        """Time went on to `at`; `levels`, when they were read, mend what edges were lost."""
        if at > self.now and at != NEVER:  # a clock that steps back is one that stands
            self.now = at
        for name, level in (levels or {}).items():
            pin = self._pins.get(name)
            if pin and pin.raw != level:
                pin.raw, pin.since = level, self.now
        changes = []
        while (first := self._first()) is not None:
            name, pin = first
            if change := self._settle(name, pin):
                changes.append(change)
        return changes

    def _first(self) -> tuple[str, _Pin] | None:
        ready = [
            (name, pin) for name, pin in self._pins.items() if pin.due(self.timing) <= self.now
        ]
        return min(ready, key=lambda each: each[1].due(self.timing), default=None)

    def _settle(self, name: str, pin: _Pin) -> Change | None:
        if pin.deaf:  # the level is low: heard again
            pin.deaf = False
            return None
        if pin.raw != pin.down:
            pin.down = pin.raw
            pin.pressed = pin.since
            return Change(pin.since, name, pin.down)
        at = pin.due(self.timing)
        pin.down, pin.deaf = False, True
        return Change(at, name, False, stuck=True)


@dataclass(frozen=True)
class Gesture:
    """`kind` is down, up (each change), press, hold, double, repeat, chord (then `names` are its keys,
    sorted) or stuck."""

    kind: str
    names: tuple[str, ...]
    at: float


@dataclass(frozen=True)
class Grammar:
    """What the keys of a board can say beside being pressed; see Presses."""

    repeats: Collection[str] = ()
    doubles: Collection[str] = ()
    chords: Collection[frozenset[str]] = ()


def grammar(names: Collection[str]) -> Grammar:
    """The grammar of a board with these keys: arrows repeat, talk (the one key that every board has) can
    be pressed twice, ok and back together are a chord. None of it makes another key wait."""
    chord = frozenset(("ok", "back"))
    return Grammar(
        tuple(name for name in names if name in ARROWS),
        tuple(name for name in names if name == "talk"),
        (chord,) if chord <= set(names) else (),
    )


@dataclass
class _Key:
    down: bool = False
    at: float = 0.0  # of the last change
    done: bool = False  # this press has had its meaning
    waiting: float = NEVER  # a press that may become double is told then
    next: float = NEVER  # hold or repeat


@dataclass
class Presses:
    """Edges in, gestures out. `names` are the board's keys; `repeats` repeat while they are held and
    tell `press` as they go down; `doubles` tell `press` late, as a second one may follow; `chords`
    are sets of keys that mean something together and, then, nothing alone. The others tell `press`
    when they come up before `hold`."""

    names: Iterable[str]
    repeats: Collection[str] = ()
    doubles: Collection[str] = ()
    chords: Collection[frozenset[str]] = ()
    timing: Timing = TIMING
    held: Collection[str] = ()

    def __post_init__(self) -> None:
        self._settler = Settler(self.names, self.timing, self.held)
        self._keys = {name: _Key() for name in self._settler.names}

    @property
    def down(self) -> set[str]:
        """The keys that are down."""
        return {name for name, key in self._keys.items() if key.down}

    @property
    def deaf(self) -> set[str]:
        """The keys that are not heard; see Settler.deaf."""
        return self._settler.deaf

    @property
    def due(self) -> float:
        """When `tick` has something to do, at the latest."""
        return min([self._settler.due, *(self._due(key) for key in self._keys.values())])

    def edge(self, at: float, name: str, level: bool) -> list[Gesture]:
        """A pin changed; see Settler.edge."""
        return self._take(self._settler.edge(at, name, level))

    def tick(self, at: float, levels: Mapping[str, bool] | None = None) -> list[Gesture]:
        """Time went on to `at`; see Settler.tick."""
        return self._take(self._settler.tick(at, levels))

    def _take(self, changes: list[Change]) -> list[Gesture]:
        found: list[Gesture] = []
        for change in changes:
            found += self._until(change.at)
            found += self._pressed(change) if change.down else self._released(change)
        # a change that still settles happened before now: what it may undo must wait for it
        return found + self._until(min(self._settler.now, self._settler.unsettled))

    def _pressed(self, change: Change) -> list[Gesture]:
        name, key, at = change.name, self._keys[change.name], change.at
        found = [Gesture("down", (name,), at)]
        double = key.waiting != NEVER and at < key.waiting
        key.down, key.at, key.done, key.waiting, key.next = True, at, False, NEVER, NEVER
        if chord := self._chord(at):
            if double:  # the press before was one of its own
                found.append(Gesture("press", (name,), at))
            for each in chord:
                self._keys[each].done, self._keys[each].next = True, NEVER
            return [*found, Gesture("chord", tuple(sorted(chord)), at)]
        if double:
            key.done = True
            return [*found, Gesture("double", (name,), at)]
        if name not in self.repeats:
            key.next = at + self.timing.hold
        elif any(name in chord for chord in self.chords):
            key.next = at + self.timing.chord  # then it is alone
        else:
            found.append(self._begin(name, key, at))
        return found

    def _chord(self, at: float) -> frozenset[str] | None:
        """The chord that is complete now, its keys still without a meaning."""
        fresh = {
            name
            for name, key in self._keys.items()
            if key.down and not key.done and at - key.at <= self.timing.chord
        }
        return max(
            (chord for chord in self.chords if chord and chord <= fresh), key=len, default=None
        )

    def _begin(self, name: str, key: _Key, at: float) -> Gesture:
        """A key that repeats means its press at once."""
        key.done, key.next = True, key.at + self.timing.repeat_after
        return Gesture("press", (name,), at)

    def _released(self, change: Change) -> list[Gesture]:
        name, key, at = change.name, self._keys[change.name], change.at
        found = [Gesture("up", (name,), at)]
        done, key.down, key.next = key.done, False, NEVER
        if change.stuck:
            return [*found, Gesture("stuck", (name,), at)]
        if not done and name in self.doubles and name not in self.repeats:
            key.waiting = at + self.timing.double
        elif not done:
            found.append(Gesture("press", (name,), at))
        return found

    def _due(self, key: _Key) -> float:
        return min(key.waiting, key.next)

    def _until(self, at: float) -> list[Gesture]:
        """What time alone has brought until `at`, in its order; one repeat of a key at most, so that a
        late tick is no volley."""
        found: list[Gesture] = []
        while True:
            name, key = min(
                self._keys.items(), key=lambda each: self._due(each[1]), default=("", _Key())
            )
            due = self._due(key)
            if due > at or due == NEVER:
                return found
            if key.waiting == due:
                key.waiting = NEVER
                found.append(Gesture("press", (name,), due))
            elif name not in self.repeats:
                key.done, key.next = True, NEVER
                found.append(Gesture("hold", (name,), due))
            elif not key.done:
                found.append(self._begin(name, key, due))
            else:
                key.next = max(due, at) + self.timing.repeat_every
                found.append(Gesture("repeat", (name,), due))
