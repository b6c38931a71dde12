"""Random for tools in the sandbox: a small generator (xorshift64*, Vigna 2016), the same for the same
seed. It is begun with the time of the call, so it is no secret."""

import time as _time

_MASK = (1 << 64) - 1
_state = [(_time.time_ns() | 1) & _MASK]


def seed(value):
    _state[0] = ((value * 0x9E3779B97F4A7C15) ^ 0x2545F4914F6CDD1D) & _MASK or 1


def getrandbits(bits):
    made = 0
    for _ in range((bits + 31) // 32):
        x = _state[0]
        x ^= x >> 12
        x = (x ^ (x << 25)) & _MASK
        x ^= x >> 27
        _state[0] = x
        made = made << 32 | ((x * 0x2545F4914F6CDD1D & _MASK) >> 32)
    return made & ((1 << bits) - 1)


def random():
    return getrandbits(53) / (1 << 53)


def randrange(start, stop=None, step=1):
    start, stop = (0, start) if stop is None else (start, stop)
    places = (stop - start + step - (1 if step > 0 else -1)) // step
    if places <= 0:
        raise ValueError("empty range")
    return start + step * (getrandbits(64) % places)


def randint(low, high):
    return randrange(low, high + 1)


def uniform(low, high):
    return low + (high - low) * random()


def choice(rows):
    return rows[randrange(len(rows))]


def shuffle(rows):
    for at in range(len(rows) - 1, 0, -1):
        other = randrange(at + 1)
        rows[at], rows[other] = rows[other], rows[at]


def sample(rows, k):
    pool = list(rows)
    shuffle(pool)
    return pool[:k]
