"""Choosing a network on the handheld: what its pages show, what its keys do. Owns the steps from looking
around to being joined, and the hotspot for a phone; knows no state machine and no picture.

`view()` gives the fields of a View of kind list, entry, progress or card by their names; whoever owns the
pages draws them, hands over keys and text, and closes. Slow work runs in threads; `changed` is called when
there is something new to show. Invariant: `close` leaves no hotspot and no open port behind."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from exo.board.wifi import Network, Status, Wifi, WifiError, join_code
from exo.core.base.errors import ExoError
from exo.device.locale import Texts

LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that look alike
DIGITS = "23456789"


class WifiPort(Protocol):
    """What is used of board.wifi.Wifi."""

    def status(self) -> Status: ...
    def scan(self, fresh: bool = True) -> list[Network]: ...
    def join(self, ssid: str, password: str = "", hidden: bool = False) -> Status: ...
    def forget(self, ssid: str) -> None: ...
    def radio(self, on: bool) -> None: ...
    def hotspot(self, ssid: str, password: str) -> str: ...
    def end_hotspot(self) -> None: ...


class FormPort(Protocol):
    """What is used of board.wifi_form.Form."""

    url: str

    def close(self) -> None: ...


Chosen = Callable[[str, str, bool, str], None]
Serve = Callable[[str, list[Network], Chosen], FormPort]


@dataclass(frozen=True)
class Step:
    """Where the person is: looking, list, password, name, country, joining, joined, failed,
    known, asked, raising or hotspot."""

    name: str
    ssid: str = ""
    hidden: bool = False
    text: str = ""  # of a card or of progress
    chosen: int = 0


@dataclass(frozen=True)
class Code:
    """What a screen with room shows as a QR code, with the words beside it."""

    code: str
    text: str


class WifiFlow:
    """The steps. Build it with the loop's own `changed`; `left` is True once the person has gone."""

    def __init__(
        self,
        wifi: WifiPort,
        serve: Serve,
        texts: Texts,
        changed: Callable[[], None],
        country: Callable[[str], None] = lambda code: None,
        run: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        """`serve` opens the form on an address; `country` passes a wish for one on; `run` starts slow work
        (None: in a thread)."""
        self._wifi, self._serve, self._texts = wifi, serve, texts
        self._changed, self._country, self._run = changed, country, run or _thread
        self._lock = threading.RLock()
        self._form: FormPort | None = None
        self._networks: list[Network] = []
        self._status = Status()
        self._job = 0  # what an older job brings is too late
        self.code: Code | None = None
        self.left = False
        self.step = Step("looking")
        self._look()

    # what is seen

    def view(self) -> dict[str, Any]:
        """The fields of a View: `page` list (rows of (label, value, icon, marked), chosen), entry (title,
        hint), progress (text), or card (text, choices, chosen)."""
        with self._lock:
            step, texts = self.step, self._texts
            if step.name == "list":
                rows = [self._row(each) for each in self._networks]
                rows += [(texts(f"wifi.{name}"), "", "", False) for name, _ in self._more()]
                return {"page": "list", "title": self._title(), "rows": rows, "chosen": step.chosen}
            if step.name in ("password", "name", "country"):
                hint = texts(f"wifi.{step.name}")
                return {"page": "entry", "title": step.ssid or hint, "hint": hint}
            if step.name in ("looking", "joining", "raising"):
                title = step.ssid or texts("wifi")
                text = texts(f"wifi.{step.name}")
                return {"page": "progress", "title": title, "text": text, "progress": -1.0}
            choices = tuple(texts(f"wifi.{name}") for name in self._choices())
            title = step.ssid or texts("wifi")
            card = {"page": "card", "level": "question", "title": title, "text": step.text}
            return card | {"choices": choices, "chosen": step.chosen}

    def _more(self) -> list[tuple[str, Callable[[], None]]]:
        """What stands below the networks, and what it does."""
        return [
            ("other", lambda: self._to(Step("name"))),
            ("phone", self._raise),
            ("country", lambda: self._to(Step("country"))),
            ("again", self._look),
            ("cancel", self._back),
        ]

    def _title(self) -> str:
        status = self._status
        if status.ssid and status.internet in ("portal", "limited", "none"):
            return self._texts(f"wifi.{status.internet}", network=status.ssid)
        return status.ssid or self._texts("wifi")

    def _row(self, each: Network) -> tuple[str, str, str, bool]:
        lock = "lock" if each.security and not each.known else ""
        return each.ssid, f"{each.signal}%", lock, each.active

    def _choices(self) -> tuple[str, ...]:
        return {
            "known": ("join", "forget", "cancel"),
            "failed": ("retry", "cancel") if self.step.ssid and not self._closed else ("cancel",),
            "hotspot": ("cancel",),
            "joined": ("ok",),
        }.get(self.step.name, ("cancel",))

    @property
    def _closed(self) -> bool:
        """Whether no password helps."""
        return any(each.ssid == self.step.ssid and each.company for each in self._networks)

    # what is pressed

    def key(self, name: str) -> None:
        """up, down, left, right, ok or back; on an entry page only back, the rest is the page's own."""
        with self._lock:
            step = self.step
            if name in ("back", "left"):
                self._back()
            elif step.name == "list":
                self._in_list(name)
            elif name in ("up", "down"):
                count = len(self._choices())
                self._go(chosen=(step.chosen + (1 if name == "down" else -1)) % count)
            elif name in ("ok", "right"):
                self._choose(self._choices()[min(step.chosen, len(self._choices()) - 1)])

    def entered(self, text: str) -> None:
        """An entry page sends what was typed."""
        with self._lock:
            if self.step.name == "name":
                self._to(Step("password", text.strip(), True))
            elif self.step.name == "country":
                self._work(Step("looking"), lambda: self._in(text))
            elif self.step.name == "password":
                self._join(self.step.ssid, text, self.step.hidden)

    def close(self) -> None:
        """The page was left by another way (talk, lock, time)."""
        with self._lock:
            self.left = True
            self._job += 1
        self._run(self._lower)  # nmcli is slow

    # steps

    def _in_list(self, name: str) -> None:
        step, more = self.step, self._more()
        if name in ("up", "down"):
            count = len(self._networks) + len(more)
            self._go(chosen=(step.chosen + (1 if name == "down" else -1)) % count)
            return
        place = step.chosen - len(self._networks)
        if place >= 0:
            more[place][1]()
            return
        each = self._networks[step.chosen]
        if each.company:
            self._to(Step("failed", each.ssid, text=self._texts("wifi.company")))
        elif each.known:
            self._to(Step("known", each.ssid, text=self._texts("wifi.is_known")))
        elif each.security:
            self._to(Step("password", each.ssid))
        else:
            self._join(each.ssid, "", False)

    def _choose(self, choice: str) -> None:
        step = self.step
        if choice == "join":
            self._join(step.ssid, "", False)
        elif choice == "forget":
            self._work(Step("looking"), lambda: self._forget(step.ssid))
        elif choice == "retry":
            self._to(Step("password", step.ssid, step.hidden))
        elif choice == "ok":
            self.left = True
            self._changed()
        else:
            self._back()

    def _in(self, country: str) -> Step:
        """Pass the wish on: another process grants it, and a look tells what is in the air then."""
        self._country(country)
        return Step("asked", text=self._texts("wifi.asked"))

    def _back(self) -> None:
        if self.step.name in ("list", "looking", "joined"):
            self.left = True
            self._job += 1
            self._changed()
        elif self.step.name in ("raising", "hotspot"):
            self._work(Step("looking"), self._to_list)
        else:
            self._job += 1
            self._to(Step("list"))

    def _look(self) -> None:
        def look() -> Step:
            status = self._wifi.status()
            if status.device and not status.on:
                self._wifi.radio(True)
            networks = self._wifi.scan(True)
            with self._lock:
                self._networks, self._status = networks, status
            return Step("list")

        self._work(Step("looking"), look)

    def _to_list(self) -> Step:
        self._lower()
        self._status = self._wifi.status()
        return Step("list")

    def _forget(self, ssid: str) -> Step:
        self._wifi.forget(ssid)
        self._networks, self._status = self._wifi.scan(False), self._wifi.status()
        return Step("list")

    def _join(self, ssid: str, password: str, hidden: bool) -> None:
        def join() -> Step:
            self._lower()
            self._status = status = self._wifi.join(ssid, password, hidden)
            word = status.internet if status.internet in ("portal", "limited", "none") else "done"
            return Step("joined", ssid, text=self._texts(f"wifi.{word}", network=ssid))

        self._work(Step("joining", ssid, hidden), join)

    def _raise(self) -> None:
        """The hotspot: what was seen in the air is kept, for one radio cannot look around meanwhile."""
        name = "exo-" + "".join(secrets.choice(DIGITS) for _ in range(4))
        password = "".join(secrets.choice(LETTERS) for _ in range(8))

        def up() -> Step:
            address = self._wifi.hotspot(name, password)
            try:
                form = self._serve(address, self._networks, self._told)
            except ExoError:
                self._wifi.end_hotspot()
                raise
            with self._lock:
                self._form = form
                text = self._texts("wifi.hotspot", network=name, password=password, url=form.url)
                self.code = Code(join_code(name, password), text)
            return Step("hotspot", name, text=text)

        self._work(Step("raising"), up)

    def _told(self, ssid: str, password: str, hidden: bool, country: str) -> None:
        """A phone has sent the form."""
        with self._lock:
            if self.step.name != "hotspot" or self.left:
                return
            if country:
                with contextlib.suppress(ExoError):
                    self._country(country)
            self._join(ssid, password, hidden)

    def _lower(self) -> None:
        with self._lock:
            form, self._form, self.code = self._form, None, None
        if form is not None:
            form.close()
            with contextlib.suppress(WifiError):
                self._wifi.end_hotspot()

    # threads

    def _work(self, meanwhile: Step, work: Callable[[], Step]) -> None:
        """Show `meanwhile` until `work` has found the next step, or its error."""
        self._job += 1
        job = self._job
        self._to(meanwhile)

        def run() -> None:
            try:
                found = work()
            except ExoError as error:
                mend = f"{error.why}; {error.do}" if error.do else error.why
                found = Step("failed", meanwhile.ssid, meanwhile.hidden, mend or str(error))
            late = False
            with self._lock:
                late = job != self._job
                if not late:
                    self._to(found)
            if late and found.name == "hotspot":
                self._lower()  # it came up after the person had gone

        self._run(run)

    def _to(self, step: Step) -> None:
        self.step = step
        self._changed()

    def _go(self, chosen: int) -> None:
        self._to(replace(self.step, chosen=chosen))


def open_flow(state: Path, texts: Texts, changed: Callable[[], None]) -> WifiFlow:
    """The steps on this machine's radio; `state` is the home's folder of that name."""
    from exo.board.wifi_boot import ask_country
    from exo.board.wifi_form import Form

    return WifiFlow(Wifi(), Form, texts, changed, lambda code: ask_country(state, code))


def _thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="wifi", daemon=True).start()
