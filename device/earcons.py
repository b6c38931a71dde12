"""Short tones that say what happens: a few notes each, made when they are first played. Pure but for that.

Rising is yes or begin, falling is no or end; who hears only high tones or only low ones still tells them
apart by their number and rhythm. Invariant: a tone begins and ends at zero, so that nothing clicks."""

from __future__ import annotations

import array
import math
import sys
from functools import lru_cache

RATE = 22_050  # the voice's own: the speaker is not opened anew between the two
LEVEL = 0.25  # of full scale: 12 dB under the voice
RAMP = 0.008  # seconds in which a note swells and dies
# name -> notes of (Hz, seconds); 0 Hz is a rest
TABLE: dict[str, tuple[tuple[float, float], ...]] = {
    "listen": ((659, 0.07),),
    "heard": ((659, 0.05), (880, 0.07)),
    "done": ((523, 0.06),),
    "error": ((392, 0.12), (0, 0.03), (262, 0.2)),
    "approval": ((784, 0.09), (0, 0.05), (784, 0.09), (0, 0.05), (988, 0.14)),
    "timer": ((880, 0.12), (0, 0.06), (1175, 0.12), (0, 0.06), (1397, 0.24), (0, 0.3)) * 2,
}
ALARMS = ("timer",)  # sound when muted too: somebody asked for them


@lru_cache(maxsize=len(TABLE))
def tone(name: str) -> bytes:
    """The tone as mono s16le at RATE. Raises KeyError."""
    out = array.array("h")
    for hertz, seconds in TABLE[name]:
        count = int(seconds * RATE)
        for n in range(count):
            swell = min(1.0, n / (RAMP * RATE), (count - 1 - n) / (RAMP * RATE))
            # a little of the octave: small speakers give none of the ground tone
            turn = 2 * math.pi * hertz * n / RATE
            wave = (math.sin(turn) + 0.3 * math.sin(2 * turn)) / 1.3
            out.append(round(32767 * LEVEL * swell * wave))
    if sys.byteorder == "big":
        out.byteswap()
    return out.tobytes()
