"""The steps of choosing a network, pressed through with a scripted radio and the real form."""

from __future__ import annotations

import threading
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from exo.board.wifi import Network, Status, WifiError
from exo.board.wifi_form import Form
from exo.core.base.errors import BoardError
from exo.device.locale import Texts
from exo.device.menu import menu as menu_of
from exo.device.network import WifiPage
from exo.device.settings import settings as settings_of
from exo.device.wifi_page import WifiFlow
from hypothesis import given, settings
from hypothesis import strategies as st

SECRET = "correct horse 7"
AIR = [
    Network("Home", 80, "WPA2"),
    Network("Café", 60),
    Network("Company", 30, "WPA2 802.1X"),
    Network("Known", 20, "WPA2", known=True),
]


@dataclass
class Radio:
    """A Wi-Fi that answers at once. `hotspots` are up; `fails` is raised by the next call of that name."""

    internet: str = "full"
    on: bool = True
    joined: list[tuple[str, str, bool]] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    hotspots: int = 0
    fails: dict[str, ExoFault] = field(default_factory=dict)

    def status(self) -> Status:
        ssid = self.joined[-1][0] if self.joined else ""
        return Status("wlan0", self.on, ssid, "192.168.1.7", self.internet)

    def scan(self, fresh: bool = True) -> list[Network]:
        self._fail("scan")
        return [each for each in AIR if each.ssid not in self.forgotten]

    def join(self, ssid: str, password: str = "", hidden: bool = False) -> Status:
        assert not self.hotspots, "one radio cannot do both"
        if ssid == "Home" and password != SECRET:
            raise WifiError(
                "join 'Home'", "the password is wrong", "enter it again", code="wrong_password"
            )
        self.joined.append((ssid, password, hidden))
        return self.status()

    def radio(self, on: bool) -> None:
        self.on = on

    def forget(self, ssid: str) -> None:
        self.forgotten.append(ssid)

    def hotspot(self, ssid: str, password: str) -> str:
        self._fail("hotspot")
        self.hotspots = 1
        return "127.0.0.1"

    def end_hotspot(self) -> None:
        self.hotspots = 0

    def _fail(self, name: str) -> None:
        if name in self.fails:
            raise self.fails.pop(name)


ExoFault = WifiError | BoardError


class Bench:
    """The flow, its radio, and a person with fingers."""

    def __init__(self, **named: Any) -> None:
        self.radio, self.later, self.changes = Radio(), [], 0
        self.hold = named.pop("hold", False)
        self.countries: list[str] = []
        self.form: Form | None = None
        self.flow = WifiFlow(
            self.radio, self.serve, Texts(), self.changed, self.countries.append, self.run
        )

    def serve(self, address: str, networks: list[Network], chosen: Callable[..., None]) -> Form:
        self.radio._fail("serve")
        self.form = Form(address, networks, chosen, port=0)
        return self.form

    def changed(self) -> None:
        self.changes += 1

    def run(self, work: Callable[[], None]) -> None:
        if self.hold:
            self.later.append(work)
        else:
            work()

    def press(self, *names: str) -> dict[str, Any]:
        for name in names:
            self.flow.key(name)
        return self.flow.view()

    def to(self, label: str) -> dict[str, Any]:
        """Go down to a row and press ok."""
        for place, row in enumerate(self.flow.view()["rows"]):
            if row[0] == label:
                return self.press(*["down"] * (place - self.flow.view()["chosen"]), "ok")
        raise AssertionError(label)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.flow.close()
    assert not bench.radio.hotspots


def test_the_list_shows_what_is_in_the_air(bench: Bench) -> None:
    view = bench.flow.view()
    assert view["page"] == "list" and view["title"] == "Wi-Fi" and view["chosen"] == 0
    assert view["rows"][0] == ("Home", "80%", "lock", False)
    assert view["rows"][1] == ("Café", "60%", "", False)
    assert [row[0] for row in view["rows"][4:]] == [
        "Another, by name",
        "With a phone",
        "Country of the radio",
        "Look again",
        "Back",
    ]


def test_a_password_is_entered_and_one_that_is_wrong_again(bench: Bench) -> None:
    assert bench.to("Home")["page"] == "entry"
    bench.flow.entered("wrong horse")
    view = bench.flow.view()
    assert (view["page"], view["text"]) == ("card", "the password is wrong; enter it again")
    assert "wrong horse" not in str(view)
    assert bench.press("ok")["page"] == "entry"
    bench.flow.entered(SECRET)
    view = bench.flow.view()
    assert view["text"] == "Joined Home." and bench.radio.joined == [("Home", SECRET, False)]
    bench.press("ok")
    assert bench.flow.left


def test_an_open_one_is_joined_at_once_and_a_page_before_the_internet_is_told(bench: Bench) -> None:
    bench.radio.internet = "portal"
    assert "wants a click first" in bench.to("Café")["text"]


def test_a_hidden_one_is_named_first(bench: Bench) -> None:
    assert bench.to("Another, by name")["hint"] == "Name"
    bench.flow.entered("Attic")
    assert bench.flow.view()["title"] == "Attic"
    bench.flow.entered(SECRET)
    assert bench.radio.joined == [("Attic", SECRET, True)]


def test_one_that_wants_more_than_a_password_is_refused(bench: Bench) -> None:
    view = bench.to("Company")
    assert view["page"] == "card" and view["choices"] == ("Back",)
    assert bench.press("ok")["page"] == "list"


def test_a_known_one_is_joined_or_forgotten(bench: Bench) -> None:
    bench.to("Known")
    bench.press("ok")
    assert bench.radio.joined == [("Known", "", False)]
    other = Bench()
    other.to("Known")
    view = other.press("down", "ok")
    assert other.radio.forgotten == ["Known"] and "Known" not in str(view["rows"])


def test_a_phone_tells_the_password(bench: Bench) -> None:
    view = bench.to("With a phone")
    assert view["page"] == "card" and bench.flow.code is not None and bench.form is not None
    assert bench.form.url in view["text"] and bench.flow.code.code.startswith("WIFI:T:WPA;S:exo-")
    fields = {"token": bench.form.token, "ssid": "Home", "password": SECRET, "country": "de"}
    raw = urllib.parse.urlencode(fields).encode()
    with urllib.request.urlopen(bench.form.url + "/", raw, timeout=20) as answer:
        assert answer.status == 200
    end = threading.Event()
    for _ in range(200):
        if bench.flow.step.name == "joined":
            break
        end.wait(0.05)
    assert bench.radio.joined == [("Home", SECRET, False)] and bench.countries == ["DE"]
    assert bench.flow.code is None and bench.form.token not in str(bench.flow.view())


def test_going_back_takes_the_hotspot_down(bench: Bench) -> None:
    bench.to("With a phone")
    assert bench.radio.hotspots
    assert bench.press("back")["page"] == "list"
    assert not bench.radio.hotspots and bench.flow.code is None


@pytest.mark.parametrize("part", ["hotspot", "serve"])
def test_a_hotspot_that_cannot_be_is_told_and_leaves_nothing(bench: Bench, part: str) -> None:
    fault = (WifiError if part == "hotspot" else BoardError)("raise it", "no", "see")
    bench.radio.fails[part] = fault
    assert bench.to("With a phone")["text"] == "no; see"
    assert not bench.radio.hotspots


def test_a_radio_that_is_off_is_switched_on_and_told_its_country(bench: Bench) -> None:
    bench.radio.on = False
    bench.to("Look again")
    assert bench.radio.on
    assert bench.to("Country of the radio")["page"] == "entry"
    bench.flow.entered("de")
    assert bench.countries == ["de"] and "Asked for" in bench.flow.view()["text"]
    assert bench.press("ok")["page"] == "list"


def test_no_radio_is_told_and_left(bench: Bench) -> None:
    bench.radio.fails["scan"] = WifiError("scan", "there is no Wi-Fi radio", "see `nmcli device`")
    assert "no Wi-Fi radio" in bench.to("Look again")["text"]


def test_leaving_while_the_hotspot_rises_takes_it_down_again() -> None:
    bench = Bench(hold=True)
    bench.later.pop()()
    bench.to("With a phone")
    assert bench.flow.view()["page"] == "progress"
    bench.flow.close()
    for work in bench.later:
        work()
    assert not bench.radio.hotspots and bench.flow.left


def test_what_comes_too_late_changes_nothing() -> None:
    bench = Bench(hold=True)
    bench.later.pop()()
    bench.to("Café")
    bench.press("back")
    assert bench.flow.view()["page"] == "list"
    bench.later.pop()()
    assert bench.flow.view()["page"] == "list"


KEYS = st.lists(st.sampled_from(["up", "down", "left", "right", "ok", "back", "text"]), max_size=30)


class NoForm:
    url = "here"

    def close(self) -> None:
        """Nothing was open."""


@settings(deadline=None)
@given(KEYS)
def test_whatever_is_pressed_there_is_a_page_and_no_hotspot_is_left(keys: list[str]) -> None:
    bench = Bench()
    bench.serve = lambda *words: NoForm()  # type: ignore[method-assign]
    bench.flow._serve = bench.serve
    for name in keys:
        if name == "text":
            bench.flow.entered(SECRET)
        else:
            bench.flow.key(name)
        view = bench.flow.view()
        assert view["page"] in ("list", "entry", "progress", "card")
        assert (
            0 <= view.get("chosen", 0) < max(1, len(view.get("rows") or view.get("choices") or "x"))
        )
    bench.flow.close()
    assert not bench.radio.hotspots


# ---- on the handheld -------------------------------------------------------------------------------------


@pytest.fixture
def handheld(make_bench: Any) -> Iterator[tuple[Any, Bench]]:
    """A handheld in its settings, whose row Wi-Fi opens a scripted radio."""
    flows: list[Bench] = []

    def opens(changed: Callable[[], None]) -> WifiFlow:
        bench = Bench()
        flows.append(bench)
        bench.changed = changed  # type: ignore[method-assign]
        bench.flow = WifiFlow(
            bench.radio, bench.serve, Texts(), changed, bench.countries.append, bench.run
        )
        return bench.flow

    device = make_bench()
    device.device.wifi = opens
    device.tap("up")
    choose(device, "Settings")
    choose(device, "Wi-Fi")
    yield device, flows[-1]
    device.device.home()
    device.do()
    assert not flows[-1].radio.hotspots


def choose(device: Any, label: str) -> None:
    """Go down to a row of the list and press ok."""
    for _ in range(40):
        view = device.device.view()
        if view.rows and view.rows[view.chosen].label == label:
            device.tap("ok")
            return
        device.tap("down")
    raise AssertionError(label)


def test_the_page_shows_networks_and_joins_an_open_one(handheld: tuple[Any, Bench]) -> None:
    device, bench = handheld
    assert device.state == "wifi" and "Home" in device.screen and "80%" in device.screen
    choose(device, "Café")
    assert "Joined Café." in device.screen
    device.tap("ok")
    assert device.state == "settings" and bench.flow.left


def test_a_password_by_letters_is_not_read_aloud(handheld: tuple[Any, Bench]) -> None:
    device, bench = handheld
    choose(device, "Home")
    assert device.state == "entry" and "Home" in device.screen
    page = device.device.page
    for letter in SECRET.replace(" ", "") + "A\\":
        assert letter in page.wheel
    page.text = "wrong horse"
    assert "wrong" not in page.aloud()
    page.said("spoken words")
    assert page.text == "wrong horse"
    page.send()
    device.do()
    assert device.state == "wifi" and "wrong; enter it again" in device.screen
    device.tap("ok")
    assert device.state == "entry"
    device.device.page.text = SECRET
    device.device.page.send()
    device.do()
    assert bench.radio.joined == [("Home", SECRET, False)] and "Joined Home." in device.screen


def test_back_from_the_letters_is_the_list_and_back_again_the_settings(
    handheld: tuple[Any, Bench],
) -> None:
    device, bench = handheld
    choose(device, "Another, by name")
    assert device.state == "entry"
    assert device.tap("back") == "wifi" and "Home" in device.screen
    assert device.tap("back") == "settings" and bench.flow.left


@pytest.mark.parametrize("leave", ["talk", "time", "card"])
def test_whatever_takes_the_page_away_takes_the_hotspot_down(
    handheld: tuple[Any, Bench], leave: str
) -> None:
    device, bench = handheld
    choose(device, "With a phone")
    assert bench.radio.hotspots and "exo-" in device.screen
    if leave == "talk":
        device.press("talk")
    elif leave == "time":
        device.pass_(301)
    else:
        body = {"request": "r1", "summary": "push", "risk": "high", "tool": "bash", "args": {}}
        device.wire("approval.requested", **body, expires=device.clock.now_ms() + 60_000)
    device.do()
    assert device.state != "wifi" and not bench.radio.hotspots and bench.flow.left


def test_a_board_without_a_radio_has_no_row(make_bench: Any) -> None:
    device = make_bench()
    device.tap("up")
    choose(device, "Settings")
    labels = [row.label for row in device.device.view().rows]
    assert "Wi-Fi" not in labels


@pytest.mark.parametrize("names", [("talk",), ("talk", "ok"), ("talk", "up", "down")])
def test_a_board_without_back_leaves_by_talk_twice(make_bench: Any, names: tuple[str, ...]) -> None:
    device = make_bench(names=names)
    wifi = Bench()
    device.device.go(menu := menu_of(device.device))
    device.device.go(parent := settings_of(device.device, menu))
    device.device.go(WifiPage(device.device, lambda changed: wifi.flow, parent))
    assert device.do() == "wifi"
    for _ in range(2):
        device.press("talk", 0.05)
        device.clock.advance(0.1)
    device.pass_(1.0)
    assert device.state == "settings" and wifi.flow.left
