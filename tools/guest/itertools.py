"""Itertools for tools in the sandbox."""


def count(start=0, step=1):
    while True:
        yield start
        start += step


def cycle(rows):
    kept = list(rows)
    while kept:
        yield from kept


def repeat(value, times=None):
    while times is None or times > 0:
        yield value
        if times is not None:
            times -= 1


def _flat(many):
    for rows in many:
        yield from rows


class chain:
    def __init__(self, *many):
        self._rows = _flat(many)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._rows)

    @staticmethod
    def from_iterable(many):
        return _flat(many)


def islice(rows, *limits):
    start, stop, step = (0, limits[0], 1) if len(limits) == 1 else (tuple(limits) + (1,))[:3]
    at, start, step = 0, start or 0, step or 1
    if stop is not None and start >= stop:
        return
    for each in rows:
        if at >= start and (at - start) % step == 0:
            yield each
        at += 1
        if stop is not None and at >= stop:
            return


def takewhile(test, rows):
    for each in rows:
        if not test(each):
            return
        yield each


def dropwhile(test, rows):
    rows = iter(rows)
    for each in rows:
        if not test(each):
            yield each
            break
    for each in rows:
        yield each


def filterfalse(test, rows):
    for each in rows:
        if not (test(each) if test else each):
            yield each


def starmap(function, rows):
    for each in rows:
        yield function(*each)


def accumulate(rows, function=None, initial=None):
    made, begun = initial, initial is not None
    if begun:
        yield made
    for each in rows:
        made = (function(made, each) if function else made + each) if begun else each
        begun = True
        yield made


def pairwise(rows):
    rows = iter(rows)
    for before in rows:
        for each in rows:
            yield before, each
            before = each


def zip_longest(*many, fillvalue=None):
    kept = [list(rows) for rows in many]
    for at in range(max([len(rows) for rows in kept] + [0])):
        yield tuple(rows[at] if at < len(rows) else fillvalue for rows in kept)


def groupby(rows, key=None):
    group, name, begun = [], None, False
    for each in rows:
        here = key(each) if key else each
        if begun and here != name:
            yield name, iter(group)
            group = []
        group.append(each)
        name, begun = here, True
    if begun:
        yield name, iter(group)


def product(*many, repeat=1):
    made = [()]
    for rows in [list(each) for each in many] * repeat:
        made = [before + (each,) for before in made for each in rows]
    return iter(made)


def permutations(rows, r=None):
    pool = list(rows)
    r = len(pool) if r is None else r
    yield from _arranged(pool, r, range(len(pool)), False)


def combinations(rows, r):
    pool = list(rows)
    yield from _arranged(pool, r, range(len(pool)), True)


def _arranged(pool, r, places, rising):
    if not r:
        yield ()
        return
    for at in places:
        left = [each for each in places if (each > at if rising else each != at)]
        for rest in _arranged(pool, r - 1, left, rising):
            yield (pool[at],) + rest
