"""The form by which a phone tells the Wi-Fi password: one page on the hotspot's address, from the standard
library, with nothing from elsewhere.

Invariant: it listens on that one address; only its own page can send (a token, and the host by which it was
called); a password is neither logged nor sent back."""

from __future__ import annotations

import hmac
import html
import secrets
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from exo.board.wifi import Network, WifiError, check_country, check_name, check_password
from exo.core.base.errors import BoardError

PORT = 8080  # 80 is for root
LIMIT = 4096  # bytes of a form
SILENCE = 10.0  # seconds a phone may say nothing
CALLERS = 16  # at once

Chosen = Callable[[str, str, bool, str], None]  # name, password, hidden, country

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Wi-Fi</title>
<style>body{{font:18px sans-serif;max-width:26em;margin:1em auto;padding:0 1em}}
input,select,button{{font:inherit;width:100%;box-sizing:border-box;margin:.2em 0 1em;padding:.5em}}
input[type=checkbox]{{width:auto}}.e{{color:#a00}}</style></head><body><h1>Wi-Fi</h1>{body}</body></html>"""
FORM = """{error}<form method="post" action="/" autocomplete="off">
<input type="hidden" name="token" value="{token}">
<label>Network<select name="ssid">{options}<option value="">another, by name</option></select></label>
<label>Its name, if it is not in the list<input name="name" maxlength="32"></label>
<label><input type="checkbox" name="hidden" value="1"> it is hidden</label><br>
<label>Password<input name="password" type="password" maxlength="64"></label>
<label>Country, two letters (DE, US, ...)<input name="country" maxlength="2" size="2"></label>
<button>Join</button></form>"""
DONE = """<p>The device now leaves this hotspot and joins <b>{name}</b>.</p><p>Its screen
tells whether that worked; if not, choose the phone there once more.</p>"""


class Form:
    """Serves until `close`. `chosen` is told once, from a thread, after the answer has been sent."""

    def __init__(
        self, address: str, networks: Sequence[Network], chosen: Chosen, port: int = PORT
    ) -> None:
        """Raises BoardError when the address cannot be had."""
        self.token = secrets.token_urlsafe(16)
        self._networks, self._chosen = networks, chosen
        self._once = threading.Lock()
        self._told = False
        try:
            self._server = _Server((address, port), _handler(self))
        except OSError as error:
            do = "see whether another program has that port"
            raise BoardError(f"serve {address}:{port}", str(error), do) from error
        self.host = f"{address}:{self._server.server_address[1]}"
        self.url = f"http://{self.host}"
        threading.Thread(target=self._server.serve_forever, name="wifi-form", daemon=True).start()

    def close(self) -> None:
        """Hang up; returns when nobody is served any more."""
        self._server.shutdown()
        self._server.server_close()

    def page(self, error: str = "") -> str:
        """The form."""
        options = "".join(
            f'<option value="{html.escape(each.ssid)}">{html.escape(each.ssid)} ({each.signal} %)'
            "</option>"
            for each in self._networks
            if not each.company
        )
        told = f'<p class="e">{html.escape(error)}</p>' if error else ""
        return PAGE.format(body=FORM.format(error=told, token=self.token, options=options))

    def take(self, fields: dict[str, list[str]]) -> tuple[int, str, Callable[[], None] | None]:
        """(status, page, what is to be done after the answer) of a form that was sent."""

        def field(name: str) -> str:
            return fields.get(name, [""])[0]

        if not hmac.compare_digest(field("token").encode(), self.token.encode()):
            return 403, self.page("This page is too old. Please fill it in again."), None
        name, password, country = (
            field("ssid") or field("name"),
            field("password"),
            field("country"),
        )
        try:
            check_name(name)
            password = check_password(password) if password else ""
            country = check_country(country) if country else ""
        except WifiError as error:
            return 400, self.page(f"{error.why}; {error.do}"), None
        with self._once:
            first, self._told = not self._told, True
        hidden = bool(field("hidden"))
        act = (lambda: self._chosen(name, password, hidden, country)) if first else None
        return 200, PAGE.format(body=DONE.format(name=html.escape(name))), act


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a phone that keeps a line open must not keep us

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(CALLERS)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A phone that hangs up is no news."""


def _handler(form: Form) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = SILENCE
        server_version, sys_version = "exo", ""

        def log_message(self, *arguments: Any) -> None:
            """Nothing of what phones send is written down."""

        def do_GET(self) -> None:
            if self.headers.get("Host") != form.host:  # another name for this address: go to ours
                self._answer(302, "", Location=form.url + "/")
            elif self.path == "/":
                self._answer(200, form.page())
            else:
                self._answer(404, PAGE.format(body="<p>There is no such page.</p>"))

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if self.headers.get("Host") != form.host or self.path != "/":
                self._answer(403, form.page("Please use this page."))
            elif not length.isdigit() or int(length) > LIMIT:
                self._answer(413, form.page("That is too long."))
            else:
                text = self.rfile.read(int(length)).decode(errors="replace")
                try:
                    fields = parse_qs(text, max_num_fields=20)
                except ValueError:
                    fields = {}
                status, page, act = form.take(fields)
                self._answer(status, page)
                if act:
                    act()

        def _answer(self, status: int, page: str, **headers: str) -> None:
            self.send_response(status)
            raw = page.encode()
            fixed = {
                "Content-Type": "text/html; charset=utf-8",
                "Content-Length": str(len(raw)),
                "Cache-Control": "no-store",
                "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
                "Referrer-Policy": "no-referrer",
                "Connection": "close",
            }
            for name, value in (fixed | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)
            self.wfile.flush()

    return Handler
