"""What a tool's author expects of the standard library: the same expression here and in the sandbox."""

from __future__ import annotations

import asyncio
import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.clock import SystemClock
from exo.core.sandbox.host import Sandbox
from exo.tools.guest import library

LIBRARY = library()
D = "datetime.datetime(2026, 2, 28, 23, 59, 58, 250000)"
SAME = [
    *("base64.b64encode(b'\\x00\\xffexo')", "base64.b64decode('AP9leG8=')"),
    *("base64.urlsafe_b64encode(b'\\xfb\\xff?')", "base64.urlsafe_b64decode('-_8_')"),
    *("base64.b16encode(b'exo')", "base64.b16decode('65786F')"),
    *("functools.reduce(lambda a, b: a * b, [1, 2, 3, 4])", "functools.reduce(max, [], 7)"),
    "functools.partial(sorted, reverse=True)([1, 3, 2])",
    "sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a))",
    "(lambda f: [f(3), f(3)])(functools.lru_cache(2)(lambda x: x + 1))",
    "(lambda f: [f(3), f(4)])(functools.cache(lambda x: x + 1))",
    "list(itertools.chain([1], (2, 3), 'ab'))",
    "list(itertools.chain.from_iterable([[1], [2, 3]]))",
    "next(itertools.chain([5]))",
    *(
        "list(itertools.islice(itertools.count(3, 2), 4))",
        "list(itertools.islice('abcdefg', 2, 6, 2))",
    ),
    *("list(itertools.islice('abc', 0))", "list(itertools.islice('abcdef', 2, None))"),
    *("list(itertools.islice(itertools.cycle('ab'), 5))", "list(itertools.repeat(1, 3))"),
    "list(itertools.takewhile(lambda x: x < 3, [1, 2, 3, 1]))",
    "list(itertools.dropwhile(lambda x: x < 3, [1, 2, 3, 1]))",
    "list(itertools.filterfalse(None, [0, 1, 2, 0]))",
    "list(itertools.starmap(pow, [(2, 3), (3, 2)]))",
    "list(itertools.accumulate([1, 2, 3]))",
    "list(itertools.accumulate([1, 2, 3], lambda a, b: a * b, initial=10))",
    "list(itertools.pairwise('abcd'))",
    "list(itertools.zip_longest('ab', [1], fillvalue=0))",
    "[(key, list(rows)) for key, rows in itertools.groupby([1, 1, 2, 1])]",
    "list(itertools.product('ab', [1, 2]))",
    "list(itertools.product([0, 1], repeat=3))",
    "list(itertools.permutations([1, 2, 3], 2))",
    "list(itertools.permutations('abc'))",
    "list(itertools.combinations('abcd', 2))",
    "list(itertools.combinations([1, 2], 3))",
    "textwrap.wrap('the quick brown fox jumps over it', 10)",
    "textwrap.wrap('a verylongwordindeed b', 6)",
    "textwrap.wrap('', 10)",
    "textwrap.fill('one two three four', 8, initial_indent='* ', subsequent_indent='  ')",
    "textwrap.shorten('Hello  world!', 12)",
    "textwrap.shorten('Hello world and all', 12, placeholder='...')",
    "textwrap.indent('a\\n\\nb', '> ')",
    "textwrap.dedent('  a\\n    b\\n\\n  c\\n')",
    *(f"str({D})", f"{D}.isoformat()", f"{D}.isoformat(' ', 'minutes')", f"{D}.weekday()"),
    *(f"{D}.strftime('%Y-%m-%d %H:%M:%S %a %A %b %B %j %p %I %y %f %%')", f"{D}.isocalendar()[1]"),
    *(f"str({D} + datetime.timedelta(seconds=2))", f"str({D} - datetime.timedelta(days=59))"),
    f"str({D} - datetime.datetime(2026, 1, 1))",
    f"str({D}.replace(hour=3, tzinfo=datetime.timezone.utc))",
    f"{D}.replace(tzinfo=datetime.timezone.utc).timestamp()",
    "str(datetime.datetime.fromisoformat('2026-03-29T02:30:00+02:00'))",
    "str(datetime.datetime.fromisoformat('2026-03-29T02:30:00.5'))",
    "str(datetime.datetime.fromisoformat('2026-03-29'))",
    "str(datetime.datetime.fromtimestamp(86399.5, datetime.timezone.utc))",
    "str(datetime.datetime.fromisoformat('2026-03-29T02:30:00+02:00').astimezone(datetime.timezone.utc))",
    "datetime.datetime(2026, 1, 1) < datetime.datetime(2026, 1, 1, 0, 0, 1)",
    "str(datetime.datetime.combine(datetime.date(2026, 5, 6), datetime.time(7, 8)))",
    "str(datetime.date(2024, 2, 28) + datetime.timedelta(1))",
    "str(datetime.date(2026, 12, 31).isocalendar()[0])",
    "datetime.date(2026, 11, 30).toordinal()",
    "str(datetime.date.fromordinal(1))",
    "(datetime.date(2026, 3, 1) - datetime.date(2024, 2, 28)).days",
    "str(datetime.timedelta(days=-1, seconds=5))",
    "str(datetime.timedelta(hours=30, milliseconds=1))",
    "datetime.timedelta(minutes=90) / datetime.timedelta(hours=1)",
    "datetime.timedelta(seconds=10) // datetime.timedelta(seconds=3)",
    "str(datetime.timedelta(seconds=1) * 90)",
    "str(abs(-datetime.timedelta(seconds=61)))",
    "datetime.timedelta(days=1.5).total_seconds()",
    "str(datetime.timezone(datetime.timedelta(hours=-3, minutes=-30)).utcoffset(None))",
    "datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc).isoformat()",
    "str(datetime.time.fromisoformat('07:08:09'))",
    "sorted([3, 1, 2])[::-1]",
    "json.loads(json.dumps({'a': [1, 2.5, None, True, 'ä']}))['a'][4] == 'ä'",
    "re.match('(a+)(b*)', 'aab').group(2)",
    "re.sub('[0-9]+', '#', 'a1b22')",
    "f'{3.14159:.2f} {42:05d} {255:x}'",
    "'a,b'.split(',') + ['x'.center(3)]",
    "hash((1, 2)) == hash((1, 2))",
]
WRONG = [
    "datetime.date(2026, 2, 29)",
    "datetime.datetime(2026, 1, 1, 24)",
    "datetime.date.fromisoformat('2026-1-1')",
    "functools.reduce(max, [])",
]
MODULES = ("base64", "datetime", "functools", "itertools", "json", "re", "textwrap")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every expression's text in the sandbox, in one run."""
    rows = "\n".join(f"    put({row!r}, lambda: {row})" for row in [*SAME, *WRONG])
    source = f"""
import {", ".join(MODULES)}
made = {{}}
def put(name, work):
    try:
        made[name] = repr(work())
    except Exception as error:
        made[name] = "error"
def run():
{rows}
    return made
"""
    sandbox = Sandbox(tmp_path_factory.mktemp("cache"), SystemClock(), LIBRARY)

    async def work() -> Any:
        try:
            return await sandbox.run(source, "run")
        finally:
            await sandbox.close()

    result = asyncio.run(work())
    assert result.ok, result
    made: dict[str, Any] = result.value
    return made


@pytest.mark.parametrize("expression", SAME)
def test_an_expression_is_the_same(expression: str, answers: dict[str, Any]) -> None:
    space = {name: __import__(name) for name in MODULES}
    assert answers[expression] == repr(eval(expression, space))


@pytest.mark.parametrize("expression", WRONG)
def test_what_is_wrong_is_refused(expression: str, answers: dict[str, Any]) -> None:
    assert answers[expression] == "error"


def test_days_are_counted_as_elsewhere(tmp_path: Path) -> None:
    """Every 17th day of the calendar, and the generator's range."""
    source = """
import datetime, random
def run(days):
    random.seed(7)
    values = [random.randint(3, 9) for _ in range(200)] + [int(random.random())]
    assert min(values[:200]) == 3 and max(values) == 9 and values[-1] == 0
    return [datetime.date.fromordinal(day).isoformat() for day in days]
"""
    days = list(range(1, 3_652_060, 1717))
    sandbox = Sandbox(tmp_path, SystemClock(), LIBRARY)

    async def work() -> Any:
        try:
            return await sandbox.run(source, "run", {"days": days})
        finally:
            await sandbox.close()

    result = asyncio.run(work())
    assert result.ok, result
    assert result.value == [datetime.date.fromordinal(day).isoformat() for day in days]
    assert json.dumps(result.value)
