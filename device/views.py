"""From the handheld's state to the View of its page: one function a state."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING

from exo.device.pages import View

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

_NEVER = datetime.datetime.min  # for pages without a clock, so that they do not change with it
STEP = 0.2  # seconds of one step of an animation


def _frame(device: Handheld) -> int:
    return int(device.machine.elapsed / STEP)


def _starting(device: Handheld) -> View:
    return View("starting", _NEVER, text=device.texts("starting.exod"), frame=_frame(device))


def _idle(device: Handheld) -> View:
    if device.core_up is False:
        hint = device.texts("idle.no_core")
    elif device.models_up is False:
        hint = device.texts("idle.no_voice")
    else:
        hint = device.texts("idle.toggle" if device.toggles else "idle.hint")
    return View(
        "idle",
        device.clock.local().replace(second=0, microsecond=0),
        hint=hint,
        pending=bool(device.notices),
        core=device.core_up is not False,
        voice=device.models_up is not False and device.voice.on and device.muted is None,
        battery=device.battery[0],
        charging=device.battery[1],
    )


def _listening(device: Handheld) -> View:
    hint = device.texts("listening.toggle" if device.toggles else "listening.hint")
    seconds = int(device.machine.elapsed)
    levels = tuple(device.levels)
    return View("listening", _NEVER, hint=hint, elapsed=seconds, levels=levels)


def _thinking(device: Handheld) -> View:
    texts = device.texts
    title = texts("thinking.tool", tool=device.doing) if device.doing else texts("thinking")
    text = device.heard or texts("thinking.hearing")
    seconds = int(device.machine.elapsed)
    return View("thinking", _NEVER, title, text, elapsed=seconds, frame=_frame(device))


def _reply(device: Handheld) -> View:
    return device.reply.view(_NEVER, _frame(device), bool(device.notices))


def _notice(device: Handheld) -> View:
    notice, texts = device.notice, device.texts
    lines = device.pages.lay_out(notice.text)
    return View(
        "notice",
        _NEVER,
        notice.title or texts(f"notice.{notice.level}"),
        notice.text,
        notice.level,
        texts("notice.hint"),
        lines=lines,
        scroll=sum(line.height for line in lines[: device.notice_first]),
    )


VIEWS: dict[str, Callable[[Handheld], View]] = {
    "starting": _starting,
    "idle": _idle,
    "listening": _listening,
    "thinking": _thinking,
    "reply": _reply,
    "notice": _notice,
    "off": lambda device: View("off", _NEVER),
}
