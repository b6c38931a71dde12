"""Secrets are used without being read: where they may go, what comes back, and what lies on the card."""

from __future__ import annotations

import asyncio
import base64
import html
import json
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from exo.core.base.errors import ExoError, HomeError
from exo.core.substrate.secrets import Secrets
from hypothesis import given
from hypothesis import strategies as st

SEED = bytes(range(32))
VALUE = "tok/7f&93 üb-1"


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    made = Secrets(tmp_path / "state" / "secrets.sealed", lambda: SEED)
    made.put("weather", VALUE, ["api.example.com", "*.example.org"])
    return made


def test_a_value_goes_to_its_hosts_alone(secrets: Secrets) -> None:
    text = "Bearer {{secret:weather}}"
    assert secrets.fill(text, "API.example.com") == f"Bearer {VALUE}"
    assert secrets.fill(text, "a.b.example.org") == f"Bearer {VALUE}"
    for host in ("example.com", "api.example.com.evil.net", "example.org", "evilexample.org", ""):
        with pytest.raises(ExoError, match="it is not for") as told:
            secrets.fill(text, host)
        assert VALUE not in str(told.value)
    with pytest.raises(ExoError, match="none of that name"):
        secrets.fill("{{secret:other}}", "api.example.com")
    assert secrets.fill("nothing here", "anywhere") == "nothing here"
    assert secrets.used("a {{secret:weather}}", "{{secret:b}} {{secret:weather}}") == [
        "b",
        "weather",
    ]


def test_what_comes_back_holds_its_name_instead(secrets: Secrets) -> None:
    raw = VALUE.encode()
    echoes = [VALUE, quote(VALUE, safe=""), json.dumps({"t": VALUE}), raw.hex(), VALUE[::-1]]
    echoes += [base64.b64encode(b"x" * n + raw).decode() for n in range(3)]
    for echo in echoes:
        shown = secrets.hide(f"you sent {echo}!")
        assert "[secret weather]" in shown and VALUE not in shown
        assert base64.b64encode(raw).decode()[:12] not in shown


def test_the_file_holds_no_value_and_opens_with_its_key_alone(
    secrets: Secrets, tmp_path: Path
) -> None:
    path = tmp_path / "state" / "secrets.sealed"
    assert path.stat().st_mode & 0o777 == 0o600
    assert VALUE.encode() not in path.read_bytes() and b"weather" not in path.read_bytes()
    assert Secrets(path, lambda: SEED).names() == {"weather": ["api.example.com", "*.example.org"]}
    other = Secrets(path, lambda: bytes(32))
    with pytest.raises(HomeError, match="does not open it"):
        other.names()
    with pytest.raises(HomeError, match="does not open it"):
        other.put("new", "value-of-it", ["a.b"])  # nothing that cannot be read is written over
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(HomeError):
        secrets.names()


def test_what_cannot_be_kept_is_told(secrets: Secrets) -> None:
    for name, value, hosts in (
        *(("a b", "long-enough", ["x.y"]), ("", "long-enough", ["x.y"]), ("ok", "short", ["x.y"])),
        *(
            ("ok", "long-enough", []),
            ("ok", "long-enough", ["*"]),
            ("ok", "long-enough", ["http://x"]),
        ),
        ("ok", "long-enough", ["*.*"]),
    ):
        with pytest.raises(ExoError, match="keep the secret"):
            secrets.put(name, value, hosts)
    secrets.remove("weather")
    assert secrets.names() == {}
    with pytest.raises(ExoError, match="none of that name"):
        secrets.remove("weather")


@given(
    value=st.text(min_size=6, max_size=40), before=st.text(max_size=20), after=st.text(max_size=20)
)
def test_any_value_is_hidden(
    value: str, before: str, after: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("s") / "sealed"
    secrets = Secrets(path, lambda: SEED)
    if not value.isprintable():
        return
    secrets.put("it", value, ["a.b"])
    shown = secrets.hide(before + value + after)
    if value not in before and value not in after and value not in "[secret it]":
        assert value not in shown.replace("[secret it]", "\0") or value in before + after
    assert secrets.fill("{{secret:it}}", "a.b") == value


def test_more_ways_in_which_servers_say_it_again(secrets: Secrets) -> None:
    value = 'k>>>?k~~~"&<p>'
    secrets.put("odd", value, ["a.b"])
    raw = value.encode()
    echoes = [base64.urlsafe_b64encode(raw).decode(), raw.hex().upper(), html.escape(value)]
    echoes += [quote(value, safe="").lower(), json.dumps(json.dumps(value)), repr(value)]
    echoes += [quote_plus(value), value.upper()]
    for echo in echoes:
        assert "[secret odd]" in secrets.hide(f"you sent {echo}!"), echo


def test_a_value_that_no_request_can_carry_is_refused(secrets: Secrets) -> None:
    for value in ("half a \ud800 one", "two\nlines-of-it", "tab\tbed-value", "nul\0value"):
        with pytest.raises(ExoError, match="keep the secret"):
            secrets.put("odd", value, ["a.b"])
    assert secrets.hide("fine") == "fine"


def test_a_value_is_found_across_the_ends_of_lines(secrets: Secrets) -> None:
    """As `base64` writes a long one, also within JSON."""
    value = "".join(f"part{n}-" for n in range(20))
    secrets.put("long", value, ["a.b"])
    wrapped = base64.encodebytes(b"user:" + value.encode()).decode()
    for echo in (wrapped, wrapped.replace("\n", "\r\n"), json.dumps(wrapped)):
        shown = secrets.hide(f"you sent {echo}!")
        left = shown.replace("\\n", "").replace("\r", "").replace("\n", "")
        assert (
            "[secret long]" in shown and base64.b64encode(value.encode()).decode()[8:40] not in left
        )
    secrets.put("breaks", r"a\nb\rc-value", ["a.b"])
    assert secrets.hide(r"x a\nb\rc-value y") == "x [secret breaks] y"


def test_what_was_not_searched_is_not_shown(
    secrets: Secrets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asyncio.run(secrets.shown(f"a {VALUE}")) == "a [secret weather]"
    path = tmp_path / "state" / "secrets.sealed"
    other = Secrets(path, lambda: bytes(32))  # no value of another device's can have been used here
    assert asyncio.run(other.shown("a text")) == "a text"
    sealed = path.read_bytes()
    path.unlink()
    path.mkdir()  # as any failing read
    shown = asyncio.run(secrets.shown(f"a {VALUE}"))
    assert "not shown" in shown and "directory" in shown and VALUE not in shown
    path.rmdir()
    path.write_bytes(sealed)
    monkeypatch.setattr("exo.core.substrate.secrets.LONGEST", 0.0)
    shown = asyncio.run(secrets.shown(f"a {VALUE}"))
    assert "not shown" in shown and VALUE not in shown


def test_what_was_opened_once_goes_on_being_hidden(secrets: Secrets, tmp_path: Path) -> None:
    path = tmp_path / "state" / "secrets.sealed"
    assert secrets.hide(VALUE) == "[secret weather]"
    path.write_bytes(b"garbage" * 20)
    assert secrets.hide(VALUE) == "[secret weather]"
    path.unlink()
    assert secrets.hide(VALUE) == "[secret weather]"
    assert secrets.names() == {}
    path.mkdir()
    shown = secrets.hide(f"a {VALUE}")  # as live output: it does not raise
    assert shown.startswith("[not shown") and "directory" in shown and VALUE not in shown
