"""The espeak-ng program: phonemes for Piper, and a voice where Piper does not fit. Text goes in by
standard input, never through a shell or an argument; every run has a time-out.

A program and not the library, because espeak-ng is GPL-3.0 and keeps its state global."""

from __future__ import annotations

import shutil
import subprocess

from exo.core.base.errors import ModelError, ModelMissing
from exo.models.replies import BadRequest

TIMEOUT = 10.0  # seconds for one clause
RATE = 22050  # samples a second that espeak-ng writes
WORDS_A_MINUTE = 165


def available() -> bool:
    return shutil.which("espeak-ng") is not None


def phonemes(text: str, voice: str) -> str:
    """IPA of one clause, clauses that espeak-ng itself makes joined by a space. Raises ModelMissing,
    ModelError."""
    out = _run(["--ipa", "-q", "-v", voice, "--stdin"], text)
    return " ".join(out.decode("utf-8", "replace").split())


def pcm(text: str, voice: str, speed: float) -> bytes:
    """One clause spoken by espeak-ng: raw signed 16-bit mono at RATE. Raises as `phonemes`."""
    pace = str(max(80, min(450, round(WORDS_A_MINUTE * speed))))
    out = _run(["-v", voice, "-s", pace, "--stdin", "--stdout"], text)
    return out[44:]  # a plain WAV header, whose sizes are wrong because it streams


def _run(arguments: list[str], text: str) -> bytes:
    program = shutil.which("espeak-ng")
    if program is None:
        raise ModelMissing(
            "speak", "the program espeak-ng is not here", "run `apt-get install espeak-ng`"
        )
    try:
        done = subprocess.run(
            [program, *arguments],
            input=text.encode("utf-8", "replace") + b"\n",
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError("speak", f"espeak-ng took over {TIMEOUT:g} s") from error
    except OSError as error:
        raise ModelError("speak", f"espeak-ng does not start: {error}") from error
    if done.returncode:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines()
        if why and "voice does not exist" in why[0]:
            raise BadRequest("speak", why[0], "see `espeak-ng --voices`")
        raise ModelError("speak", f"espeak-ng says: {why[0] if why else done.returncode}")
    return done.stdout
