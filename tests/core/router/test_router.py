"""Which provider is asked, which key, for how long one is set aside, and what is said when none is left.
A fake provider plays every row of the table of cooldowns on a clock that stands still."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from exo.core.base.errors import (
    ContextOverflow,
    ExoError,
    ModelBusy,
    ModelError,
    ModelGone,
    SettingError,
)
from exo.core.router.catalog import Catalog
from exo.core.router.cooldown import retry_after
from exo.core.router.model import Done, Request, Text
from exo.core.router.router import TRANSPORTS, Router
from exo.tools.clock import FakeClock
from exo.tools.providers.anthropic import AnthropicTransport

TRANSPORTS.setdefault("anthropic", AnthropicTransport)  # as the plugin does

ASKED = Request([{"role": "user", "content": "Hello"}], cache_key="s1")
OK = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
HALF = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
KEYS = {"ONE_KEY": "sk-first-key-0123456789", "TWO_KEY": "sk-second-key-9876543210"}
PROVIDERS = """
[providers.one]
transport = "openai"
url = "http://one.invalid/v1"
keys = ["ONE_KEY", "TWO_KEY"]

[providers.two]
transport = "openai"
url = "http://two.invalid/v1"
keyless = true

[roles]
main = ["one:m"]
"""

Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class FakeProvider:
    """Answers by host from a script (the last answer stays), and remembers what was asked."""

    def __init__(self) -> None:
        self.script: dict[str, list[Any]] = {}
        self.asked: list[tuple[str, str]] = []  # (host, key)
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host.split(".")[0]
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.asked.append((host, key))
        self.bodies.append(json.loads(request.content) if request.content else {})
        answers = self.script.get(host, [])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, headers, body = answer
        return httpx.Response(status, headers=headers, content=body)


class Bench:
    def __init__(self, state: Path) -> None:
        self.state, self.clock, self.provider = state, FakeClock(), FakeProvider()
        self.environ = {"ONE_KEY": KEYS["ONE_KEY"]}
        (state / "providers.toml").write_text(PROVIDERS)
        self.start()

    def start(self) -> None:
        network = httpx.MockTransport(self.provider)
        self.router = Router(self.state, 5.0, self.clock, self.environ, network)

    def answers(self, host: str, *answers: Any) -> None:
        self.provider.script[host] = list(answers)

    def ask(self, role: str = "main", request: Request = ASKED) -> str:
        async def run() -> str:
            text = ""
            async for event in self.router.stream(role, request):
                text += event.text if isinstance(event, Text) else ""
            return text

        return asyncio.run(run())

    def fails(self, role: str = "main") -> ModelError:
        with pytest.raises(ModelError) as caught:
            self.ask(role)
        return caught.value

    @property
    def calls(self) -> int:
        return len(self.provider.asked)

    def closed_for(self, seconds: float) -> None:
        """Nothing is asked until `seconds` have passed; then it is."""
        before = self.calls
        self.clock.advance(seconds - 0.001)
        self.fails()
        assert self.calls == before
        self.clock.advance(0.002)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def fault(status: int, text: str = "no", **headers: str) -> tuple[int, dict[str, str], bytes]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, names, json.dumps({"error": {"message": text}}).encode()


GOOD = (200, {}, OK)
CONNECT = httpx.ConnectError("[Errno -2] Name or service not known")
SILENT = httpx.ReadTimeout("")

ROWS = [
    ("429 without a time", fault(429), [60, 120, 240, 480, 600, 600]),
    ("401", fault(401), [3600, 3600]),
    ("403", fault(403), [3600, 3600]),
    ("402", fault(402), [3600, 3600]),
    ("quota", fault(429, "You exceeded your current quota"), [3600, 3600]),
    *((str(n), fault(n), [15, 30, 60, 120, 240, 300, 300]) for n in (500, 502, 503, 504, 529)),
    ("connect, TLS or DNS", CONNECT, [10, 20, 40, 80, 120, 120]),
    ("silence", SILENT, [10, 20, 40, 80, 120, 120]),
    ("broken off", (200, {}, b""), [10, 20, 40]),
]


@pytest.mark.parametrize(("name", "answer", "waits"), ROWS, ids=[row[0] for row in ROWS])
def test_a_row_of_the_table(bench: Bench, name: str, answer: Any, waits: list[float]) -> None:
    bench.answers("one", answer)
    bench.fails()
    for wait in waits:
        bench.closed_for(wait)
        bench.fails()
    bench.clock.advance(4000)
    bench.answers("one", GOOD, answer)
    assert bench.ask() == "hi"
    bench.fails()
    bench.closed_for(waits[0])  # a success clears it: the first wait again
    bench.fails()


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_wrong_request_never_falls_back_and_never_cools_down(bench: Bench, status: int) -> None:
    bench.router.set_routes("main", ["one:m", "two:m"])
    bench.answers("one", fault(status, "your quota of tools is bad"))
    bench.answers("two", GOOD)
    for _ in range(3):
        error = bench.fails()
        assert error.status == status and not error.retryable
    assert [host for host, _ in bench.provider.asked] == ["one"] * 3


def test_a_missing_model_falls_back_and_sets_nothing_aside(bench: Bench) -> None:
    bench.router.set_routes("main", ["one:gone", "one:m"])
    bench.answers("one", fault(404), GOOD, fault(404), GOOD)
    assert (bench.ask(), bench.ask(), bench.calls) == ("hi", "hi", 4)


@pytest.mark.parametrize(
    ("stated", "first"), [(5, 5), (60, 60), (90, 60), (3000, 60), (6 * 3600, 432)]
)
def test_a_lone_credential_is_probed(bench: Bench, stated: int, first: float) -> None:
    bench.answers("one", fault(429, retry_after=str(stated)))
    bench.fails()
    bench.closed_for(first)
    bench.answers("one", GOOD)
    assert bench.ask() == "hi"


@pytest.mark.parametrize("header", ["21600", None])
def test_each_failed_probe_stamps_a_shorter_window(bench: Bench, header: str | None) -> None:
    """Also when the provider says six hours anew each time, or says nothing more."""
    bench.answers("one", fault(429, retry_after="21600"))
    bench.fails()
    end, now, waits = 21600.0, 0.0, []
    later = fault(429, retry_after=header) if header else fault(429)
    bench.answers("one", later)
    while now < end - 1:
        wait = min(end - now, max(60.0, 0.02 * (end - now)))
        bench.closed_for(wait)
        now += wait + 0.001
        waits.append(wait)
        bench.fails()
    assert waits == sorted(waits, reverse=True) and waits[0] == 432.0 and len(waits) > 50


def test_two_credentials_wait_for_the_stated_time_and_take_turns(bench: Bench) -> None:
    bench.environ["TWO_KEY"] = KEYS["TWO_KEY"]
    bench.answers("one", fault(429, retry_after="21600"), GOOD)
    assert bench.ask() == "hi"
    assert bench.provider.asked == [("one", KEYS["ONE_KEY"]), ("one", KEYS["TWO_KEY"])]
    bench.clock.advance(21599)
    assert bench.ask() == "hi" and bench.provider.asked[-1][1] == KEYS["TWO_KEY"]
    bench.clock.advance(2)
    assert bench.ask() == "hi" and bench.provider.asked[-1][1] == KEYS["ONE_KEY"]


def test_a_new_key_is_tried_at_once(bench: Bench) -> None:
    bench.answers("one", fault(401))
    assert "check the key in ONE_KEY" in str(bench.fails())
    bench.fails()
    assert bench.calls == 1
    bench.environ["ONE_KEY"] = "sk-another-key-000000"
    bench.answers("one", GOOD)
    assert bench.ask() == "hi"


def test_requests_that_fail_together_count_once(bench: Bench) -> None:
    bench.answers("one", fault(503))

    async def both() -> None:
        async def one() -> None:
            with pytest.raises(ModelError):
                async for _ in bench.router.stream("main", ASKED):
                    pass

        await asyncio.gather(*(one() for _ in range(4)))

    asyncio.run(both())
    bench.closed_for(15)
    bench.fails()


def test_fallback_ends_with_the_first_output(bench: Bench) -> None:
    bench.router.set_routes("main", ["one:m", "two:m"])
    bench.answers("one", (200, {}, HALF))
    bench.answers("two", GOOD)
    heard: list[str] = []

    async def run() -> None:
        async for event in bench.router.stream("main", ASKED):
            heard.append(type(event).__name__)

    with pytest.raises(ModelGone):
        asyncio.run(run())
    assert heard == ["Text"] and [host for host, _ in bench.provider.asked] == ["one"]
    assert (
        bench.ask() == "hi" and bench.provider.asked[-1][0] == "two"
    )  # it is set aside all the same


@pytest.mark.parametrize(
    ("role", "hosts"), [("main", "m"), ("aux", "am"), ("decision", "dam"), ("decision", "dm")]
)
def test_the_chain_of_roles(bench: Bench, role: str, hosts: str) -> None:
    names = {"d": "decision", "a": "aux", "m": "main"}
    rows = "".join(
        f'[providers.{c}]\ntransport = "openai"\nurl = "http://{c}.invalid"\nkeyless = true\n'
        for c in "dam"
    )
    roles = "".join(
        f'{names[c]} = ["{c}:x"]\n' if c in hosts else f"{names[c]} = []\n" for c in "dam"
    )
    (bench.state / "providers.toml").write_text(f"{rows}[roles]\n{roles}")
    bench.start()
    assert bench.router.fault is None
    for host in hosts[:-1]:
        bench.answers(host, fault(500))
    bench.answers(hosts[-1], GOOD)
    assert bench.ask(role) == "hi"
    assert "".join(host for host, _ in bench.provider.asked) == hosts


def test_one_error_says_why_for_each_route_and_when_the_next_opens(bench: Bench) -> None:
    bench.router.set_routes("main", ["one:a", "two:b", "anthropic:claude-haiku-4-5"])
    bench.answers("one", fault(429, "slow down", retry_after="300"))
    bench.answers("two", fault(503, "out of breath"))
    text = str(bench.fails())
    for part in ("one:a: HTTP 429: slow down", "two:b: HTTP 503: out of breath"):
        assert part in text
    assert "no key is set in ANTHROPIC_API_KEY" in text and "two:b opens again in 15 s" in text
    bench.clock.advance(20)
    bench.answers("two", fault(401))
    assert "one:a opens again in 40 s" in str(bench.fails())
    error = bench.fails()
    assert isinstance(error, ModelBusy) and error.retry_after == pytest.approx(40)
    assert not error.retryable


def test_a_route_that_opens_soon_is_worth_waiting_for(bench: Bench) -> None:
    bench.answers("one", fault(429, retry_after="3"))
    error = bench.fails()
    assert error.retryable and error.retry_after == 3


def test_our_own_server_is_set_aside_for_silence_alone(bench: Bench) -> None:
    bench.router.set_routes("main", ["local:main"])
    bench.answers("models", CONNECT, fault(500), fault(429, retry_after="9"), GOOD, SILENT)
    for _ in range(3):
        assert bench.fails().retryable
    assert bench.ask() == "hi"
    bench.fails()
    bench.closed_for(10)


def test_only_our_own_server_gets_its_fields(bench: Bench) -> None:
    bench.answers("models", GOOD)
    bench.answers("one", GOOD)
    bench.router.set_routes("main", ["local:main"])
    bench.router.set_routes("aux", [])
    bench.ask("main")
    bench.ask("aux")
    bench.router.set_routes("main", ["one:m"])
    bench.ask("main")
    main, aux, other = bench.provider.bodies
    assert (main["prompt_cache_key"], main["save_prefix"], "priority" in main) == ("s1", 1, False)
    assert aux["priority"] == "aux" and "save_prefix" not in aux
    assert not {"prompt_cache_key", "save_prefix", "priority"} & set(other)


def test_the_length_goes_by_the_provider_s_field(bench: Bench) -> None:
    bench.environ["OPENAI_API_KEY"] = "sk-x"
    bench.router.set_routes("main", ["openai:gpt-5-mini"])
    bench.answers("api", GOOD)
    bench.ask()
    assert bench.provider.bodies[-1]["max_completion_tokens"] == 4200
    assert "max_tokens" not in bench.provider.bodies[-1]


def test_prefill_goes_where_prefixes_are_kept(bench: Bench) -> None:
    bench.answers("models", (200, {}, b"{}"))
    bench.router.set_routes("main", ["local:main"])
    asyncio.run(bench.router.prefill("main", ASKED))
    assert bench.provider.bodies[-1]["prompt_cache_key"] == "s1"
    bench.router.set_routes("main", ["two:m"])
    asyncio.run(bench.router.prefill("main", ASKED))
    assert bench.calls == 1


def test_what_is_half_a_character_is_sent_as_a_mark(bench: Bench) -> None:
    bench.answers("one", GOOD)
    bench.ask("main", Request([{"role": "user", "content": "a\ud800b"}]))
    assert bench.provider.bodies[-1]["messages"][0]["content"] == "a?b"


# ---- keys ----------------------------------------------------------------------------------------


ECHOES = [
    fault(401, f"Incorrect API key: {KEYS['ONE_KEY']}"),
    fault(500, f"token {KEYS['ONE_KEY'][:14]}... is odd"),
    (502, {}, f"<html><title>Bearer {KEYS['ONE_KEY']}</title></html>".encode()),
    (200, {}, f"data: {KEYS['ONE_KEY']} {{\n\n".encode()),
    (200, {}, f'data: {{"error": "{KEYS["ONE_KEY"]}"}}\n\n'.encode()),
    (200, {}, f"what is {KEYS['ONE_KEY']}".encode()),
    httpx.ConnectError(f"refused {KEYS['ONE_KEY']}"),
]


@pytest.mark.parametrize("answer", ECHOES)
def test_a_key_is_in_no_error_no_repr_no_log(bench: Bench, answer: Any) -> None:
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    levels = {name: logging.getLogger(name).level for name in ("", "httpx", "httpcore")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.DEBUG)
    bench.answers("one", answer)
    try:
        error = bench.fails()
    finally:
        logging.getLogger().removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
    text = log.getvalue() + "".join(traceback.format_exception(error)) + repr(vars(error))
    text += repr(vars(bench.router)) + repr(bench.router._credentials)
    text += repr(list(bench.router._ways("main", [])))
    text = text.replace(repr(bench.environ), "")  # the environment itself is the person's
    text = "\n".join(line for line in text.split("\n") if "0123456789" in line or "-key" in line)
    assert "sk-first" not in text


@pytest.mark.parametrize("value", ["sk-a b c", "sk-é", "sk-a\nb", "sk-\x07"])
def test_a_damaged_key_is_named_by_its_variable(bench: Bench, value: str) -> None:
    bench.environ["ONE_KEY"] = value
    text = str(bench.fails())
    assert "ONE_KEY holds what no key can hold" in text and value not in text
    assert bench.calls == 0


def test_a_key_with_an_end_of_line_is_taken(bench: Bench) -> None:
    bench.environ["ONE_KEY"] = KEYS["ONE_KEY"] + "\n"
    bench.answers("one", GOOD)
    bench.ask()
    assert bench.provider.asked == [("one", KEYS["ONE_KEY"])]


# ---- the person's file and models.set ------------------------------------------------------------


FAULTS = {
    "x = [": "providers.toml",
    "[provider.x]": "the file.provider is not known",
    "[providers.x]\ntransport = 'smoke'\nurl = 'http://x'": "providers.x.transport does not fit",
    "[providers.x]\ntransport = 'openai'": "needs a transport and a url",
    "[providers.x]\ntransport = 'openai'\nurl = 'ftp://x'": "providers.x.url does not fit",
    "[providers.x]\ntransport = 'openai'\nurl = 'http://me:sk-1@x/'": "providers.x.url does not fit",
    "[providers.openai]\napi_key = 'sk-1'": "a key is never written here",
    "[providers.openai]\nkeys = ['sk-1']": "a key is never written here",
    "[providers.openai]\nkeys = 'OPENAI'": "providers.openai.keys does not fit",
    "[providers.openai]\nkeyless = 1": "providers.openai.keyless does not fit",
    "[providers.openai]\nsilence = 0": "providers.openai.silence does not fit",
    "[providers.openai]\nsilence = 0.0": "providers.openai.silence does not fit",
    "[providers.openai]\nsilence = 2026-11-30": "providers.openai.silence does not fit",
    "[providers.openai.models.m]\ninput = 'x'": "providers.openai.models.m.input does not fit",
    "[providers.openai.models.m]\ninput = -1": "providers.openai.models.m.input does not fit",
    "[providers.openai.models.m]\nwindow = 1.5": "providers.openai.models.m.window does not fit",
    "[providers.openai.models]\nm = 1": "providers.openai.models.m is no table",
    "[providers]\nopenai = 3": "providers.openai is no table",
    "[roles]\nmain = []": "no list of routes",
    "[roles]\nmain = ['nobody:x']": "'nobody:x' leads nowhere",
    "[roles]\nmain = ['local']": "'local' leads nowhere",
    "[roles]\nmain = [3]": "3 leads nowhere",
    "[roles]\nmain = 'local:main'": "no list of routes",
    "[roles]\nking = ['local:main']": "the roles are",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_in_the_person_s_file_is_named_and_the_catalog_stands(
    bench: Bench, text: str
) -> None:
    (bench.state / "providers.toml").write_text(text)
    bench.start()
    assert isinstance(bench.router.fault, ExoError)
    said = str(bench.router.fault)
    assert FAULTS[text] in said and "providers.toml" in said and "sk-1" not in said
    bench.answers("models", GOOD)
    assert bench.ask() == "hi"
    bench.answers("models", CONNECT)
    assert "providers.toml" in str(bench.fails())


def test_the_person_s_file_wins_field_by_field(bench: Bench) -> None:
    (bench.state / "providers.toml").write_text(
        "[providers.openai]\nsilence = 7\n[providers.openai.models.x]\ninput = 1\noutput = 2\n"
        "[providers.local]\nurl = 'http://other.invalid/v1'\n"
    )
    catalog = Catalog()
    catalog.add(bench.state / "providers.toml")
    openai, local = catalog.providers["openai"], catalog.providers["local"]
    assert openai.silence == 7 and openai.keys[0] == "OPENAI_API_KEY" and "gpt-4.1" in openai.models
    assert openai.models["x"].cost(2_000_000, 0, 1_000_000, 0) == 2.0
    assert (local.url, local.socket, local.prefix_cache) == ("http://other.invalid/v1", "", True)


def test_models_set_stays_and_other_roles_stay(bench: Bench) -> None:
    bench.router.set_routes("aux", ["two:small", "two:small", "local:aux"])
    bench.start()
    _, roles = asyncio.run(bench.router.models())
    assert roles["aux"] == ["two:small", "local:aux"] and roles["main"] == ["one:m"]


@pytest.mark.parametrize(
    ("role", "routes", "code"),
    [
        ("king", ["two:m"], "bad_role"),
        ("main", [], "bad_route"),
        ("main", ["two"], "bad_route"),
        ("main", ["two:"], "bad_route"),
        ("aux", ["none:m"], "bad_route"),
    ],
)
def test_models_set_refuses_what_leads_nowhere(
    bench: Bench, role: str, routes: list[str], code: str
) -> None:
    with pytest.raises(SettingError) as caught:
        bench.router.set_routes(role, routes)
    assert caught.value.code == code


def test_damaged_routes_are_named_and_can_be_set_again(bench: Bench) -> None:
    (bench.state / "roles.toml").write_text("main = [\n")
    bench.start()
    assert "roles.toml" in str(bench.router.fault)
    bench.router.set_routes("main", ["two:m"])
    bench.start()
    assert bench.router.fault is None


def test_models_lists_what_can_be_reached(bench: Bench) -> None:
    bench.environ["OPENAI_API_KEY"] = "sk-x"
    bench.answers("models", (200, {}, b'{"data":[{"id":"main","role":"main"}]}'))
    bench.answers("127", (200, {}, b"<html>another program</html>"))
    bench.answers("two", CONNECT)
    models, roles = asyncio.run(bench.router.models())
    names = {(row["provider"], row["id"]) for row in models}
    assert ("local", "main") in names and ("openai", "gpt-4.1-mini") in names
    assert not {"two", "ollama", "anthropic"} & {name for name, _ in names}
    assert next(row for row in models if row["id"] == "gpt-4.1")["output"] == 8.0


def test_tokens_are_counted_by_our_own_server_and_windows_known_for_others(bench: Bench) -> None:
    bench.environ["OPENAI_API_KEY"] = "sk-x"
    bench.router.set_routes("main", ["openai:gpt-4.1-2025-04-14", "local:main"])
    assert asyncio.run(bench.router.count("main", "some text")) == (None, 1047576)
    assert not bench.router.local("main")
    bench.answers("api", fault(503))
    bench.answers("models", GOOD, (200, {}, b'{"tokens": 7, "window": 2048}'))
    bench.ask()
    assert bench.router.local("main")
    assert asyncio.run(bench.router.count("main", "some text")) == (7, 2048)
    assert bench.provider.bodies[-1] == {"model": "main", "text": "some text"}
    bench.answers("models", (200, {}, b"{}"))
    assert asyncio.run(bench.router.count("main", ASKED.messages)) == (None, 0)


def test_temperature_goes_to_models_that_take_one(bench: Bench) -> None:
    bench.environ["OPENAI_API_KEY"] = "sk-x"
    bench.answers("api", GOOD)
    for model, wanted in (("gpt-4.1", 0.0), ("gpt-5-mini", None)):
        bench.router.set_routes("main", [f"openai:{model}"])
        bench.ask("main", Request(ASKED.messages, temperature=0.0))
        assert bench.provider.bodies[-1].get("temperature") == wanted


def test_cost_counts_the_cache_at_its_own_rates() -> None:
    row = Catalog().providers["anthropic"].model("claude-sonnet-4-5-20250929")
    assert row.cost(10_000, 1_000, 6_000, 3_000) == pytest.approx(
        (1_000 * 3 + 6_000 * 0.3 + 3_000 * 3.75 + 1_000 * 15) / 1e6
    )


def test_httpx_is_loaded_by_the_first_request_alone() -> None:
    import subprocess
    import sys

    code = (
        "import sys, pathlib; from exo.core.router.router import Router;"
        "Router(pathlib.Path('/nowhere'), 1.0); sys.exit('httpx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- when it opens again -------------------------------------------------------------------------

NOW = 1_764_500_000_000
DATE = "Mon, 30 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "20"}, "", 20),
        ({"retry-after": "1.5"}, "", 1.5),
        ({"retry-after": "0"}, "", 0),
        ({"retry-after": "Mon, 30 Nov 2026 12:05:00 GMT", "date": DATE}, "", 300),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT", "date": DATE}, "", 0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "-5"}, "", None),
        ({"retry-after": "99999999999999999"}, "", 31 * 86400),
        ({}, "Rate limit reached. Please try again in 1m2.5s. Visit", 62.5),
        ({}, "Please retry in 34.07s.", 34.07),
        ({}, "Please try again in 12ms.", 0.012),
        ({}, "try again in a while", None),
        ({"x-ratelimit-limit-requests": "60"}, "", None),
    ],
)
def test_retry_after(headers: dict[str, str], text: str, seconds: float | None) -> None:
    found = retry_after(headers, text, NOW)
    assert found == (None if seconds is None else pytest.approx(seconds))


def test_a_done_is_the_last_event(bench: Bench) -> None:
    bench.answers("one", GOOD)

    async def run() -> list[Any]:
        return [event async for event in bench.router.stream("main", ASKED)]

    events = asyncio.run(run())
    assert [type(event) for event in events] == [Text, Done]


def test_an_overflow_goes_straight_back(bench: Bench) -> None:
    bench.router.set_routes("main", ["one:m", "two:m"])
    bench.answers("one", fault(500, "Context size has been exceeded."))
    assert isinstance(bench.fails(), ContextOverflow) and bench.calls == 1
    assert isinstance(bench.fails(), ContextOverflow) and bench.calls == 2
