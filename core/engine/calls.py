"""Tool calls as a model wrote them, read into calls that can stand in a history, and what is wrong with
the others. Pure.

Invariant: every id is new in its session, every name is one that model providers accept, all arguments
are JSON objects that can be stored; so a bad call costs one error result, never a later request."""

from __future__ import annotations

import re
from typing import Any

from exo.core.engine.sessions import new_id
from exo.core.protocol.codec import read_json, sendable
from exo.core.protocol.schema import Call
from exo.core.router.model import RawCall

_FENCE = re.compile(r"\s*```[a-zA-Z]*\s*\n?(.*?)\n?\s*```\s*", re.S)


def read_calls(raw: list[RawCall], taken: set[str]) -> tuple[list[Call], dict[str, str]]:
    """Return the calls, and per call id what is wrong with those that cannot be made. `taken` are ids
    that the session has already."""
    calls: list[Call] = []
    faults: dict[str, str] = {}
    seen = set(taken)
    for each in raw:
        fits = re.fullmatch(r"[\w-]{1,64}", each.id, re.A) and each.id not in seen
        id_ = each.id if fits else new_id()
        seen.add(id_)
        name = re.sub(r"[^A-Za-z0-9_-]", "_", each.name.strip())[:64]
        args, fault = read_args(each.arguments)
        if not name:
            name, fault = "unnamed", "the call names no tool"
        if fault:
            faults[id_] = fault + (f": {sendable(each.arguments[:500])}" if each.arguments else "")
        calls.append(Call(id_, name, args))
    return calls, faults


def read_args(text: str) -> tuple[dict[str, Any], str]:
    """Return (arguments, "") or ({}, what is wrong). A fence around the JSON and a second layer of
    quotes are taken off: they leave no doubt about what is meant."""
    fenced = _FENCE.fullmatch(text)
    try:
        value = read_json(fenced[1] if fenced else text) if text.strip() else None
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = read_json(value)
    except ValueError as error:
        return {}, f"the arguments are no JSON ({str(error)[:200]})"
    if isinstance(value, dict):
        return value, ""
    return {}, "" if value is None else "the arguments are no JSON object"
