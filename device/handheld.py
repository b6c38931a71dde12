"""The handheld itself: one loop takes events from one queue, moves the state machine, gives orders to
the ear, the voice and the line to exod, and shows a page. Nothing that it calls waits.

Invariant: only this loop changes what the handheld knows; whatever dies, the state machine's deadlines
bring it back to idle."""

from __future__ import annotations

import queue
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from exo.board.screen import Screen
from exo.core.base.clock import Clock
from exo.device import events as ev
from exo.device import wire
from exo.device.display import Display
from exo.device.pages import Pages, View
from exo.device.ports import EarPort, LinkPort, VoicePort
from exo.device.reply import Reply
from exo.device.states import Machine
from exo.device.views import VIEWS
from exo.device.wire import Notice

SHORT = 0.3  # seconds: a press that is shorter is no recording
FRAME = 0.1  # seconds between two steps of an animation
REPEAT = (0.4, 0.12)  # seconds until a held arrow repeats, and between repeats
READ = 15.0  # letters a second that a notice stays, beside NOTICE seconds
NOTICE = 4.0
ARROWS = {"up": -1, "down": 1}


@dataclass(frozen=True)
class Snapshot:
    """What a script sees of the handheld at one moment."""

    state: str
    history: tuple[str, ...]
    screen: str
    reply: str
    busy: bool


class Handheld:
    """The device. `run` loops until quit; `step` is one round of it."""

    def __init__(
        self,
        screen: Screen,
        pages: Pages,
        clock: Clock,
        machine: Machine,
        linger: float = 10.0,
        toggles: bool = False,
        trace: Callable[[str], None] = lambda moment: None,
    ) -> None:
        """`linger` seconds a finished reply stays; `toggles`: the talk key tells no release; `trace`
        is told the moments of a turn as they pass: pressed, released, heard, shown, sounds, silent."""
        self._trace = trace
        self.display, self.pages, self.clock, self.machine = (
            Display(screen, pages, clock.monotonic),
            pages,
            clock,
            machine,
        )
        self.linger, self.toggles = linger, toggles
        self.texts = pages.texts
        self.events: queue.SimpleQueue[ev.Event] = queue.SimpleQueue()
        self.ear: EarPort
        self.voice: VoicePort
        self.link: LinkPort
        self.reply = Reply(pages)
        self.core_up: bool | None = None
        self.models_up: bool | None = None
        self._ticket = 0  # of the present question
        self.levels: deque[float] = deque(maxlen=128)
        self._barged = False  # the press that records has stopped something
        self.turn_error = ""
        self.notice = Notice("info", "")
        self.notices: deque[Notice] = deque(maxlen=20)
        self._notice_voice = 0
        self.notice_first = 0  # line of it
        self.muted: tuple[str, str] | None = None  # the part that cannot speak, and why
        self._held: tuple[str, float] | None = None  # an arrow and when it repeats
        self._lock = threading.Lock()  # for `snapshot` alone
        self.heard = ""
        self.doing = ""  # what the turn is at, a tool's name
        self._read = True  # whether the first words of the reply are on the screen
        self._rested = 0.0  # monotonic time since when the reply is complete
        self._syncs: list[threading.Event] = []
        self.battery: tuple[int | None, bool] = (None, False)  # percent, None: not known; charging
        self.lamp: Callable[[], None] = lambda: None  # shows the state on the board's light

    def attach(self, ear: EarPort, voice: VoicePort, link: LinkPort) -> None:
        """Connect the parts that post into `events`."""
        self.ear, self.voice, self.link = ear, voice, link

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
                    self.fail(f"{type(error).__name__}: {error}")

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
            self.display.show(self.view())
            self.lamp()
            if self.machine.state == "reply" and not self._read:
                self._read = True
                self._trace("shown")
        while self._syncs:
            self._syncs.pop().set()

    def snapshot(self, forget: bool = False) -> Snapshot:
        """What is to be seen now; `forget` begins the history anew."""
        with self._lock:
            history = tuple(self.machine.history)
            if forget:
                self.machine.forget()
            shown = self.display.shown
            return Snapshot(
                self.machine.state,
                history,
                shown.text if shown else "",
                self.reply.text,
                self.busy or bool(self._pending),
            )

    @property
    def busy(self) -> bool:
        """Whether a turn or its speech is under way."""
        return self.machine.state in ("listening", "thinking") or self.reply.active

    @property
    def _pending(self) -> int:
        return self.events.qsize()

    # events

    def _take(self, event: ev.Event) -> None:
        match event:
            case ev.Button():
                self._button(event.name, event.down)
            case ev.Typed():
                self._typed(event.text)
            case ev.Wire():
                wire.take(self, event.event)
            case ev.Link():
                self._linked(event)
            case ev.Called():
                self._called(event)
            case ev.Level():
                if event.ticket == self._ticket:
                    self.levels.append(event.value)
            case ev.Heard():
                self._hear(event)
            case ev.Deaf():
                self._deaf(event)
            case ev.Uttered():
                self.muted = None
                self._trace("sounds")
                self.reply.uttered(event.ticket, event.place)
            case ev.Spoken():
                self._spoken(event.ticket)
            case ev.Mute():
                self._mute(event)
            case ev.Battery():
                self.battery = event.percent, event.charging
            case ev.Alert():
                self._alert(event)
            case ev.Sync():
                self._syncs.append(event.done)
            case ev.Quit():
                self._stop_all()
                self.machine.fire("quit")

    def _alert(self, event: ev.Alert) -> None:
        notice = Notice(event.level, self.texts(event.key, why=event.why))
        if event.urgent:
            self._stop_all()
            self._say_notice("failed", notice)
        else:
            self.notices.append(notice)

    def _button(self, name: str, down: bool) -> None:
        if not down:
            self._held = None
            if name == "talk" and self.machine.state == "listening":
                self._release()
            return
        if name == "talk":
            self._talk()
        elif name == "back":
            self._back()
        elif name == "ok":
            self._ok()
        elif name in ARROWS:
            self._held = (name, self.clock.monotonic() + REPEAT[0])
            self._scroll(ARROWS[name])

    def _talk(self) -> None:
        if not self.machine.can("talk"):
            return
        self._barged = self.busy or self._speaking
        self._stop_all()
        self._trace("pressed")
        self._ticket += 1
        self.levels.clear()
        self.machine.fire("talk")
        self.ear.start(self._ticket)
        self.link.prefill()

    def _release(self) -> None:
        if self.machine.elapsed >= SHORT:
            self._trace("released")
            self.heard = ""
            self.ear.finish()
            self.machine.fire("release")
            return
        self.ear.cancel()
        if self._barged:  # a tap while it spoke: it was to be quiet, no more
            self.machine.fire("back")
            if self.reply.text:
                self.machine.fire("show")
                self.machine.touch(self.linger)
        else:
            self._say_notice(
                "short",
                Notice("info", self.texts("hint.toggle" if self.toggles else "hint.short")),
                aloud=False,
            )

    def _back(self) -> None:
        state = self.machine.state
        if state == "reply" and (self.reply.active or self._speaking):
            self._stop_all()
            self.machine.touch(self.linger)
            return
        self._stop_all()
        self.machine.fire("back")

    def _ok(self) -> None:
        state = self.machine.state
        if state == "notice":
            self._back()
        elif state == "reply" and not self.reply.streaming and self.reply.recalled:
            self.link.why(self._ticket, self.reply.recalled[0])
        elif state == "reply" and not self.reply.active:
            self.machine.fire("back")
        elif state == "idle" and self.reply.text:
            self.machine.fire("show")
            self.machine.touch(self.linger)

    def _scroll(self, lines: int) -> None:
        if self.machine.state == "reply":
            self.reply.scroll(lines)
            if not self.reply.active:
                self.machine.touch(self.linger)
        elif self.machine.state == "notice":
            last = self.pages.last(self.pages.lay_out(self.notice.text))
            self.notice_first = min(max(0, self.notice_first + lines), last)
            self.machine.touch(self._notice_time())

    def _typed(self, text: str) -> None:
        if text.strip() and self.machine.can("send"):
            self._stop_all()
            self._ticket += 1
            self.machine.fire("send")
            self._ask(text, "typed")

    def _ask(self, text: str, channel: str) -> None:
        """Send the question of the present ticket."""
        self.turn_error, self.doing, self.heard, self._read = "", "", text, False
        self.reply.begin(self._ticket, text, self.voice.begin() if self.voice.on else 0)
        self.link.send(self._ticket, text, channel)

    def _hear(self, event: ev.Heard) -> None:
        if event.ticket != self._ticket or self.machine.state not in ("thinking", "listening"):
            return
        if self.machine.state == "listening":  # the microphone ended by itself
            self.machine.fire("release")
        self.models_up = True
        self._trace("heard")
        if event.text:
            self.machine.touch()
            self._ask(event.text, "voice")
        else:
            self._say_notice("nothing", Notice("info", self.texts("heard.nothing")), aloud=False)

    def _deaf(self, event: ev.Deaf) -> None:
        if event.ticket == self._ticket:
            self.fail(self.texts(f"error.{event.part}", why=event.why))

    def _mute(self, event: ev.Mute) -> None:
        """Speech is a help: a reply that cannot be spoken can still be read."""
        if event.ticket == self._notice_voice:
            self._notice_voice = 0
        if (event.part, event.why) != self.muted:  # once, not with every reply
            self.muted = (event.part, event.why)
            self.notices.append(
                Notice("error", self.texts(f"error.{event.part}", why=event.why), aloud=False)
            )
        if self.reply.mute(event.ticket):
            self.rest()

    def _spoken(self, ticket: int) -> None:
        self._trace("silent")
        if self.reply.spoken(ticket):
            self.rest()
        elif ticket == self._notice_voice:
            self._notice_voice = 0

    def _called(self, event: ev.Called) -> None:
        if event.kind == "why" and event.ticket == self._ticket:
            self._stop_all()
            self._say_notice("notice", wire.why(self.texts, event), aloud=False)
        if event.kind != "send":
            return
        if event.ticket != self._ticket or not self.reply.streaming:
            if event.result and not self.reply.streaming:
                self.link.interrupt()  # it was accepted after it had been given up
            return
        if event.result is None:
            name = "error.core" if event.code == "service" else "error.turn"
            self.fail(self.texts(name, why=event.why))
        else:
            self.reply.turn = str(event.result.get("turn", "")) or self.reply.turn

    def _linked(self, event: ev.Link) -> None:
        if event.part == "models":
            self.models_up = event.up
            return
        before, self.core_up = self.core_up, event.up
        if event.up:
            if self.machine.state == "starting":
                self.machine.fire("ready")
        elif before and (self.reply.streaming or self.machine.state == "thinking"):
            self.fail(self.texts("error.core", why=event.why))

    def rest(self) -> None:
        """The reply is read for a while more once nothing of it is to come."""
        if self.machine.state == "reply" and not self.reply.active:
            self.machine.touch(self.linger)
            self._rested = self.clock.monotonic()

    # notices

    def fail(self, why: str) -> None:
        """Something the person waited for came to nothing."""
        self._stop_all()
        self._say_notice("failed", Notice("error", why), aloud=False)

    def _say_notice(self, trigger: str, notice: Notice, aloud: bool = True) -> None:
        if not self.machine.fire(trigger):
            return
        self.notice, self.notice_first = notice, 0
        self.machine.touch(self._notice_time())
        if aloud and self.voice.on and self.models_up:
            self._notice_voice = self.voice.begin()
            self.voice.say(self._notice_voice, notice.text)
            self.voice.end(self._notice_voice)

    def _notice_time(self) -> float:
        return NOTICE + len(self.notice.text) / READ

    def _stop_all(self) -> None:
        """Silence, and end the turn and the recording that are under way."""
        if self.reply.streaming:
            self.link.interrupt()
        if self.machine.state == "listening":
            self.ear.cancel()
        if self.reply.active or self._speaking:
            self.voice.cancel()
        if self.machine.state == "thinking":
            self.ear.cancel()
            self._ticket += 1
        self._notice_voice = 0
        self.reply.stop()

    @property
    def _speaking(self) -> bool:
        return bool(self._notice_voice)

    # time

    def _tick(self) -> None:
        state = self.machine.state
        if self._held and self.clock.monotonic() >= self._held[1]:
            name = self._held[0]
            self._held = (name, self.clock.monotonic() + REPEAT[1])
            self._scroll(ARROWS[name])
        if state == "notice" and self._speaking and self.machine.elapsed < 30:
            self.machine.touch(2.0)
        if state == "reply" and self.reply.speaking and not self.reply.streaming:
            self.machine.touch(self.linger)
        if self.machine.tick():
            self._timed_out(state)
        if self.notices and self._free():
            notice = self.notices.popleft()
            self._say_notice("notice", notice, notice.aloud)

    def _timed_out(self, state: str) -> None:
        if state == "listening":
            self.ear.finish()
        elif state == "starting":
            self._say_notice_now(Notice("error", self.texts("error.starting", why=self._why_not())))
        elif state == "thinking":
            if self.reply.streaming:
                self.link.interrupt()
            self.ear.cancel()
            self.reply.stop()
            self._ticket += 1
            self._say_notice_now(Notice("error", self.texts("error.slow")))
        else:
            self._stop_all()

    def _say_notice_now(self, notice: Notice) -> None:
        """Fill in the notice of a state that was entered already."""
        self.notice, self.notice_first = notice, 0
        self.machine.touch(self._notice_time())

    def _why_not(self) -> str:
        return self.texts("idle.no_core")

    def _free(self) -> bool:
        """Whether a notice that waits may be shown now."""
        state = self.machine.state
        if state == "reply":
            return not self.reply.active and self.clock.monotonic() - self._rested > 3
        return state == "idle"

    def rest_for(self) -> float:
        """Seconds until something changes by itself: a frame of an animation, a deadline, the minute."""
        if self._moving():
            return FRAME
        now, local = self.clock.monotonic(), self.clock.local()
        minute = 60.01 - local.second - local.microsecond / 1e6
        due = min(self.machine.left, self.display.screen.due - now, minute)
        return max(0.01, min(due, 0.5) if self.notices else due)

    def _moving(self) -> bool:
        """Whether the page changes by itself several times a second."""
        return self.busy or self.machine.state in ("starting", "notice") or self._held is not None

    def view(self) -> View:
        """The page as it is now."""
        return VIEWS[self.machine.state](self)
