"""From the handheld's state to the View of its page: one function a state of talking and resting; a page
that is browsed, and a card, makes its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from exo.device.browse import NEVER
from exo.device.pages import View

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

STEP = 0.2  # seconds of one step of an animation


def _frame(device: Handheld) -> int:
    return int(device.machine.elapsed / STEP)


def _starting(device: Handheld) -> View:
    return View("starting", NEVER, text=device.texts("starting.exod"), frame=_frame(device))


def _idle(device: Handheld) -> View:
    texts, locked = device.texts, device.machine.state == "locked"
    speaks = device.models_up is not False and device.voice.on
    if locked:
        hint = texts("locked.hint")
    elif device.core_up is False:
        hint = texts("idle.no_core")
    elif device.models_up is False:
        hint = texts("idle.no_voice")
    else:
        hint = texts("idle.toggle" if device.toggles else "idle.hint")
    percent, charging = device.battery
    return View(
        "idle",
        device.clock.local().replace(second=0, microsecond=0),
        hint=hint,
        pending=bool(device.notices.waiting or device.cards.open),
        core=device.core_up is not False,
        voice=speaks and device.muted is None,
        battery=percent,
        charging=charging,
        locked=locked,
        muted=not device.voice.on,
        next_due="" if locked else device.known.next_due,
    )


def _listening(device: Handheld) -> View:
    hint = device.texts(f"listening.{device.talk.ending}")
    seconds = int(device.machine.elapsed)
    return View("listening", NEVER, hint=hint, elapsed=seconds, levels=tuple(device.talk.levels))


def _thinking(device: Handheld) -> View:
    texts, talk = device.texts, device.talk
    title = texts("thinking.tool", tool=talk.doing) if talk.doing else texts("thinking")
    text = talk.heard or texts("thinking.hearing")
    seconds = int(device.machine.elapsed)
    return View("thinking", NEVER, title, text, elapsed=seconds, frame=_frame(device))


def _reply(device: Handheld) -> View:
    return device.talk.reply.view(NEVER, _frame(device), bool(device.notices.waiting))


def _notice(device: Handheld) -> View:
    notice, texts = device.notices.now, device.texts
    lines = device.pages.lay_out(notice.text)
    return View(
        "notice",
        NEVER,
        notice.title or texts(f"notice.{notice.level}"),
        notice.text,
        notice.level,
        texts("notice.hint", ok=device.label(device.fingers.ok)),
        lines=lines,
        scroll=sum(line.height for line in lines[: device.notices.first]),
    )


VIEWS: dict[str, Callable[[Handheld], View]] = {
    "starting": _starting,
    "idle": _idle,
    "listening": _listening,
    "thinking": _thinking,
    "reply": _reply,
    "notice": _notice,
    "locked": _idle,
    "ring": _notice,
    "off": lambda device: View("off", NEVER),
}


def view(device: Handheld) -> View:
    """The page as it is now."""
    make = VIEWS.get(device.machine.state)
    if make is None:
        return device.page.view() if device.page else View("off", NEVER)
    return make(device)
