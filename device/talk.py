"""Talking: the press that records, the question that goes out, the reply that comes in and is read and
spoken. Owns the ticket that tells a late report from one that is wanted.

What is said on a card, on a question or while text is typed is no question to exod: `aside` names the
page that takes it. Invariant: the turn that runs behind such a page is not disturbed."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from exo.device import events as ev
from exo.device.reply import Reply
from exo.device.states import ASKED
from exo.device.wire import Notice

if TYPE_CHECKING:
    from exo.device.browse import Page
    from exo.device.handheld import Handheld

SHORT = 0.3  # seconds: a press that is shorter is no recording
LOUD = 1.5  # seconds for which "too loud" is shown
PAUSE = 3.0  # seconds that a reply rests before a notice may take its place
ASIDE = (*ASKED, "entry")


class Talk:
    """The handheld's conversation."""

    def __init__(self, device: Handheld) -> None:
        self._device = device
        self.reply = Reply(device.pages)
        self.ticket = 0  # of the present question
        self.levels: deque[float] = deque(maxlen=128)
        self.aside = ""
        self.error = ""  # why the turn failed
        self.heard = ""
        self.doing = ""  # what the turn is at, a tool's name
        self.unread = False  # the first words of the reply are not on the screen yet
        self.mode = "auto"  # what ends a recording: hold, tap, or auto, either
        self._tapped = False  # the recording ends by itself, or by a second press
        self._clipped = float("-inf")  # monotonic time at which the microphone was last too loud
        self._barged = False  # the press that records has stopped something
        self._before = "idle"  # where it began
        self._page: Page | None = None
        self._rested = 0.0  # monotonic time since when the reply is complete

    @property
    def busy(self) -> bool:
        """Whether a turn or its speech is under way."""
        return self._device.machine.state in ("listening", "thinking") or self.reply.active

    @property
    def rested(self) -> bool:
        """Whether the reply stood long enough for a notice to take its place."""
        return not self.reply.active and self._device.clock.monotonic() - self._rested > PAUSE

    # the person

    def press(self) -> None:
        """Listen."""
        device = self._device
        if self._tapped and device.machine.state == "listening":
            self._finish()
            return
        if not device.machine.can("talk"):
            return
        self._before = device.machine.state
        if self._before != "thinking":  # there, what was said aside may be said once more
            self.aside = self._before if self._before in ASIDE else ""
            self._page = device.page
        self._barged = self.busy or bool(device.notices.voice)
        self.stop()
        device.trace("pressed")
        self.ticket += 1
        self.levels.clear()
        device.machine.fire("talk")
        # a terminal tells no release: what is pressed there is a tap. Where a press can mean something
        # else (be quiet, choose, answer a page), its length says which
        tapped = self.mode == "tap" and not (self._barged or self._chooses or self.aside)
        self._tapped = tapped or device.toggles and self.mode == "auto"
        device.ear.start(self.ticket)
        device.voice.chime("listen")
        if not self.aside:
            device.link.prefill()

    def release(self) -> None:
        """Send what was recorded; a short press is a tap."""
        device = self._device
        if self._tapped and not device.toggles:
            return
        if device.machine.elapsed >= SHORT:
            self._finish()
            return
        other = self.aside or self._chooses or self._barged
        if self.mode == "auto" and not (other or device.toggles):
            self._tapped = True
            return
        device.ear.cancel()
        if self.aside:
            self.leave()
        elif self._chooses:
            self._chosen()
        elif self._barged:  # a tap while it spoke: it was to be quiet, no more
            device.machine.fire("back")
            self.again()
        else:
            hint = device.texts("hint.toggle" if device.toggles else "hint.short")
            device.notices.show("short", Notice("info", hint, aloud=False))

    @property
    def _chooses(self) -> bool:
        """Whether a tap where the press began chooses."""
        return self._before in ("notice", "reply") and self._device.fingers.ok == "talk"

    def _finish(self) -> None:
        """All is said."""
        device = self._device
        device.trace("released")
        self.heard = ""
        device.ear.finish()
        device.machine.fire("release")
        device.voice.chime("heard")

    @property
    def ending(self) -> str:
        """The hint while it listens: what ends it, or that it is too loud."""
        if self._device.clock.monotonic() - self._clipped < LOUD:
            return "loud"
        if self._tapped:
            return "toggle" if self._device.toggles else "tap"
        return "hint"

    def mute(self, on: bool) -> None:
        """Speak no more, at once, or again; what was being spoken can be read."""
        self._device.voice.mute(on)
        self._device.notices.voice = 0
        if on and self.reply.mute(self.reply.voice):
            self.rest()

    def hush(self, on: bool) -> None:
        """Mute or not, and have exod keep it."""
        self.mute(on)
        self._device.save("voice.mute", on)

    def follow(self, name: str, value: object) -> None:
        """A setting of sound has this value from now on."""
        voice = self._device.voice
        if name == "voice.mute" and bool(value) != voice.muted:
            self.mute(bool(value))
        elif name == "voice.volume":
            voice.volume = float(str(value))
        elif name == "sounds":
            voice.sounds = value == "on"
        elif name == "listen.mode":
            self.mode = str(value)

    def _chosen(self) -> None:
        """A tap where talk is the key that chooses too."""
        self._device.machine.fire("back")
        if self._before == "reply":
            self.again()
            if not self._barged:
                self.ok()

    def again(self) -> None:
        """Show the last reply once more."""
        if self.reply.text and self._device.machine.fire("show"):
            self._device.machine.touch(self._device.linger)

    def ok(self) -> None:
        """OK on a reply: what it stands on, else leave it."""
        if not self.reply.streaming and self.reply.recalled:
            self._device.link.why(self.ticket, self.reply.recalled[0])
        elif not self.reply.active:
            self._device.machine.fire("back")

    def back(self) -> None:
        """Stop, then leave."""
        device = self._device
        if self.aside and device.machine.state in ("listening", "thinking"):
            self.leave()
            return
        speaking = self.reply.active or bool(device.notices.voice)
        self.stop()
        if device.machine.state == "reply" and speaking:
            device.machine.touch(device.linger)
        else:
            device.machine.fire("back")

    def leave(self) -> None:
        """Give up what was said aside; the page that it was for comes back."""
        device = self._device
        device.ear.cancel()
        self.ticket += 1
        self.aside = ""
        if not device.reopen(self._page):
            device.machine.fire("back")

    def scroll(self, lines: int) -> None:
        self.reply.scroll(lines)
        if not self.reply.active:
            self._device.machine.touch(self._device.linger)

    def typed(self, text: str) -> None:
        """A line typed on a keyboard."""
        device = self._device
        state = device.machine.state
        if not text.strip() or not device.machine.can("send"):
            return
        device.wake()
        if state in ASIDE and device.page:
            device.page.said(text)
            return
        self.aside = ""
        self.stop()
        self.ticket += 1
        device.machine.fire("send")
        self._ask(text, "typed")

    # what comes of it

    def on_level(self, event: ev.Level) -> None:
        if event.ticket == self.ticket:
            self.levels.append(event.value)
            self._clipped = self._device.clock.monotonic() if event.clipped else self._clipped

    def on_speech_ended(self, event: ev.SpeechEnded) -> None:
        device = self._device
        if event.ticket != self.ticket or device.machine.state != "listening":
            return
        if event.why == "cut" or self._tapped and event.why == "pause":
            self._finish()
        elif self._tapped and self.aside:
            self.leave()
        elif self._tapped:
            device.ear.cancel()
            nothing = Notice("info", device.texts("heard.nothing"), aloud=False)
            device.notices.show("short", nothing)

    def on_heard(self, event: ev.Heard) -> None:
        device = self._device
        if event.ticket != self.ticket or device.machine.state not in ("thinking", "listening"):
            return
        if device.machine.state == "listening":  # the microphone ended by itself
            device.machine.fire("release")
        device.models_up = True
        device.trace("heard")
        if event.fault:
            text = device.texts("error.microphone", why=event.fault)
            device.notices.add(Notice("error", text, aloud=False))
        if self.aside:
            self.aside = ""
            self.ticket += 1
            if not device.reopen(self._page):  # it was answered elsewhere meanwhile
                device.machine.fire("back")
            elif event.text and device.page:
                device.page.said(event.text)
        elif event.text:
            device.machine.touch()
            self._ask(event.text, "voice")
        else:
            nothing = Notice("info", device.texts("heard.nothing"), aloud=False)
            device.notices.show("nothing", nothing)

    def on_deaf(self, event: ev.Deaf) -> None:
        if event.ticket == self.ticket:
            self.fail(self._device.texts(f"error.{event.part}", why=event.why))

    def on_mute(self, event: ev.Mute) -> None:
        """Speech is a help: a reply that cannot be spoken can still be read."""
        device = self._device
        if event.ticket == device.notices.voice:
            device.notices.voice = 0
        if (event.part, event.why) != device.muted:  # once, not with every reply
            device.muted = (event.part, event.why)
            text = device.texts(f"error.{event.part}", why=event.why)
            device.notices.add(Notice("error", text, aloud=False))
        if self.reply.mute(event.ticket):
            self.rest()

    def on_spoken(self, ticket: int) -> None:
        self._device.trace("silent")
        if self.reply.spoken(ticket):
            self.rest()
        elif ticket == self._device.notices.voice:
            self._device.notices.voice = 0

    def on_sent(self, event: ev.Called) -> None:
        device = self._device
        if event.ticket != self.reply.ticket or not self.reply.streaming:
            if event.result and not self.reply.streaming:
                device.link.interrupt()  # it was accepted after it had been given up
        elif event.result is None:
            name = "error.core" if event.code == "service" else "error.turn"
            self.fail(device.texts(name, why=event.why))
        else:
            self.reply.turn = str(event.result.get("turn", "")) or self.reply.turn

    def fail(self, why: str) -> None:
        """Something the person waited for came to nothing."""
        self.stop()
        self.aside = ""
        self._device.voice.chime("error")
        self._device.notices.show("failed", Notice("error", why, aloud=False))

    def rest(self) -> None:
        """The reply is read for a while more once nothing of it is to come."""
        if self._device.machine.state == "reply" and not self.reply.active:
            self._device.machine.touch(self._device.linger)
            self._rested = self._device.clock.monotonic()

    def stop(self) -> None:
        """Silence, and end the turn and the recording that are under way; aside only the latter."""
        device = self._device
        if device.machine.state in ("listening", "thinking"):
            device.ear.cancel()
        if device.machine.state == "thinking":
            self.ticket += 1
        if self.reply.active or device.notices.voice:
            device.voice.cancel()
        device.notices.voice = 0
        if self.aside:
            return
        if self.reply.streaming:
            device.link.interrupt()
        self.reply.stop()

    def go_on(self) -> None:
        """Back to a turn that ran on behind another page."""
        machine = self._device.machine
        if self.reply.streaming and machine.fire("answered") and self.reply.text:
            machine.fire("text")

    def timed_out(self, state: str) -> None:
        """The deadline of listening, thinking or reply is over."""
        device = self._device
        if state == "listening":
            device.ear.finish()
        elif state == "thinking":
            device.ear.cancel()
            if not self.aside:
                if self.reply.streaming:
                    device.link.interrupt()
                self.reply.stop()
            self.aside = ""
            self.ticket += 1
            device.notices.fill(Notice("error", device.texts("error.slow"), aloud=False))
        else:
            self.stop()

    def _ask(self, text: str, channel: str) -> None:
        """Send the question of the present ticket."""
        device = self._device
        self.error, self.doing, self.heard, self.unread = "", "", text, True
        self.reply.begin(self.ticket, text, device.voice.begin() if device.voice.on else 0)
        device.link.send(self.ticket, text, channel)
