"""Where an address leads: this machine, the own network, the world. Compares hosts as hosts, asks no
network.

Invariant: what is not clearly local or private counts as public; what tries to look like another host is odd."""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from contextlib import suppress
from typing import Literal

Kind = Literal["local", "private", "public", "odd"]
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:/+|^//", re.I)
_LOCAL = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")
_PRIVATE = (".local", ".lan", ".home.arpa", ".internal", ".intranet", ".home", ".corp")


def host_of(address: str) -> str:
    """The host of a URL or of host[:port][/path], in small letters, without userinfo and last dot."""
    rest = re.split(r"[/?#\\]", _SCHEME.sub("", address.strip(), count=1), maxsplit=1)[0]
    rest = rest.rpartition("@")[2]
    found = re.match(r"\[([^\]]*)\]", rest)
    name = found[1] if found else rest.partition(":")[0] if rest.count(":") < 2 else rest
    return name.rstrip(".").lower()


def kind_of(address: str) -> Kind:
    """Where `address` leads; of an empty host "odd"."""
    name = host_of(address)
    authority = re.split(r"[/?#]", _SCHEME.sub("", address.strip(), count=1), maxsplit=1)[0]
    if (
        not name
        or "\\" in authority
        or re.search(r"[\x00-\x20\x7f%]", name.partition("%")[0] + authority)
    ):
        return "odd"
    if _disguised(name):
        return "odd"
    if name in _LOCAL or name.endswith(".localhost"):
        return "local"
    with suppress(ValueError):
        return _of_ip(ipaddress.ip_address(name.partition("%")[0]))
    with suppress(OSError, ValueError):  # decimal, octal, hexadecimal, shortened
        return _of_ip(ipaddress.ip_address(socket.inet_aton(name)))
    if "." not in name or name.endswith(_PRIVATE):
        return "private"
    return "public"


def gives_keys(host: str) -> bool:
    """Whether a cloud's machines get their keys there: the link-local addresses."""
    with suppress(OSError, ValueError):
        return ipaddress.ip_address(socket.inet_aton(host)).is_link_local
    return host.startswith("metadata.")


def _of_ip(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Kind:
    mapped = getattr(ip, "ipv4_mapped", None)
    if mapped is not None:
        return _of_ip(mapped)
    if ip.is_loopback or ip.is_unspecified:
        return "local"
    return "public" if ip.is_global else "private"


def _disguised(name: str) -> bool:
    """Mixed scripts, invisible characters, or letters that look like Latin ones."""
    plain = name
    if "xn--" in name:
        try:
            plain = name.encode("ascii").decode("idna")
        except UnicodeError:
            return True
    if plain.isascii():
        return "xn--" in name
    if unicodedata.normalize("NFKC", plain) != plain:
        return True
    scripts = {unicodedata.name(char, "?").split()[0] for char in plain if char.isalpha()}
    odd = any(unicodedata.category(char) in ("Cf", "Cc", "Mn", "Cs") for char in plain)
    return odd or len(scripts) > 1 or bool(scripts & {"CYRILLIC", "GREEK", "CHEROKEE", "ARMENIAN"})
