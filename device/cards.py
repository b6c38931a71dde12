"""What exod asks a person: approvals and questions, one at a time, the rest in a queue. Owns which are open.

Only a held ok allows; a tap of back, a row of the card, and the words for no deny. Invariant: no press that
was down when the card appeared, or came within REFLEX of it, and nothing said or typed, allows anything."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unicodedata import category

from exo.device.browse import NEVER, Page, Scrolled
from exo.device.entry import Entry
from exo.device.events import Called
from exo.device.pages import View
from exo.device.states import ASKED, BROWSED, LOCKED
from exo.device.text import UNSEEN, clusters, seen
from exo.device.wire import Notice

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

REFLEX = 0.4  # seconds: a press so soon was meant for what was there before
LONGEST = 86_400.0  # seconds that a question may stand
WAITS = 300.0  # seconds that a question stands on the screen before it is left for later
WHOLE = 14  # letters of an option that every panel shows; longer ones stand in the text too
ARGUMENT = 1200  # characters of an argument that are shown
GONE = ("unknown_approval", "already_answered")


@dataclass
class Asked:
    """An open request. `until` is monotonic; `later`: the person left it for later."""

    id: str
    body: dict[str, Any]
    kind: str  # card, question
    until: float = math.inf
    later: bool = False

    @property
    def label(self) -> str:
        """Its words on the screen; "" where there is nothing to be seen."""
        text = str(self.body.get("text") or self.body.get("summary") or "")
        return text if seen(text) else ""


class Cards:
    """All open requests, the oldest first."""

    def __init__(self, device: Handheld) -> None:
        self._device = device
        self.open: list[Asked] = []
        self._sent: dict[
            int, Asked
        ] = {}  # answers on their way to exod, by the order of their sending
        self._number = 0

    @property
    def next(self) -> Asked | None:
        """The one to show now: what would act comes before what only asks."""
        return min(
            (each for each in self.open if not each.later),
            key=lambda each: each.kind != "card",
            default=None,
        )

    @property
    def later(self) -> list[Asked]:
        """Questions that were left for later."""
        return [each for each in self.open if each.later]

    # what exod tells

    def on_event(self, kind: str, body: dict[str, Any]) -> None:
        """approval.requested, approval.resolved or question.asked."""
        device = self._device
        if kind == "approval.resolved":
            self._resolved(str(body.get("request", "")), body)
            return
        id_ = str(body.get("request" if kind == "approval.requested" else "question", ""))
        if not id_ or any(each.id == id_ for each in self.open):
            return
        if kind == "question.asked":
            self._opened(Asked(id_, body, "question"))
            return
        expires = body.get("expires")
        left = LONGEST
        if isinstance(expires, int):
            left = min(LONGEST, (expires - device.clock.now_ms()) / 1000)
        if left > 0:
            self._opened(Asked(id_, body, "card", device.clock.monotonic() + left))

    def _opened(self, asked: Asked) -> None:
        self.open.append(asked)
        if self._device.machine.state in (*LOCKED, "entry"):  # it cannot be shown yet, but heard
            self._device.voice.chime("approval")

    def _resolved(self, request: str, body: dict[str, Any]) -> None:
        asked = next((each for each in self.open if each.id == request), None)
        if asked is None:
            return
        by, choice = str(body.get("by", "")), str(body.get("choice", "deny"))
        name = f"card.by_{by}" if by in ("timeout", "interrupt", "restart") else "card.elsewhere"
        answer = self._device.texts(f"card.was_{'deny' if choice == 'deny' else 'allow'}")
        self._close(asked)
        if by != "interrupt":  # that was the person, here or elsewhere
            self._device.notices.add(Notice("info", self._device.texts(name, answer=answer)))

    def _close(self, asked: Asked) -> None:
        self.open = [each for each in self.open if each is not asked]
        page = self._device.page
        while isinstance(page, Page):  # the card, or the line that is typed for it
            if isinstance(page, Card) and page.asked is asked:
                self._leave()
                return
            page = page.parent

    def on_answered(self, event: Called) -> None:
        """exod took an answer, or did not: then it is asked again, or somebody was faster."""
        texts, asked = self._device.texts, self._sent.pop(event.ticket, None)
        if event.result is None:
            gone = event.code in GONE
            if asked and not gone:
                self.open.insert(0, asked)
            text = texts("card.late") if gone else texts("card.failed", why=event.why)
            notice = Notice("info" if gone else "error", text, aloud=False)
            if self._device.machine.state == "idle":
                self._device.notices.show("failed", notice)  # before it is asked again
            else:
                self._device.notices.add(notice)

    # what the person says

    def answer(self, asked: Asked, choice: str) -> None:
        """allow, allow_always or deny; of a question, its answer."""
        device = self._device
        self.open = [each for each in self.open if each is not asked]
        self._number += 1
        if choice != "deny" or asked.kind == "question":  # a denial that is lost is one by its time
            self._sent[self._number] = asked
        if asked.kind == "card":
            body = {"request": asked.id, "choice": choice, "by": "exo-device"}
            device.link.call("answer", self._number, "approval.respond", body)
        else:
            body = {"question": asked.id, "answer": choice}
            device.link.call("answer", self._number, "question.answer", body)
        self._leave()

    def put_off(self, asked: Asked) -> None:
        """A question is left for later: it stands in the menu."""
        asked.later = True
        self._leave()

    def _leave(self) -> None:
        """To the turn that asked, if it goes on; else to rest."""
        device = self._device
        if device.machine.state in ASKED and device.talk.reply.streaming:
            device.talk.go_on()
        elif device.machine.state in (*ASKED, "entry"):
            device.machine.fire("home" if device.machine.can("home") else "back")
        device.page = None

    # time

    def tick(self) -> None:
        """Let go of what is over, and show what waits."""
        device = self._device
        now = device.clock.monotonic()
        for asked in [each for each in self.open if each.until <= now]:
            self._close(asked)
            device.notices.add(Notice("info", device.texts("card.by_timeout")))
        first, state = self.next, device.machine.state
        if first is None or not self._free(state) or state == first.kind:
            return
        if device.machine.can(first.kind):
            self.show(first)

    def _free(self, state: str) -> bool:
        """Whether a card may take the place of what is shown: not of what is being said or typed."""
        if state in LOCKED or state == "entry":
            return False
        if state == "thinking" and self._device.talk.aside:
            return False
        if state == "notice" and self._device.notices.now.level in ("warning", "error"):
            return False  # what failed is read first
        return state in ("idle", "thinking", "reply", "notice", *ASKED, *BROWSED)

    def show(self, asked: Asked) -> None:
        """Put it on the screen."""
        device = self._device
        device.notices.hush()
        asked.later = False
        page: Card = Approval(device, asked) if asked.kind == "card" else Question(device, asked)
        if device.machine.fire(asked.kind):
            device.page = page
            device.machine.touch(page.patience)
            device.fingers.void()
            device.wake()
            device.voice.chime("approval")


class Card(Page):
    """What an approval and a question have in common: a text, then the choices, one line of ways down."""

    def __init__(self, device: Handheld, asked: Asked, title: str, text: str) -> None:
        super().__init__(device, title)
        self.asked, self.text = asked, text
        self._scrolled = Scrolled(device, text, "card")
        self._since = device.clock.monotonic()
        self.chosen = 0
        self.hint = ""

    @property
    def choices(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def left(self) -> int:
        """Whole seconds until it is too late, 0 for a question that waits."""
        until = self.asked.until
        return 0 if math.isinf(until) else max(0, math.ceil(until - self.device.clock.monotonic()))

    @property
    def patience(self) -> float:
        """Seconds that it stands on the screen from now."""
        return min(self.asked.until - self.device.clock.monotonic(), WAITS)

    @property
    def sudden(self) -> bool:
        """Whether it has only just appeared."""
        return self.device.clock.monotonic() - self._since < REFLEX

    def view(self) -> View:
        return View(
            "card",
            NEVER,
            self.title,
            self.text,
            "risk" if self.state == "card" else "question",
            hint=self.hint,
            elapsed=self.left,
            lines=self._scrolled.lines,
            scroll=self._scrolled.pixels,
            choices=self.choices,
            chosen=self.chosen if self.choices else -1,
            progress=self.growing,
        )

    def key(self, name: str) -> None:
        self.hint = ""
        if name == "down" and not self._scrolled.move(1):
            step = min(self.chosen + 1, len(self.choices) - 1)
            lone = self.device.fingers.lone and self.chosen == step
            self.chosen = 0 if lone else step
        elif name == "up":
            if self.chosen:
                self.chosen -= 1
            else:
                self._scrolled.move(-1)

    def aloud(self) -> str:
        choices = ", ".join(self.choices)
        return f"{self.title}. {self.text}. {choices}"


class Approval(Card):
    """Something that exod will do only when it is allowed."""

    state = "card"
    holds = True

    def __init__(self, device: Handheld, asked: Asked) -> None:
        body, texts = asked.body, device.texts
        args = body.get("args")
        tool = _visible(body.get("tool", ""))
        parts = [_visible(body.get("summary", "")), f"{texts('card.tool')}: {tool}"]
        if isinstance(args, dict):
            parts += [f"{_visible(name)}: {_visible(value)}" for name, value in args.items()]
        title = texts("card.title" if "back" in device.fingers.names else "card.ask")
        super().__init__(device, asked, title, "\n".join(filter(None, parts)))
        # allow_always is a rule for what is not seen yet: only where exod says that it may be
        self._always = body.get("always") is True

    @property
    def choices(self) -> tuple[str, ...]:
        texts, ok = self.device.texts, self.device.label(self.device.fingers.ok)
        always = (texts("card.always", ok=ok),) if self._always else ()
        return (texts("card.allow", ok=ok), texts("card.deny", ok=ok), *always)

    @property
    def growing(self) -> float:
        return 0.0 if self.chosen == 1 and not self.device.fingers.single else super().growing

    def key(self, name: str) -> None:
        if name in ("back", "left") or name == "ok" and self.chosen == 1:
            self.device.cards.answer(self.asked, "deny")
        elif name == "ok":
            self.hint = self.device.texts("card.hold", ok=self.device.label(self.device.fingers.ok))
        else:
            super().key(name)

    def hold(self) -> None:
        choice = ("allow", "deny", "allow_always")[self.chosen]
        if choice != "deny" or self.device.fingers.single:
            self.device.cards.answer(self.asked, choice)

    def said(self, text: str) -> None:
        """Words deny, and nothing else."""
        words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", text.lower().replace("’", "'"))
        if set(words) & set(self.device.texts("card.no").split()):
            self.device.cards.answer(self.asked, "deny")
        else:
            self.hint = self.device.texts("card.words")


class Question(Card):
    """Something that exod wants to know; left for later by back."""

    state = "question"

    def __init__(self, device: Handheld, asked: Asked) -> None:
        options = asked.body.get("options")
        given = (str(each) for each in options) if isinstance(options, list) else ()
        self._options = tuple(each for each in given if seen(each))
        cut = any(len(clusters(each)) > WHOLE for each in self._options)
        text = "\n• ".join((asked.label, *(self._options if cut else ())))
        super().__init__(device, asked, device.texts("question.title"), text)
        self.holds = device.fingers.single

    @property
    def choices(self) -> tuple[str, ...]:
        texts = self.device.texts
        return (*self._options, texts("question.type"), texts("question.later"))

    def key(self, name: str) -> None:
        if name in ("back", "left"):
            self.device.cards.put_off(self.asked)
        elif name in ("ok", "right"):
            self._choose()
        else:
            super().key(name)

    def hold(self) -> None:
        self._choose()

    def _choose(self) -> None:
        device = self.device
        if self.chosen < len(self._options):
            device.cards.answer(self.asked, self._options[self.chosen])
        elif self.chosen == len(self._options):
            device.go(Entry(device, self.title, self.said, self))
        else:
            device.cards.put_off(self.asked)

    def said(self, text: str) -> None:
        self.device.cards.answer(self.asked, text.strip())


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    half = ARGUMENT // 2  # begin and end: what matters hides at either
    more = len(text) - ARGUMENT
    return text if more <= 0 else f"{text[:half]} …({more})… {text[-half:]}"


def _visible(value: object) -> str:
    """One paragraph in which nothing hides: ends of lines, and marks for what is not seen or turns the
    order of what is; of what is long, that it is cut."""
    return "".join(
        " ¶ " if char == "\n" else f"<{ord(char):x}>" if category(char) in UNSEEN else char
        for char in _short(value).replace("\r\n", "\n")
    )
