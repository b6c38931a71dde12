"""Modules that code in the sandbox may import, beside those that MicroPython brings (json, re, math, struct, binascii,
hashlib, collections): of the same behaviour as CPython's for what tools use. Flat MicroPython, run only there.

Invariant: nothing here is imported by the host; `library` hands over the texts."""

from __future__ import annotations

from pathlib import Path


def library() -> dict[str, str]:
    """Module name to source."""
    here = Path(__file__).parent.glob("*.py")
    return {path.stem: path.read_text() for path in here if path.stem != "__init__"}
