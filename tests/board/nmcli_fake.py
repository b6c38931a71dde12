"""A stand-in for nmcli, run as a program: `nmcli_fake.py STATE.json WORDS...`. What it says and with which
exit code is what nmcli 1.42.4 (Debian 12) said on 2026-11-30 to a mock of NetworkManager (python3-dbusmock),
and where that cannot go (a wrong password, a refusal) what nmcli(1) and NetworkManager's sources have.

STATE.json: air [{ssid, signal, security, psk, hidden, busy}], profiles [{name, uuid, ssid, psk}], on,
active (a uuid), internet, device, address, down, refused, slow; calls and inputs are added."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

FILE = Path(sys.argv[1])
STATE: dict[str, Any] = json.loads(FILE.read_text())
WORDS = sys.argv[2:]


def leave(code: int, out: str = "", err: str = "") -> None:
    FILE.write_text(json.dumps(STATE))
    sys.stdout.write(out)
    sys.stderr.write(err)
    sys.exit(code)


def escaped(text: object) -> str:
    return str(text).replace("\\", "\\\\").replace(":", "\\:")


def row(*fields: object) -> str:
    return ":".join(map(escaped, fields)) + "\n"


def value(name: str, words: list[str], default: str = "") -> str:
    return words[words.index(name) + 1] if name in words else default


def profile(uuid: str) -> dict[str, Any]:
    for each in STATE["profiles"]:
        if each["uuid"] == uuid:
            return dict(each)
    leave(10, err=f"Error: unknown connection '{uuid}'.\n")
    raise AssertionError


def activate(uuid: str, psk: str, asks: bool) -> None:
    """Associate: with the right password, or as NetworkManager fails."""
    each = profile(uuid)
    there = [ap for ap in STATE["air"] if ap["ssid"] == each["ssid"]]
    if not there:
        leave(4, err="Error: Connection activation failed: The Wi-Fi network could not be found.\n")
    if there[0].get("no_address"):
        why = "IP configuration could not be reserved (no available address, timeout, etc.)"
        leave(4, err=f"Error: Connection activation failed: {why}.\n")
    if there[0].get("psk", "") != psk:
        again = "Passwords or encryption keys are required to access the wireless network "
        if asks:  # it asks once more, gets nothing, and runs into --wait (3) or ends (0)
            out = f"Password: {'•' * len(psk)}\n{again}'{each['ssid']}'.\n"
            leave(there[0].get("code", 3), out, "Error: Timeout expired (45 seconds)\n")
        said = "Error: Connection activation failed: Secrets were required, but not provided.\n"
        leave(4, err=f"{again}'{each['ssid']}'.\n{said}")
    STATE["active"] = uuid


def main() -> None:
    words = list(WORDS)
    STATE.setdefault("calls", []).append(words)
    given = "" if sys.stdin.isatty() else sys.stdin.read()
    STATE.setdefault("inputs", []).append(given)
    if STATE.get("slow"):
        FILE.write_text(json.dumps(STATE))
        time.sleep(STATE["slow"])
    if STATE.get("down"):
        leave(8, err="Error: NetworkManager is not running.\n")
    assert words[:2] == ["--colors", "no"], "colours would be in the output"
    words = words[2:]
    asks = "--ask" in words
    words = [word for word in words if word not in ("--ask", "-t")]
    for option in ("--wait", "-f", "-g"):
        if option in words:
            place = words.index(option)
            del words[place : place + 2]
    device = STATE.get("device", "wlan0")
    match words:
        case ["device", "status"]:
            out = row("eth0", "ethernet", "unavailable", "")
            if device:
                active = STATE.get("active", "")
                state = "connected" if active else "disconnected"
                out += row(
                    device, "wifi", state if STATE.get("on", True) else "unavailable", active
                )
                out += row(f"p2p-dev-{device}", "wifi-p2p", "disconnected", "")
            leave(0, out)
        case ["radio", "wifi"]:
            leave(0, "enabled\n" if STATE.get("on", True) else "disabled\n")
        case ["radio", "wifi", word]:
            STATE["on"] = word == "on"
            leave(0)
        case ["networking", "connectivity", "check"]:
            leave(0, STATE.get("internet", "full") + "\n")
        case ["device", "show", _]:
            leave(0, STATE.get("address", "192.168.1.7/24") + "\n" if STATE.get("active") else "\n")
        case ["device", "wifi", "list", "--rescan", _]:
            if not device:
                leave(1, err="Error: No Wi-Fi device found.\n")
            active = [
                each["ssid"] for each in STATE["profiles"] if each["uuid"] == STATE.get("active")
            ]
            rows = [
                row(
                    "*" if ap["ssid"] in active else " ",
                    "" if ap.get("hidden") else ap["ssid"],
                    ap.get("signal", 50),
                    ap.get("security", "WPA2"),
                )
                for ap in STATE["air"]
            ]
            leave(0, "".join(rows))
        case ["connection", "show"]:
            wifi = "802-11-wireless"
            rows = [row(each["name"], each["uuid"], wifi) for each in STATE["profiles"]]
            leave(0, row("Wired connection 1", "0000", "802-3-ethernet") + "".join(rows))
        case ["connection", "show", *ids]:
            leave(0, "\n".join(escaped(profile(each)["ssid"]) + "\n" for each in ids))
        case ["connection", "delete", kind, name]:
            key = "uuid" if kind == "uuid" else "name"
            left = [each for each in STATE["profiles"] if each[key] != name]
            if len(left) == len(STATE["profiles"]):
                lines = f"Error: unknown connection '{name}'.\n"
                leave(
                    10, err=f"{lines}Error: cannot delete unknown connection(s): {kind} '{name}'.\n"
                )
            gone = next(each for each in STATE["profiles"] if each[key] == name)
            STATE["profiles"] = left
            if STATE.get("active") == gone["uuid"]:
                STATE["active"] = ""
            leave(0, f"Connection '{gone['name']}' ({gone['uuid']}) successfully deleted.\n")
        case ["connection", "up", "uuid", uuid]:
            activate(uuid, profile(uuid).get("psk", ""), False)
            path = "/org/freedesktop/NetworkManager/ActiveConnection/0"
            leave(0, f"Connection successfully activated (D-Bus active path: {path})\n")
        case ["device", "wifi", "connect", ssid, *rest]:
            if STATE.get("refused"):
                leave(
                    4,
                    err="Error: Failed to add/activate new connection: Not authorized to control networking.\n",
                )
            there = [ap for ap in STATE["air"] if ap["ssid"] == ssid]
            hidden = value("hidden", rest) == "yes"
            heard = there and (hidden or not there[0].get("hidden"))
            if heard and there[0].get("busy", 0) > 0:
                there[0]["busy"] -= 1
                heard = False
            if not heard:
                leave(10, err=f"Error: No network with SSID '{ssid}' found.\n")
            known = [each for each in STATE["profiles"] if each["ssid"] == ssid]
            uuid = known[0]["uuid"] if known else f"uuid-{len(STATE['calls'])}"
            psk = given.rstrip("\n") if asks else known[0].get("psk", "") if known else ""
            STATE["profiles"] = [each for each in STATE["profiles"] if each["uuid"] != uuid]
            STATE["profiles"].append({"name": ssid, "uuid": uuid, "ssid": ssid, "psk": psk})
            activate(uuid, psk, asks)
            done = f"Device '{device}' successfully activated with '{uuid}'.\n"
            leave(0, (f"Password: {'•' * len(psk)}\n" if asks else "") + done)
        case ["device", "wifi", "hotspot", *rest]:
            name = value("con-name", rest)
            ssid, psk = value("ssid", rest), value("password", rest)
            STATE["profiles"].append({"name": name, "uuid": "hot", "ssid": ssid, "psk": psk})
            STATE["active"], STATE["address"] = "hot", STATE.get("hotspot", "10.42.0.1/24")
            leave(0, f"Device '{device}' successfully activated with 'hot'.\n")
    leave(2, err=f"Error: argument '{words}' not understood. Try passing --help instead.\n")


main()
