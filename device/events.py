"""What can happen to the handheld: everything its loop takes from its one queue."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Button:
    """A button went down or up."""

    name: str
    down: bool


@dataclass(frozen=True)
class Gesture:
    """What fingers did, as board/presses.py tells it: `kind` is down, up, press, hold, double, repeat,
    chord or stuck; `name` is the key, of a chord its keys joined by `+`; `at` monotonic seconds."""

    kind: str
    name: str
    at: float = 0.0


@dataclass(frozen=True)
class Typed:
    """A line was typed instead of spoken."""

    text: str


@dataclass(frozen=True)
class Wire:
    """An event of exod's protocol, as it came."""

    event: dict[str, Any]


@dataclass(frozen=True)
class Link:
    """exod or exo-models (`part` core, models) came or went."""

    part: str
    up: bool
    why: str = ""


@dataclass(frozen=True)
class Called:
    """A command's answer: its result, or the error's code and reason."""

    kind: str
    ticket: int
    result: dict[str, Any] | None
    code: str = ""
    why: str = ""


@dataclass(frozen=True)
class Level:
    """Loudness of what the microphone hears: 0 is -60 dBFS or less, 1 is full scale; `clipped` when
    its peaks were cut."""

    ticket: int
    value: float
    clipped: bool = False


@dataclass(frozen=True)
class SpeechEnded:
    """A recording may end by itself: `why` is pause (the person stopped speaking), nothing (nobody began
    to) or cut (the microphone failed; the recording has ended)."""

    ticket: int
    why: str


@dataclass(frozen=True)
class Heard:
    """What a recording says; empty when nobody spoke. `fault` is why the microphone ended it early."""

    ticket: int
    text: str
    fault: str = ""


@dataclass(frozen=True)
class Deaf:
    """A recording came to nothing: `part` is microphone or models."""

    ticket: int
    part: str
    why: str


@dataclass(frozen=True)
class Uttered:
    """A sentence begins to sound; `place` as it was given with it."""

    ticket: int
    place: int


@dataclass(frozen=True)
class Spoken:
    """All of a text was heard."""

    ticket: int


@dataclass(frozen=True)
class Mute:
    """Speech failed: `part` is speaker or models."""

    ticket: int
    part: str
    why: str


@dataclass(frozen=True)
class Silence:
    """Speak no more, or again; None: the other way."""

    on: bool | None = None


@dataclass(frozen=True)
class Battery:
    """What the battery says: `percent` None when that is not known."""

    percent: int | None
    charging: bool = False


@dataclass(frozen=True)
class Alert:
    """Something of this device that a person should see: `key` names the words, `why` fills them;
    `urgent` ones do not wait until nobody talks."""

    level: str
    key: str
    why: str = ""
    urgent: bool = False


@dataclass(frozen=True)
class Quit:
    """Go dark and end."""


@dataclass(frozen=True)
class Sync:
    """`done` is set once everything posted before was taken and is on the screen."""

    done: threading.Event


Event = (
    Button
    | Gesture
    | Typed
    | Wire
    | Link
    | Called
    | Level
    | SpeechEnded
    | Heard
    | Deaf
    | Uttered
    | Spoken
    | Mute
    | Silence
    | Battery
    | Alert
    | Quit
    | Sync
)
