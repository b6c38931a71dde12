"""JSON objects that a person or a program hands to a command."""

from __future__ import annotations

import json
from typing import Any

from exo.core.base.errors import ExoError


def json_object(text: str | bytes, wanted: str, named: str = "") -> dict[str, Any]:
    """`text` as an object; `named` is where it stands, without it the text itself is told.

    Raises: ExoError, with what is `wanted`, when it is no JSON or no object.
    """
    shown = text.decode(errors="replace") if isinstance(text, bytes) else text
    what = f"read {named or repr(shown.strip()[:80])}"
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExoError(what, f"it is no JSON: {error}", wanted) from error
    if not isinstance(found, dict):
        raise ExoError(what, wanted)
    return found
