"""Files of state/ and state/cache that are damaged in every way that comes to mind: whoever reads them says so in words, or
goes on as if they were lost. Nothing here may end in a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from exo.core.base.errors import ExoError
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.decide.calibration import Calibration
from exo.core.ledger.keys import DeviceKey
from exo.core.retrieve.forget import resume
from exo.core.router.router import Router
from exo.core.server.tcp import load_token
from exo.core.substrate.guard import Guard
from exo.core.substrate.secrets import Secrets
from exo.device.pin import Pin
from exo.tools.agent.replay import Records
from exo.tools.cli import main
from exo.tools.clock import FakeClock
from exo.tools.decide import _table
from exo.tools.decisions import LEARNT, learnt
from exo.tools.learning.plugin import Nightly

HEAD = {"kept": "new", "version": 2, "rows": 40, "held": 9, "since": 5, "back": False}
MEASURES = {"accuracy": 0.5, "ece": 0.1, "brier": 0.2, "loss": 0.3, "coverage": 1.0}
HEAD |= {"measures": {"shipped": MEASURES, "new": MEASURES}, "common": {"new": 0.9, "shipped": 0.9}}
LEARNED = {"at": 1_700_000_000_000, "labels": 40, "temperatures": {"local": 1.2}}
LEARNED |= {"heads": {"request.kind": HEAD}}
CALL = {"ts": 5, "turn": "t", "version": 1, "code": "c", "args": {"a": 1}, "ok": True, "value": 1}
CALL |= {"out": "", "error": "", "asked": [{"name": "recall", "args": {}, "ok": True, "answer": 1}]}
PLAN = {"ids": ["a"], "texts": ["word"], "words": ["word"], "turns": ["t"]}
ODD: tuple[Any, ...] = (None, "x", "nan", -1, 1.5, True, [], {}, [[1]], {"a": 1}, 10**400, 1e300)
RAW = (b"", b"\0\xff\xfe", b"{", b"[]", b"null", b"5", b'"x"', b"{}", b"NaN", b"9" * 20_000)
RAW += (b"[" * 100_000, b'{"a":' * 100_000, b'{"at": 1e999, "tried": 1e999, "failed": 1e999}')
TOML = (b"a = 0x" + b"f" * 20_000, b"a = " + b"[" * 50_000, b".".join([b"a"] * 20_000) + b" = 1")
TOML += (
    b"context.tail = 0x" + b"f" * 20_000,
    b"# x\n" * 100_000,
    b"voice = {}\n[providers]\na = 1",
)


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    rows = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in rows:
        yield from nodes(each, (*path, key))


def damaged(sample: Any) -> Iterator[bytes]:
    """Bytes that are no such file, then the sample with each of its parts gone, or another thing."""
    yield from RAW
    yield from TOML
    whole = json.dumps(sample).encode()
    yield from (whole[:at] for at in range(0, len(whole), 7))
    for path in nodes(sample):
        for value in (..., *ODD):
            copy = json.loads(whole)
            if not path:
                yield json.dumps(copy if value is ... else value).encode()
                continue
            inner = copy
            for key in path[:-1]:
                inner = inner[key]
            if value is ...:
                del inner[path[-1]]
            else:
                inner[path[-1]] = value
            yield json.dumps(copy).encode()


def night(home: Home) -> None:
    clock = FakeClock(1_700_049_600_000)
    learns = Nightly(home, Settings(home.settings_file, {}), clock)
    clock.advance(1e5)
    assert learns.due() in (True, False)


def heat(home: Home) -> None:
    sure = Calibration(home.cache / "decide").apply("local", "m", {"a": 0.7, "b": 0.3})
    assert sum(sure.values()) == pytest.approx(1) and sure["a"] > sure["b"]


def shown(home: Home) -> None:
    told: dict[str, Any] = {"decisions": 0, "labels": 0, "idle": 0, "rows": []}
    assert _table(told | {"learnt": learnt(home)})


def starts(home: Home) -> None:
    found = Guard(home.state / "starts.json", FakeClock()).begin()
    assert found is None or found.plugins is not None


def left(home: Home) -> None:
    """`exo forget` where a plan is left: it is done, or told of."""
    memory: Any = SimpleNamespace()
    memory.ledger = SimpleNamespace(get=lambda id_: None, entries=lambda kinds: [], forget=print)
    memory.store = SimpleNamespace(erase=lambda *gone: None)
    memory.refresh, memory.index = (lambda: None), SimpleNamespace(scrub=lambda: None)
    assert resume(memory, home, lambda needles: "") == []


READERS: dict[str, tuple[str, Any, Callable[[Home], Any]]] = {
    "learnt": (f"state/cache/decide/{LEARNT}", LEARNED, shown),
    "night": ("state/cache/decide/night.json", {"tried": 5, "how": ""}, night),
    "calibration": ("state/cache/decide/calibration.json", {"local": 1.2, "local m": 0.8}, heat),
    "starts": ("state/starts.json", {"failed": 3, "good": {"ts": 5, "plugins": ["a"]}}, starts),
    "key": (
        "state/device.key",
        {"seed": "00" * 32, "left": {"seq": 1, "chain": "a"}},
        lambda home: DeviceKey.load(home.state / "device.key"),
    ),
    "forget": ("state/forget.json", PLAN, left),
    "replay": (
        "state/replay/a_tool.jsonl",
        CALL,
        lambda home: Records(home.state / "replay").read("a_tool"),
    ),
    "secrets": (
        "state/secrets.sealed",
        {},
        lambda home: Secrets(home.state / "secrets.sealed", lambda: b"s" * 32).names(),
    ),
    "settings": ("state/settings.toml", {}, lambda home: Settings.load(home.settings_file, {})),
    "providers": ("state/providers.toml", {}, lambda home: Router(home.state, 1.0)),
    "roles": ("state/roles.toml", {}, lambda home: Router(home.state, 1.0)),
    "token": ("state/token", {}, lambda home: load_token(home.state / "token", {})),
    "pin": (
        "state/pin",
        {"salt": "00" * 16, "hash": "00" * 32, "wrong": 2},
        lambda home: Pin(home.state / "pin", FakeClock()).matches("1234"),
    ),
}


@pytest.mark.parametrize("which", READERS)
def test_a_damaged_file_ends_in_words_or_is_as_if_lost(home: Home, which: str) -> None:
    name, sample, read = READERS[which]
    path = home.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for raw in damaged(sample):
        path.write_bytes(raw)
        path.chmod(0o600)
        try:
            read(home)
        except ExoError as error:
            assert error.why, raw[:200]
        except Exception as error:
            error.add_note(f"for {raw[:200]!r}")
            raise
    path.unlink(missing_ok=True)
    path.mkdir()  # and what is no file at all
    try:
        read(home)
    except ExoError as error:
        assert error.why


def test_what_was_learnt_and_is_damaged_is_told_of_once(home: Home, capsys: Any) -> None:
    path = home.cache / "decide" / LEARNT
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(LEARNED))
    assert learnt(home) == LEARNED and not capsys.readouterr().err
    path.write_text(json.dumps(LEARNED | {"at": 10**400}))
    assert main(["decide", "--status", "--home", str(home.root)]) == 0
    said = capsys.readouterr()
    assert "nothing was learnt yet" in said.out and "is not as it was written" in said.err
    assert learnt(home) == {} and not capsys.readouterr().err, "it is lost now"
