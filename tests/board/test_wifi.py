"""Wi-Fi against a stand-in for nmcli that answers as the real program does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.board import wifi_boot
from exo.board.qr import as_text, picture
from exo.board.wifi import (
    Network,
    Status,
    Wifi,
    WifiError,
    check_country,
    check_password,
    join_code,
    split,
)
from exo.board.wifi_form import LIMIT, Form
from exo.core.base.errors import BoardError
from exo.core.base.home import Home
from hypothesis import given
from hypothesis import strategies as st

FAKE = Path(__file__).with_name("nmcli_fake.py")
SECRET = "correct horse 7"
AIR = [
    {"ssid": "Home:Net \\ 1", "signal": 82, "security": "WPA2", "psk": SECRET},
    {"ssid": "Home:Net \\ 1", "signal": 40, "security": "WPA2", "psk": SECRET},
    {"ssid": "Café", "signal": 60, "security": ""},
    {"ssid": "Company", "signal": 30, "security": "WPA2 802.1X"},
    {"ssid": "Attic", "signal": 20, "security": "WPA2", "psk": SECRET, "hidden": True},
]


class Air:
    """The radio under test and what the stand-in saw."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "nm.json"
        self.naps: list[float] = []
        self.wifi = Wifi((sys.executable, "-IS", str(FAKE), str(self.file)), self.naps.append)
        self.set(air=AIR, profiles=[])

    def set(self, **values: Any) -> None:
        known = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.file.write_text(json.dumps(known | values))

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.file.read_text())
        return found


@pytest.fixture
def air(tmp_path: Path) -> Air:
    return Air(tmp_path)


def code(call: Any, *arguments: Any, **named: Any) -> str:
    """The code of the error that a call ends with; its text has no password in it."""
    with pytest.raises(WifiError) as caught:
        call(*arguments, **named)
    assert SECRET not in str(caught.value) and "wrong horse" not in str(caught.value)
    assert caught.value.__context__ is None or SECRET not in repr(caught.value.__context__)
    return caught.value.code


@given(st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"])), min_size=1))
def test_fields_come_back_whatever_is_in_them(fields: list[str]) -> None:
    line = ":".join(each.replace("\\", "\\\\").replace(":", "\\:") for each in fields)
    assert split(line) == fields


def test_a_scan_gives_a_row_a_name_the_strongest_first(air: Air) -> None:
    assert air.wifi.scan() == [
        Network("Home:Net \\ 1", 82, "WPA2"),
        Network("Café", 60, ""),
        Network("Company", 30, "WPA2 802.1X"),
    ]
    assert air.wifi.scan()[2].company


def test_joining_with_a_password_keeps_it_out_of_the_arguments(air: Air) -> None:
    status = air.wifi.join("Home:Net \\ 1", SECRET + "\r\n")
    assert status == Status("wlan0", True, "Home:Net \\ 1", "192.168.1.7", "full")
    assert SECRET not in json.dumps(air.state["calls"])
    assert f"{SECRET}\n" in air.state["inputs"]
    [first] = [each for each in air.wifi.scan() if each.active]
    assert first.known and first.ssid == "Home:Net \\ 1"


def test_a_known_network_is_joined_without_its_password(air: Air) -> None:
    air.wifi.join("Home:Net \\ 1", SECRET)
    air.set(active="")
    assert air.wifi.join("Home:Net \\ 1").ssid == "Home:Net \\ 1"
    assert air.wifi.join("Café").ssid == "Café"  # an open one needs none
    assert len(air.state["profiles"]) == 2


@pytest.mark.parametrize("returned", [0, 3, 4])
def test_a_wrong_password_is_told_apart_and_leaves_nothing(air: Air, returned: int) -> None:
    air.set(air=[AIR[0] | {"code": returned}])
    assert code(air.wifi.join, "Home:Net \\ 1", "wrong horse") == "wrong_password"
    assert air.state["profiles"] == []


def test_a_password_that_was_changed_at_the_router(air: Air) -> None:
    air.set(profiles=[{"name": "old", "uuid": "u1", "ssid": "Home:Net \\ 1", "psk": "old secret"}])
    assert code(air.wifi.join, "Home:Net \\ 1") == "wrong_password"
    assert len(air.state["profiles"]) == 1  # it was not ours to remove
    assert air.wifi.join("Home:Net \\ 1", SECRET).address == "192.168.1.7"
    assert len(air.state["profiles"]) == 1


def test_a_hidden_network_is_called_by_name_until_it_answers(air: Air) -> None:
    air.set(air=[AIR[4] | {"busy": 2}])
    assert air.wifi.scan() == []
    assert code(air.wifi.join, "Attic", SECRET) == "not_found"
    assert air.wifi.join("Attic", SECRET, hidden=True).ssid == "Attic"
    assert len(air.naps) == 2
    assert code(air.wifi.join, "Cellar", SECRET, hidden=True) == "not_found"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"down": True}, "no_manager"),
        ({"refused": True}, "refused"),
        ({"air": []}, "not_found"),
        ({"air": [AIR[0] | {"no_address": True}]}, "no_address"),
    ],
)
def test_what_keeps_from_joining_is_told(air: Air, state: dict[str, Any], expected: str) -> None:
    air.set(**state)
    assert code(air.wifi.join, "Home:Net \\ 1", SECRET) == expected


def test_no_radio_no_nmcli_and_one_that_hangs(air: Air, monkeypatch: pytest.MonkeyPatch) -> None:
    assert code(Wifi(("/no/such/nmcli",)).status) == "no_manager"
    air.set(device="")
    assert air.wifi.status() == Status()
    assert code(air.wifi.hotspot, "exo", "abcdefgh") == "no_radio"
    assert code(air.wifi.scan) == "no_radio"
    air.set(device="wlan0", slow=60)
    monkeypatch.setattr("exo.board.wifi.JOIN", -4.5)
    monkeypatch.setattr("exo.board.wifi.ASK", -4.5)
    assert code(air.wifi.join, "Home:Net \\ 1", SECRET) == "too_slow"


@pytest.mark.parametrize("internet", ["portal", "limited", "none", "full"])
def test_a_network_behind_a_page_is_no_internet_yet(air: Air, internet: str) -> None:
    air.set(internet=internet)
    assert air.wifi.join("Café").internet == internet


def test_forgetting(air: Air) -> None:
    air.wifi.join("Home:Net \\ 1", SECRET)
    air.wifi.forget("Home:Net \\ 1")
    assert air.wifi.known() == {} and air.wifi.status().ssid == ""
    assert code(air.wifi.forget, "Home:Net \\ 1") == "not_found"


def test_the_hotspot_comes_and_goes_and_is_no_known_network(air: Air) -> None:
    assert air.wifi.hotspot("exo-1234", "abcdefgh") == "10.42.0.1"
    assert (
        air.wifi.hotspot("exo-1234", "abcdefgh") == "10.42.0.1"
    )  # one left over from a crash goes first
    assert air.wifi.known() == {}
    air.wifi.end_hotspot()
    air.wifi.end_hotspot()
    assert air.state["profiles"] == []


def test_a_radio_that_is_off(air: Air) -> None:
    air.wifi.radio(False)
    assert air.wifi.status() == Status("wlan0", False)
    air.wifi.radio(True)
    assert air.wifi.status().on


@pytest.mark.parametrize("name", ["", "x" * 33, "ü" * 17, "-o", "a\nb"])
def test_what_is_no_name_is_refused(air: Air, name: str) -> None:
    assert code(air.wifi.join, name) == "bad_name"


def test_passwords_and_countries() -> None:
    assert check_password("a" * 8) == "a" * 8
    assert check_password("F" * 64) == "F" * 64
    for bad in ("a" * 7, "g" * 64, "ü" * 32, "a\tbcdefgh"):
        with pytest.raises(WifiError):
            check_password(bad)
    assert check_country(" de ") == "DE"
    for bad in ("", "D", "DEU", "1A", "../"):
        with pytest.raises(WifiError):
            check_country(bad)


# ---- the file on the boot partition ----------------------------------------------------------------------


class Programs:
    """What would have been run; `there` are those that do it."""

    def __init__(self, *there: str) -> None:
        self.there, self.ran = there, []  # type: ignore[var-annotated]

    def __call__(self, command: Any) -> int:
        self.ran.append(tuple(command))
        return 0 if command[0] in self.there else 127


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    folder = tmp_path / "boot"
    folder.mkdir()
    return folder


def test_the_file_is_read_once_and_removed(air: Air, boot: Path) -> None:
    text = f'ssid = "Attic"\r\npassword = "{SECRET}"\r\nhidden = true\r\ncountry = "de"\r\n'
    (boot / "exo-wifi.txt").write_bytes(
        b"\xef\xbb\xbf" + text.encode()
    )  # as Windows' Notepad has it
    run = Programs("iw")
    told = wifi_boot.apply(air.wifi, boot, run)
    assert told == "joined 'Attic', address 192.168.1.7, internet full"
    assert run.ran[-1] == ("iw", "reg", "set", "DE")
    assert list(boot.iterdir()) == []
    assert wifi_boot.apply(air.wifi, boot, run) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('ssid = "Home:Net \\\\ 1"\npassword = "wrong horse"', "the password is wrong"),
        (f'ssid = "Elsewhere"\npassword = "{SECRET}"', "no such network"),
        (f'ssid = "A"\npasword = "{SECRET}"', "'pasword' is no known key"),
        (f'ssid = "A"\npassword = "{SECRET}', "line"),
        (f'ssid = "A"\npassword = "{SECRET}"\nhidden = "yes"', "'hidden' is no bool"),
        (f'password = "{SECRET}"', "a name has 1 to 32"),
        (f'ssid = "Café"\ncountry = "DE"\npassword = "{SECRET}"', "raspi-config"),
    ],
)
def test_a_file_that_fails_stays_with_its_reason(air: Air, boot: Path, text: str, why: str) -> None:
    (boot / "exo-wifi.toml").write_text(text)
    with pytest.raises(WifiError, match=why):
        wifi_boot.apply(air.wifi, boot, Programs())
    assert (boot / "exo-wifi.toml").read_text() == text
    log = (boot / "exo-wifi.log").read_text()
    assert why in log and SECRET not in log and "wrong horse" not in log


def test_a_wish_for_a_country_is_granted_once(tmp_path: Path) -> None:
    wifi_boot.ask_country(tmp_path, "us")
    run = Programs("raspi-config")
    assert wifi_boot.grant(tmp_path, run) == "the radio is in US"
    assert run.ran == [("raspi-config", "nonint", "do_wifi_country", "US")]
    assert wifi_boot.grant(tmp_path, run) == ""
    (tmp_path / "secret").write_text("DE\n")
    (tmp_path / wifi_boot.REQUEST).symlink_to(tmp_path / "secret")  # what root must not follow
    assert wifi_boot.grant(tmp_path, run) == "" and len(run.ran) == 1
    assert not (tmp_path / wifi_boot.REQUEST).is_symlink()
    (tmp_path / wifi_boot.REQUEST).write_text("$(reboot)")
    with pytest.raises(WifiError):
        wifi_boot.grant(tmp_path, run)
    assert not (tmp_path / wifi_boot.REQUEST).exists()


def test_the_service_does_both_and_its_exit_code_tells(
    air: Air, boot: Path, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    run = Programs("iw")
    monkeypatch.setattr(wifi_boot, "FOLDERS", (boot, boot / "none"))
    monkeypatch.setattr(wifi_boot, "Wifi", lambda: air.wifi)
    monkeypatch.setattr(wifi_boot, "program", run)
    monkeypatch.setenv("EXO_HOME", str(home.root))
    assert wifi_boot.main() == 0 and not capsys.readouterr().err
    wifi_boot.ask_country(home.state, "us")
    (boot / "exo-wifi.toml").write_text(f'ssid = "Home:Net \\\\ 1"\npassword = "{SECRET}"\n')
    assert wifi_boot.main() == 0
    told = capsys.readouterr().err
    assert "the radio is in US" in told and "joined 'Home:Net" in told and SECRET not in told
    (boot / "exo-wifi.toml").write_text('ssid = "Elsewhere"\n')
    assert wifi_boot.main() == 1
    assert "no such network is in reach" in capsys.readouterr().err


# ---- the form --------------------------------------------------------------------------------------------


class Phone:
    """A browser on the hotspot."""

    def __init__(self, form: Form) -> None:
        self.form = form

    def ask(
        self, path: str = "/", data: bytes | None = None, host: str = ""
    ) -> tuple[int, str, Any]:
        headers = {"Host": host} if host else {}
        request = urllib.request.Request(self.form.url + path, data, headers)
        try:
            with urllib.request.build_opener(Stay).open(request, timeout=20) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def send(self, token: str = "", **fields: str) -> tuple[int, str]:
        fields["token"] = token or self.form.token
        status, page, _ = self.ask("/", urllib.parse.urlencode(fields).encode())
        return status, page


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


@pytest.fixture
def told() -> list[tuple[str, str, bool, str]]:
    return []


def soon(told: list[Any]) -> list[Any]:
    """What the form has told, which it does after its answer to the phone."""
    end = time.monotonic() + 20
    while not told and time.monotonic() < end:
        time.sleep(0.01)
    return told


@pytest.fixture
def phone(told: list[tuple[str, str, bool, str]]) -> Iterator[Phone]:
    networks = [Network("<b>&\"'", 80, "WPA2"), Network("Company", 20, "WPA2 802.1X")]
    form = Form("127.0.0.1", networks, lambda *words: told.append(words), port=0)
    yield Phone(form)
    form.close()


def test_the_page_stands_alone(phone: Phone) -> None:
    status, page, headers = phone.ask()
    assert status == 200 and "default-src 'none'" in headers["Content-Security-Policy"]
    assert "http" not in page and "src=" not in page and "<script" not in page
    assert "&lt;b&gt;&amp;&quot;&#x27;" in page and "<b>&" not in page and "Company" not in page


def test_a_phone_tells_the_password_once(phone: Phone, told: list[Any]) -> None:
    status, page = phone.send(ssid="Home", password=SECRET, hidden="1", country="de")
    assert status == 200 and SECRET not in page
    assert soon(told) == [("Home", SECRET, True, "DE")]
    phone.send(ssid="Home", password=SECRET)
    assert len(told) == 1  # the radio is on its way
    phone.form.close()


def test_a_name_that_is_not_in_the_list(phone: Phone, told: list[Any]) -> None:
    assert phone.send(ssid="", name="Attic")[0] == 200
    assert soon(told) == [("Attic", "", False, "")]


@pytest.mark.parametrize(
    "fields",
    [{"ssid": "Home", "password": "short"}, {"name": ""}, {"ssid": "Home", "country": "XXX"}],
)
def test_what_cannot_be_is_said_on_the_page(
    phone: Phone, told: list[Any], fields: dict[str, str]
) -> None:
    status, page = phone.send(**fields)
    assert status == 400 and 'class="e"' in page and not told
    assert "short" not in page


def test_another_page_cannot_send(phone: Phone, told: list[Any]) -> None:
    assert phone.send(token="guess", ssid="Evil", password=SECRET)[0] == 403
    good = urllib.parse.urlencode({"token": phone.form.token, "ssid": "Evil"}).encode()
    assert phone.ask("/", good, host="evil.example")[0] == 403
    status, _, headers = phone.ask("/generate_204", host="connectivitycheck.gstatic.com")
    assert status == 302 and headers["Location"] == phone.form.url + "/"
    assert phone.ask("/other")[0] == 404
    assert phone.ask("/", b"x" * (LIMIT + 1))[0] == 413
    assert phone.ask("/", b"&".join([b"a=1"] * 500))[0] == 403
    assert not told


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(BoardError):
        Form("192.0.2.1", [], lambda *words: None)


# ---- the code --------------------------------------------------------------------------------------------


def test_what_a_camera_reads(tmp_path: Path) -> None:
    text = join_code("exo-1a2b", 'ab;c:d,e"f\\')
    assert text == 'WIFI:T:WPA;S:exo-1a2b;P:ab\\;c\\:d\\,e\\"f\\\\;;'
    short = join_code("exo-1a2b", "abcd2345")
    for size in ((128, 64), (240, 240), (250, 122)):
        image = picture(short, size)
        assert image.size == size and image.mode == "1"
        if shutil.which("zbarimg"):
            path = tmp_path / "code.png"
            image.convert("L").resize((size[0] * 3, size[1] * 3)).save(path)
            done = subprocess.run(
                ["zbarimg", "-q", "--raw", str(path)], capture_output=True, text=True, check=False
            )
            assert done.stdout.strip() == short, size
    with pytest.raises(BoardError):
        picture("x" * 300, (128, 64))
    assert len(as_text(short).splitlines()) < 25
