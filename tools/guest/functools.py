"""Functools for tools in the sandbox."""

_NONE = object()


def reduce(function, rows, first=_NONE):
    rows = iter(rows)
    made = next(rows) if first is _NONE else first
    for each in rows:
        made = function(made, each)
    return made


def partial(function, *args, **named):
    def call(*more, **also):
        whole = dict(named)
        whole.update(also)
        return function(*(args + more), **whole)

    return call


def wraps(wrapped):
    return lambda function: function


def lru_cache(maxsize=128):
    if callable(maxsize):
        return lru_cache(None)(maxsize)

    def keep(function):
        known = {}

        def call(*args, **named):
            key = (args, tuple(sorted(named.items())))
            if key not in known:
                if maxsize is not None and len(known) >= maxsize:
                    del known[next(iter(known))]
                known[key] = function(*args, **named)
            return known[key]

        return call

    return keep


def cache(function):
    return lru_cache(None)(function)


def cmp_to_key(compare):
    class Key:
        def __init__(self, value):
            self.value = value

        def __lt__(self, other):
            return compare(self.value, other.value) < 0

        def __eq__(self, other):
            return compare(self.value, other.value) == 0

    return Key
