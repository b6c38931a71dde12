"""What exod's events mean to the handheld. Owns which events are ours; the handheld owns what follows.

Invariant: an event of another session, of a turn that was given up, or of a shape that is not known
changes nothing."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exo.device.events import Called
from exo.device.locale import Texts

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

LEVELS = ("info", "warning", "error")
BELLS = ("timer", "reminder")  # codes of notices that rang


@dataclass(frozen=True)
class Notice:
    """Something a person should see. `level` is info, warning, error or timer."""

    level: str
    text: str
    title: str = ""
    aloud: bool = True


def take(device: Handheld, event: dict[str, Any]) -> None:
    """Apply one event of the protocol."""
    kind, body, session = event.get("type"), event.get("body"), event.get("session")
    if not isinstance(body, dict):
        return
    if kind == "notice":
        if not session or session == device.link.session:
            _notice(device, body)
    elif session == device.link.session and device.reply.streaming:
        _turn(device, str(kind), body)


def _turn(device: Handheld, kind: str, body: dict[str, Any]) -> None:
    reply, turn = device.reply, str(body.get("turn", ""))
    if kind == "turn.started" and not reply.turn:
        reply.turn = turn
    if not turn or turn != reply.turn:
        return
    if device.machine.state in ("thinking", "reply"):
        device.machine.touch()
    message = body.get("message")
    if kind == "message.delta":
        _speak(device, reply.delta(str(message), str(body.get("text", ""))))
    elif kind == "message.completed" and isinstance(message, dict):
        if message.get("role") == "assistant" and message.get("text"):
            _speak(device, reply.whole(str(message.get("id")), str(message["text"])))
    elif kind == "tool.started":
        device.doing = str(body.get("tool", ""))
    elif kind == "turn.completed":
        recalled = body.get("recalled")
        reply.recalled = [str(each) for each in recalled] if isinstance(recalled, list) else []
        fault = body.get("error")
        if isinstance(fault, dict) and fault.get("message"):
            device.turn_error = str(fault["message"])
        _completed(device, str(body.get("stop_reason", "end")))


def _speak(device: Handheld, sentences: list[tuple[int, str]]) -> None:
    """Have finished sentences spoken; the first words turn the page."""
    for place, sentence in sentences:
        device.voice.say(device.reply.voice, sentence, place)
    if device.reply.text and device.machine.state == "thinking":
        device.machine.fire("text")


def _completed(device: Handheld, reason: str) -> None:
    _speak(device, device.reply.end(reason))
    failed = reason == "error" or bool(device.turn_error)
    why = device.turn_error or device.texts("error.unknown")
    if failed and not device.reply.text:
        device.fail(device.texts("error.turn", why=why))
        return
    if failed:
        device.notices.append(Notice("error", device.texts("error.turn", why=why)))
    if device.machine.state == "thinking":
        device.machine.fire("done")
    if device.reply.voice:
        device.voice.end(device.reply.voice)
    device.rest()


def why(texts: Texts, event: Called) -> Notice:
    """What a belief stands on, as a page: the belief, then each entry with its day."""
    if event.result is None:
        return Notice("error", texts("error.why", why=event.why))
    lines = [str(event.result.get("text") or event.result.get("title") or "").strip()]
    for each in event.result.get("evidence") or []:
        day = datetime.datetime.fromtimestamp(int(each.get("ts", 0)) / 1000).astimezone()
        said = str(each.get("text", ""))
        if each.get("kind") == "utterance":
            lines.append(texts("why.said", when=texts.date(day), text=said))
        elif not any(said in line for line in lines):
            lines.append(f"{texts.date(day)}: {said}")
        else:
            lines.append(texts("why.kept", when=texts.date(day)))
    return Notice("info", "\n".join(lines), texts("why"))


def _notice(device: Handheld, body: dict[str, Any]) -> None:
    level, code, text = (str(body.get(key, "")) for key in ("level", "code", "text"))
    if level == "error" and device.reply.streaming:
        device.turn_error = text  # the end of the turn follows and shows it
    elif text:
        if code in BELLS:
            level = "timer"
            device.voice.chime("timer")
        device.notices.append(Notice(level if level in (*LEVELS, "timer") else "info", text))
