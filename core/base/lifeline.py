"""A service must not outlive its supervisor. The supervisor keeps the writing end of a pipe open and
hands the reading end to the service (EXO_LIFELINE); the kernel closes it on any death."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

VARIABLE = "EXO_LIFELINE"


def watch(callback: Callable[[], object]) -> None:
    """Call `callback`, from a thread, once the supervisor is gone. Without a supervisor: nothing."""
    text = os.environ.pop(VARIABLE, "")
    if not text.isdigit():
        return

    def wait() -> None:
        try:
            os.read(int(text), 1)
        except OSError:
            return  # no such pipe: started by hand with a left-over variable
        callback()

    threading.Thread(target=wait, name="lifeline", daemon=True).start()
