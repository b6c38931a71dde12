"""Where addresses lead."""

from __future__ import annotations

import pytest
from exo.tools.gate.hosts import host_of, kind_of


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("http://localhost:8000/x", "local"),
        ("LOCALHOST.", "local"),
        ("127.0.0.1", "local"),
        ("http://127.1", "local"),
        ("http://2130706433/", "local"),
        ("http://0x7f000001", "local"),
        ("http://0177.0.0.1", "local"),
        ("http://[::1]:80/", "local"),
        ("http://[::ffff:127.0.0.1]/", "local"),
        ("http://app.localhost", "local"),
        ("http://10.0.0.1", "private"),
        ("http://192.168.1.1:80", "private"),
        ("http://[fe80::1]", "private"),
        ("http://169.254.169.254/", "private"),
        ("http://nas.local", "private"),
        ("http://nas", "private"),
        ("https://example.com", "public"),
        ("https://user:pw@example.com:8443/a?b#c", "public"),
        ("https://localhost@example.com", "public"),
        ("https://localhost.example.com", "public"),
        ("https://127.0.0.1.example.com", "public"),
        ("https://example.com#@localhost", "public"),
        ("https://example.com?@localhost", "public"),
        ("https://bücher.de", "public"),
        ("8.8.8.8", "public"),
        ("https://[2001:4860:4860::8888]/", "public"),
        ("https://example.com\\@localhost", "odd"),
        ("https://раураl.com", "odd"),
        ("https://gооgle.com", "odd"),
        ("https://xn--80ak6aa92e.com", "odd"),
        ("https://exam\u200bple.com", "odd"),
        ("https://ｅxample.com", "odd"),
        ("https://exa mple.com", "odd"),
        ("", "odd"),
    ],
)
def test_kinds_of_hosts(address: str, kind: str) -> None:
    assert kind_of(address) == kind


def test_the_host_alone() -> None:
    assert host_of("https://u:p@EXAMPLE.com.:8443/a") == "example.com"
    assert host_of("git@github.com:a/b.git") == "github.com"
