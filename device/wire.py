"""What exod's events mean to the handheld. Owns which events are ours; the handheld owns what follows.

Invariant: an event of another session, of a turn that was given up, or of a shape that is not known
changes nothing."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from exo.device import orders
from exo.device.locale import Texts

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

LEVELS = ("info", "warning", "error")
BELLS = ("timer", "reminder")  # codes of notices that rang
ASKS = ("approval.requested", "approval.resolved", "question.asked")


@dataclass(frozen=True)
class Notice:
    """Something a person should see. `level` is info, warning, error or timer."""

    level: str
    text: str
    title: str = ""
    aloud: bool = True


def take(device: Handheld, event: dict[str, Any]) -> None:
    """Apply one event of the protocol."""
    kind, body, session = str(event.get("type")), event.get("body"), event.get("session")
    if not isinstance(body, dict):
        return
    if kind == "notice":
        if not session or session == device.link.session or body.get("code") in BELLS:
            _notice(device, body)
    elif kind in ASKS:  # of any session: whoever is asked, this is a person's hand
        device.cards.on_event(kind, body)
    elif kind == "ui.panel" and body.get("panel") == "device":
        data = body.get("data")
        if session == device.link.session and body.get("kind") == "command":
            orders.obey(device, str(body.get("action")), data if isinstance(data, dict) else {})
    elif kind == "ui.panel":
        device.known.on_panel(body)
    elif kind == "task.updated":
        device.known.ask("due")
    elif session == device.link.session and device.talk.reply.streaming:
        _turn(device, kind, body)


def _turn(device: Handheld, kind: str, body: dict[str, Any]) -> None:
    talk, reply, turn = device.talk, device.talk.reply, str(body.get("turn", ""))
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
        talk.doing = str(body.get("tool", ""))
    elif kind == "turn.completed":
        recalled = body.get("recalled")
        reply.recalled = [str(each) for each in recalled] if isinstance(recalled, list) else []
        fault = body.get("error")
        if isinstance(fault, dict) and fault.get("message"):
            talk.error = str(fault["message"])
        _completed(device, str(body.get("stop_reason", "end")))
        device.known.ask("due")


def _speak(device: Handheld, sentences: list[tuple[int, str]]) -> None:
    """Have finished sentences spoken; the first words turn the page."""
    reply = device.talk.reply
    for place, sentence in sentences:
        device.voice.say(reply.voice, sentence, place)
    if reply.text and device.machine.state == "thinking" and not device.talk.aside:
        device.machine.fire("text")


def _completed(device: Handheld, reason: str) -> None:
    talk, reply = device.talk, device.talk.reply
    _speak(device, reply.end(reason))
    failed = reason == "error" or bool(talk.error)
    why = talk.error or device.texts("error.unknown")
    if failed and not reply.text:
        talk.fail(device.texts("error.turn", why=why))
        return
    if failed:
        device.notices.add(Notice("error", device.texts("error.turn", why=why)))
    if device.machine.state == "thinking" and not talk.aside:
        device.machine.fire("done")
    if reply.voice:
        device.voice.end(reply.voice)
    else:
        device.voice.chime("done")
    talk.rest()


def why(texts: Texts, found: dict[str, Any]) -> str:
    """What a belief stands on: the belief, then each entry with its day."""
    lines = [str(found.get("text") or found.get("title") or "").strip()]
    evidence = found.get("evidence")
    for each in evidence if isinstance(evidence, list) else ():
        if not isinstance(each, dict) or not is_time(each.get("ts")):
            continue
        day = datetime.datetime.fromtimestamp(each["ts"] / 1000).astimezone()
        said = str(each.get("text", ""))
        if each.get("kind") == "utterance":
            lines.append(texts("why.said", when=texts.date(day), text=said))
        elif not any(said in line for line in lines):
            lines.append(f"{texts.date(day)}: {said}")
        else:
            lines.append(texts("why.kept", when=texts.date(day)))
    return "\n".join(lines)


def is_time(value: object) -> TypeGuard[int]:
    """Whether it is ms UTC that a calendar has: from 1970 to the year 6429."""
    return isinstance(value, int) and 0 <= value < 2**47


def _notice(device: Handheld, body: dict[str, Any]) -> None:
    level, code, text = (str(body.get(key, "")) for key in ("level", "code", "text"))
    if level == "error" and device.talk.reply.streaming:
        device.talk.error = text  # the end of the turn follows and shows it
    elif text:
        if code in BELLS:
            level = "timer"
            device.voice.chime("timer")
        device.notices.add(Notice(level if level in (*LEVELS, "timer") else "info", text))
    if code in BELLS:
        device.known.ask("due")
