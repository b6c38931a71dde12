"""No line of the product names a person, an account or a machine; no secret and no large file is kept."""

from __future__ import annotations

import getpass
import re
import socket
import subprocess
from pathlib import Path

import pytest

ROOMS = ("core/", "models/", "board/", "device/")
TEXTS_OF_OTHERS = ("device/fonts/LICENSE", "board/fonts/LICENSE")  # the law wants their names
INVENTED = (
    "models/training/seed/",
)  # calls to judge, with addresses that are reserved for documents
CATALOGS = ("models/models.toml", "core/router/catalog.toml")  # rows with an address
# hosts that stand in a reference to a document; nothing is fetched from them
DOCUMENTS = {"www.sqlite.org", "sqlite.org", "json-schema.org", "example.com", "example.org"}
DOCUMENTS |= {"10.42.0.0"}  # the network that NetworkManager gives every hotspot
LARGEST = 5_000_000  # bytes
EVERYBODY = {
    "root",
    "user",
    "admin",
    "localhost",
    "debian",
    "nobody",
    "runner",
    "builder",
    "raspberrypi",
}

NAMES = {
    "an e-mail address": r"\b[\w.+-]+@[\w-]+\.[a-z]{2,}\b(?<!@example\.com)(?<!@example\.org)",
    "a person's folder": r"(?:/home/|/Users/|/root/|[A-Z]:\\Users\\)\w*",
    "a host": r"(?<![\w.-])(?:[a-z0-9-]+\.)+(?:org|com|net|io|dev|ai|co)\b(?![\w(])",
    "an address of a network": r"\b(?!127\.|0\.0\.0\.0|255\.)\d{1,3}(?:\.\d{1,3}){3}\b",
}
SECRETS = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "an access key": r"\b(?:AKIA[0-9A-Z]{16}|gh[pousr]_\w{36}|xox[abp]-\w{10,}|sk-[A-Za-z0-9_-]{32,})\b",
}


def tracked(root: Path) -> list[str]:
    """Every file that git has, or would have: skips the test where git is missing."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout, or git is not installed")
    names = done.stdout.decode().split("\0")
    return [name for name in names if name and (root / name).is_file()]


def found(text: str, patterns: dict[str, str]) -> list[str]:
    """Lines of `text` that hold one of the patterns, as 'line: what: words'."""
    return [
        f"{number}: {what}: {match.group(0)}"
        for number, line in enumerate(text.splitlines(), 1)
        for what, pattern in patterns.items()
        for match in re.finditer(pattern, line)
        if match.group(0) not in DOCUMENTS
    ]


def people_here(root: Path) -> dict[str, str]:
    """Patterns for the person and the machine that this checkout stands on."""
    words = {socket.gethostname(), getpass.getuser()}
    for key in ("user.name", "user.email"):
        done = subprocess.run(["git", "config", key], cwd=root, capture_output=True, check=False)
        words.add(done.stdout.decode().strip())
    named = {word for word in words if len(word) > 3 and word.lower() not in EVERYBODY}
    return {f"the name {word}": rf"\b{re.escape(word)}\b" for word in named}


def texts(root: Path, names: list[str]) -> dict[str, str]:
    """{name: text} of those files that are text."""
    result = {}
    for name in names:
        try:
            result[name] = (root / name).read_text()
        except UnicodeDecodeError:
            continue
    return result


def test_the_product_names_nobody(root: Path) -> None:
    names = [name for name in tracked(root) if name.startswith(ROOMS) or name == "flash.sh"]
    patterns = NAMES | people_here(root)
    faults = []
    for name, text in texts(root, names).items():
        if name.startswith(TEXTS_OF_OTHERS + INVENTED):
            continue
        wanted = {k: v for k, v in patterns.items() if not (name in CATALOGS and k == "a host")}
        faults += [f"{name}:{fault}" for fault in found(text, wanted)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("mail ada.l@machine" + ".net", "an e-mail address"),
        ("open('/home/" + "ada/x')", "a person's folder"),
        ("index = 'https://files.some-registry" + ".org/simple'", "a host"),
        ("connect 192.168" + ".1.20", "an address of a network"),
    ],
)
def test_a_name_is_seen(line: str, what: str) -> None:
    assert any(what in fault for fault in found(line, NAMES))


@pytest.mark.parametrize(
    "line",
    [
        "listen on 127.0.0.1",
        "you@example.com",
        "loop.dev(1)",
        "see sqlite.org/wal.html",
        "version 0.3.36",
        "@hook",
    ],
)
def test_a_plain_line_is_not(line: str) -> None:
    assert not found(line, NAMES)


def test_no_secret_is_kept(root: Path) -> None:
    faults = [
        f"{name}:{fault}"
        for name, text in texts(root, tracked(root)).items()
        for fault in found(text, SECRETS)
        if name != "tests/test_names.py"
    ]
    assert not faults, "\n".join(faults)


def test_no_large_file_is_kept(root: Path) -> None:
    sizes = {name: (root / name).stat().st_size for name in tracked(root)}
    assert not {name: size for name, size in sizes.items() if size > LARGEST}
