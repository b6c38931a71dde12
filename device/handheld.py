"""The handheld itself: one loop takes events from one queue, moves the state machine, gives what happened
to whoever it concerns, and shows a page. Nothing that it calls waits for others.

Invariant: only this loop changes what the handheld knows; whatever dies, the state machine's deadlines
bring it back to rest; a press on a dark screen lights it and does nothing else."""

from __future__ import annotations

import math
import queue
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from exo.board.screen import Screen
from exo.core.base.clock import Clock
from exo.device import events as ev
from exo.device import wire
from exo.device.browse import Page, TextPage
from exo.device.cards import Card, Cards
from exo.device.display import Display
from exo.device.fingers import Fingers
from exo.device.hands import Hands
from exo.device.layouts import Layout
from exo.device.locale import Texts
from exo.device.menu import Known
from exo.device.network import Opens
from exo.device.notices import Notices
from exo.device.pages import Pages, View
from exo.device.pin import Pin
from exo.device.ports import EarPort, LinkPort, SystemPort, VoicePort
from exo.device.reply import Reply
from exo.device.settings import LIVE, Value
from exo.device.states import LOCKED, RESTS, Machine
from exo.device.talk import Talk
from exo.device.views import VIEWS, view
from exo.device.wire import Notice

FRAME = 0.1  # seconds between two steps of an animation
SMOOTH = 0.04  # while a bar grows under a finger
KEYS = ("talk", "up", "down", "ok", "back")
DEFAULTS: dict[str, Value] = {"screen.sleep": 0.0, "screen.brightness": 100}


def _alike(value: object, now: Value | None) -> bool:
    """Whether a setting may have `value` where it was `now` (None: it is not known here)."""
    if isinstance(value, bool) or isinstance(now, bool):
        return isinstance(value, bool) and isinstance(now, bool | None)
    if isinstance(value, int | float):
        return math.isfinite(value) and isinstance(now, int | float | None)
    return isinstance(value, str) and isinstance(now, str | None)


@dataclass(frozen=True)
class Snapshot:
    """What a script sees of the handheld at one moment."""

    state: str
    history: tuple[str, ...]
    screen: str
    reply: str
    busy: bool
    dark: bool = False


class Handheld:
    """The device. `run` loops until quit; `step` is one round of it."""

    def __init__(
        self,
        screen: Screen,
        pages: Layout,
        clock: Clock,
        machine: Machine,
        linger: float = 10.0,
        toggles: bool = False,
        trace: Callable[..., None] = lambda moment, **more: None,
        names: Sequence[str] = KEYS,
        options: Mapping[str, Value] = DEFAULTS,
        pin: Pin | None = None,
    ) -> None:
        """`linger` seconds a finished reply stays; `toggles`: the talk key tells no release; `trace`
        is told the moments of a turn as they pass: pressed, released, heard, shown, sounds, silent;
        `names` are the board's keys; `options` the settings that pages follow and offer."""
        self.trace, self.linger, self.toggles, self.pin = trace, linger, toggles, pin
        self.display = Display(screen, pages, clock.monotonic)
        self.pages, self.clock, self.machine = pages, clock, machine
        self.texts = pages.texts
        self.events: queue.SimpleQueue[ev.Event] = queue.SimpleQueue()
        self.ear: EarPort
        self.voice: VoicePort
        self.link: LinkPort
        self.system: SystemPort | None = None
        self.fingers, self.hands = Fingers(clock, names), Hands(self)
        self.talk, self.notices = Talk(self), Notices(self)
        self.cards, self.known = Cards(self), Known(self)
        self.page: Page | None = None  # of a state that has no view of its own
        self._seen: Page | None = None
        self.wifi: Opens | None = None  # makes the steps of its page; None: no radio to be had
        self.options = dict(options)
        # makes the pages anew when a setting changes how they look
        self.lay_out: Callable[[Mapping[str, Value]], Layout] = self._relaid
        self.core_up: bool | None = None
        self.models_up: bool | None = None
        self.muted: tuple[str, str] | None = None  # the part that cannot speak, and why
        self.drowsy = False  # told to sleep: dark at the next rest
        self.battery: tuple[int | None, bool] = (None, False)
        self.lamp: Callable[[], None] = lambda: None  # shows the state on the board's light
        self.dark = False
        self._wanted: dict[str, Value] = {}  # settings on their way to exod
        self._touched = clock.monotonic()  # when the screen was last needed
        self._lock = threading.Lock()  # for `snapshot` alone
        self._syncs: list[threading.Event] = []
        self._bright()
        if pin is not None and pin.set:
            machine.fire("lock")

    def attach(
        self, ear: EarPort, voice: VoicePort, link: LinkPort, system: SystemPort | None = None
    ) -> None:
        """Connect the parts that post into `events`."""
        self.ear, self.voice, self.link, self.system = ear, voice, link, system
        for name, value in self.options.items():
            self.talk.follow(name, value)

    def post(self, event: ev.Event) -> None:
        """Hand over an event, from any thread."""
        self.events.put(event)

    def run(self) -> None:
        """Loop until the state is off."""
        faults = 0
        while self.machine.state != "off":
            try:
                self.step(self.rest_for())
                faults = 0
            except Exception as error:
                traceback.print_exc()
                faults += 1
                if faults > 10:
                    raise
                with self._lock:
                    self.talk.fail(f"{type(error).__name__}: {error}")

    def step(self, wait: float = 0.0) -> None:
        """Take what has happened (waiting at most `wait` seconds for it), then show it."""
        try:
            event = self.events.get(timeout=wait) if wait else self.events.get_nowait()
            with self._lock:
                self._take(event)
                for _ in range(200):  # a flood of events must not keep the screen from being drawn
                    self._take(self.events.get_nowait())
        except queue.Empty:
            pass
        with self._lock:
            self._tick()
            if self.dark:
                self.display.screen.settle()
            else:
                self.display.show(self.view())
            self.lamp()
            if self.machine.state == "reply" and self.talk.unread:
                self.talk.unread = False
                self.trace("shown")
        while self._syncs:
            self._syncs.pop().set()

    def snapshot(self, forget: bool = False) -> Snapshot:
        """What is to be seen now; `forget` begins the history anew."""
        with self._lock:
            history = tuple(self.machine.history)
            if forget:
                self.machine.forget()
            shown = None if self.dark else self.display.shown
            return Snapshot(
                self.machine.state,
                history,
                shown.text if shown else "",
                self.talk.reply.text,
                self.talk.busy or self.events.qsize() > 0,
                self.dark,
            )

    @property
    def reply(self) -> Reply:
        """The last reply."""
        return self.talk.reply

    @property
    def notice(self) -> Notice:
        """The notice that was shown last."""
        return self.notices.now

    def view(self) -> View:
        """The page as it is now."""
        return view(self)

    def label(self, key: str) -> str:
        """What a key is called on the screen."""
        return self.texts(f"key.{key}")

    # events

    def _take(self, event: ev.Event) -> None:
        match event:
            case ev.Button():
                self.hands.button(event.name, event.down)
            case ev.Gesture():
                self.hands.gesture(event.kind, event.name)
            case ev.Typed():
                self.talk.typed(event.text)
            case ev.Wire():
                wire.take(self, event.event)
            case ev.Link():
                self._linked(event)
            case ev.Called():
                self._called(event)
            case ev.Level():
                self.talk.on_level(event)
            case ev.SpeechEnded():
                self.talk.on_speech_ended(event)
            case ev.Silence():
                self.talk.hush(not self.voice.muted if event.on is None else event.on)
            case ev.Heard():
                self.talk.on_heard(event)
            case ev.Deaf():
                self.talk.on_deaf(event)
            case ev.Uttered():
                self.muted = None
                self.trace("sounds")
                self.talk.reply.uttered(event.ticket, event.place)
            case ev.Spoken():
                self.talk.on_spoken(event.ticket)
            case ev.Mute():
                self.talk.on_mute(event)
            case ev.Battery():
                self.battery = (event.percent, event.charging)
            case ev.Alert():
                self.notices.alert(event)
            case ev.Sync():
                self._syncs.append(event.done)
            case ev.Quit():
                self.talk.aside = ""
                self.talk.stop()
                self.machine.fire("quit")
                self.wake()

    def _linked(self, event: ev.Link) -> None:
        if event.part == "models":
            self.models_up = event.up
            return
        before, self.core_up = self.core_up, event.up
        if event.up:
            if self.machine.state == "starting":
                self.machine.fire("ready")
            self.link.call("config", 0, "config.get", {})
            self.known.ask("due")
        elif before and (self.talk.reply.streaming or self.machine.state == "thinking"):
            self.talk.fail(self.texts("error.core", why=event.why))

    def _called(self, event: ev.Called) -> None:
        if event.kind == "send":
            self.talk.on_sent(event)
        elif event.kind == "why":
            self._why(event)
        elif event.kind == "answer":
            self.cards.on_answered(event)
        elif event.kind in ("sessions", "due", "hits"):
            self.known.on_called(event)
        elif event.kind == "config" and event.result:
            rows = event.result.get("settings")
            for name, row in rows.items() if isinstance(rows, dict) else ():
                if isinstance(row, dict) and _alike(row.get("value"), self.options.get(name)):
                    self.apply(str(name), row["value"])
        elif event.kind.startswith("set ") and event.result is not None:
            self._saved(event.kind.removeprefix("set "))
        elif event.kind == "cancel" or event.result is None and event.kind.startswith("set "):
            if event.result is None:
                self.notices.add(Notice("error", event.why, aloud=False))
                self._wanted.pop(event.kind.removeprefix("set "), None)
            self.known.ask("due")
        elif event.kind == "switch" and event.result is None:
            self.notices.add(Notice("error", event.why, aloud=False))

    def _why(self, event: ev.Called) -> None:
        if event.ticket != self.talk.ticket or self.machine.state != "reply":
            return
        self.talk.stop()
        if event.result is None:
            why = Notice("error", self.texts("error.why", why=event.why), aloud=False)
            self.notices.show("notice", why)
            return
        text = wire.why(self.texts, event.result)
        self.go(TextPage(self, "why", self.texts("why"), text))

    # settings

    def save(self, name: str, value: Value) -> None:
        """Have exod keep a setting; it is followed once it is kept."""
        self._wanted[name] = value
        self.link.call(f"set {name}", 0, "config.set", {"key": name, "value": value})

    def wanted(self, name: str, usual: Value) -> Value:
        """A setting as it will be once exod has kept what was asked for."""
        return self._wanted.get(name, self.options.get(name, usual))

    def _saved(self, name: str) -> None:
        if name not in self._wanted:
            return
        self.apply(name, self._wanted.pop(name))
        if not name.startswith(LIVE):
            self.notices.add(Notice("info", self.texts("set.later"), aloud=False))

    def apply(self, name: str, value: Value) -> None:
        """Follow a setting from now on."""
        before = self.options.get(name)
        self.options[name] = value
        if value == before:
            return
        self.talk.follow(name, value)
        if name == "screen.brightness":
            self._bright()
        elif name in ("screen.language", "screen.text", "screen.contrast"):
            pages = self.lay_out(self.options)
            self.pages, self.texts = pages, pages.texts
            mirror = self.display.mirror
            self.display = Display(self.display.screen, pages, self.clock.monotonic)
            self.display.mirror = mirror
            self.talk.reply.use(pages)
            if name == "screen.language":
                self.home()  # the titles of open pages are in the language before

    def _relaid(self, options: Mapping[str, Value]) -> Layout:
        if not isinstance(self.pages, Pages):
            return self.pages
        texts = Texts(str(options.get("screen.language", self.texts.language)))
        large = options.get("screen.text") == "large"
        return Pages(self.pages.size, self.pages.fonts, texts, large)

    # the screen

    def wake(self) -> None:
        """Light the screen."""
        self._touched = self.clock.monotonic()
        if self.dark:
            self.dark = False
            self._bright()

    def _bright(self) -> None:
        percent = float(self.options.get("screen.brightness", 100))
        level = 0.0 if self.dark else min(1.0, max(0.05, percent / 100))
        self.display.screen.power(level)

    def _sleep(self) -> None:
        """Go dark after a while of rest; with a PIN, lock with it. Paper has no light to save."""
        after = float(self.options.get("screen.sleep", 0.0))
        state, now = self.machine.state, self.clock.monotonic()
        if state not in RESTS or self.fingers.any or self.notices.voice:
            self._touched = now
        elif not self.dark and (self.drowsy or after and now - self._touched >= after):
            self.drowsy = False
            if self.options.get("lock.sleep", True):
                self.lock()
            if not self.display.screen.paper:
                self.dark = True
                self._bright()

    def lock(self) -> None:
        """Put the PIN before everything, if there is one."""
        if self.pin is None or not self.pin.set or self.machine.state in LOCKED:
            return
        self.talk.aside = ""
        self.talk.stop()
        self.page = None
        self.machine.fire("lock")
        if self.machine.state == "idle":
            self.machine.fire("lock")

    def unlocked(self) -> None:
        """The right PIN was entered."""
        self.machine.fire("open")
        self.page = None

    # pages

    def go(self, page: Page) -> None:
        """Show a page, if the state lets its state happen."""
        if self.machine.state == page.state or self.machine.fire(page.state):
            self.page = page
            self.machine.touch()

    def reopen(self, page: Page | None) -> bool:
        """Back to the page that something was said on; False when it is gone."""
        if isinstance(page, Card):
            if page.asked in self.cards.open:
                self.cards.show(page.asked)
        elif page is not None:
            self.go(page)
        return page is not None and self.machine.state == page.state

    def home(self) -> None:
        """Leave the pages that are browsed."""
        self.machine.fire("home")
        self.page = None

    def _settle(self) -> None:
        """Leave no state without its page, and no turn without one."""
        state = self.machine.state
        if state not in VIEWS and (self.page is None or self.page.state != state):
            self.page = None
            if not self.machine.fire("home"):
                self.machine.fire("back")
        elif state in VIEWS:
            self.page = None
        seen, self._seen = self._seen, self.page
        if seen is not None and seen is not self.page:
            seen.hidden()
        if self.machine.state == "idle" and self.talk.reply.streaming:
            self.talk.go_on()

    # time

    def _tick(self) -> None:
        self.hands.tick()
        self.cards.tick()
        state = self.machine.state
        if state == "reply" and self.talk.reply.speaking and not self.talk.reply.streaming:
            self.machine.touch(self.linger)
        page = self.page
        if self.machine.tick():
            self._timed_out(state, page)
        self.notices.tick()
        self._settle()
        self._sleep()

    def _timed_out(self, state: str, page: Page | None) -> None:
        if state in ("listening", "thinking", "reply", "notice"):
            self.talk.timed_out(state)
        elif state == "starting":
            why = self.texts("error.starting", why=self.texts("idle.no_core"))
            self.notices.fill(Notice("error", why, aloud=False))
        elif isinstance(page, Card):
            page.asked.later = True  # nobody is there: it stays open, and is in the menu

    def rest_for(self) -> float:
        """Seconds until something changes by itself: a frame of an animation, a deadline, the minute."""
        state, touched = self.machine.state, self.fingers.any or self.hands.waiting
        if self.page is not None:
            return SMOOTH if self.page.growing else FRAME if touched else 0.5
        if self.talk.busy or state in ("starting", "notice", "ring") or touched:
            return FRAME
        now, local = self.clock.monotonic(), self.clock.local()
        minute = 60.01 - local.second - local.microsecond / 1e6
        due = min(self.machine.left, self.display.screen.due - now, minute)
        after = float(self.options.get("screen.sleep", 0.0))
        if after and not self.dark:
            due = min(due, max(0.5, self._touched + after - now))
        return max(0.01, min(due, 0.5) if self.notices.waiting else due)
