"""The menu and what it opens: sessions, reminders and timers, search, what was left for later. Owns what
exod told of them last.

A page whose source is not there is absent: nothing of exod while it is away, no timers from an exod that
does not list them, no import before one is told of."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from exo.device.browse import NEVER, Confirm, Item, ListPage, Page, TextPage
from exo.device.entry import Entry
from exo.device.events import Called
from exo.device.pages import View
from exo.device.settings import settings
from exo.device.wire import Notice, is_time

if TYPE_CHECKING:
    from exo.device.handheld import Handheld

SESSIONS = 30  # as many are listed
HITS = 20
DAY = 86_400


class Known:
    """What exod told: sessions, what is due (None: it cannot tell), hits, imports under way."""

    def __init__(self, device: Handheld) -> None:
        self._device = device
        self.sessions: list[dict[str, Any]] | None = None
        self.due: list[dict[str, Any]] | None = None
        self.hits: list[dict[str, Any]] | None = None
        self.panels: dict[str, dict[str, Any]] = {}  # of kind progress, by name

    def ask(self, what: str) -> None:
        """Ask for `sessions` or `due`; the answer comes as Called."""
        if what == "sessions":
            self._device.link.call(what, 0, "session.list", {"limit": SESSIONS})
        else:
            self._device.link.call(what, 0, "tasks.list", {})

    def on_called(self, event: Called) -> None:
        rows = (event.result or {}).get(
            {"sessions": "sessions", "hits": "hits"}.get(event.kind, "rows")
        )
        found = (
            [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else None
        )
        if event.kind == "sessions":
            self.sessions = found or []
        elif event.kind == "hits":
            self.hits = found or []
        elif event.kind == "due":
            listed = [each for each in found or [] if is_time(each.get("due"))]
            self.due = None if found is None else sorted(listed, key=lambda each: each["due"])
        if event.result is None and event.code not in ("unsupported", "unknown_command"):
            self._device.notices.add(Notice("error", event.why, aloud=False))

    def on_panel(self, body: dict[str, Any]) -> None:
        """exod draws a panel: of kind progress, data {title, text, done, total}."""
        name, data = str(body.get("panel", "")), body.get("data")
        if body.get("action") == "close":
            self.panels.pop(name, None)
        elif body.get("kind") == "progress" and isinstance(data, dict):
            self.panels[name] = data

    @property
    def next_due(self) -> str:
        """What rings next, with its time."""
        now = self._device.clock.now_ms()
        for row in self.due or []:
            if row["due"] > now:
                at = self._device.clock.local(row["due"])
                return f"{at:%H:%M} {row.get('label') or ''}".strip()
        return ""


def left(device: Handheld, due: int, whole: bool = False) -> str:
    """`4:59` for what is due within the hour, the time of day within a day, else the day, `whole` with
    its time."""
    seconds = max(0, -(-(due - device.clock.now_ms()) // 1000))
    if seconds < 3600:
        return f"{seconds // 60}:{seconds % 60:02d}"
    at = device.clock.local(due)
    time = at.strftime("%H:%M")
    day = device.texts.date(at)
    return time if seconds < DAY else f"{day} {time}" if whole else day


def menu(device: Handheld) -> ListPage:
    """The menu."""

    def show(name: str) -> None:
        device.go(Progress(device, name, page))

    def last() -> None:
        device.home()
        device.talk.again()

    def items() -> list[Item]:
        texts, known = device.texts, device.known
        found = []
        for asked in device.cards.later:
            label = asked.label or texts("question.title")
            found.append(Item(label, partial(device.cards.show, asked), icon="question"))
        if device.talk.reply.text:
            found.append(Item(texts("menu.last"), last))
        if device.core_up:
            found.append(Item(texts("menu.sessions"), lambda: device.go(sessions(device, page))))
            if known.due is not None:
                count = str(len(known.due) or "")
                found.append(Item(texts("menu.due"), lambda: device.go(due(device, page)), count))
            found.append(Item(texts("menu.search"), lambda: device.go(search(device, page))))
        for name, data in known.panels.items():
            label = str(data.get("title") or name)
            act = partial(show, name)
            found.append(Item(label, act, percent(share(data))))
        if device.pin and device.pin.set:
            found.append(Item(texts("menu.lock"), device.lock, icon="lock"))
        found.append(Item(texts("menu.settings"), lambda: device.go(settings(device, page))))
        return found

    page = ListPage(device, "menu", device.texts("menu"), items)
    return page


def sessions(device: Handheld, parent: Page) -> ListPage:
    """Conversations: a new one, or one that goes on."""
    texts = device.texts

    def switch(session: str, title: str) -> None:
        device.talk.stop()
        device.link.switch(session)
        device.home()
        device.notices.add(Notice("info", title, texts("sessions.now"), aloud=False))

    def items() -> list[Item]:
        new = texts("sessions.new")
        found = [Item(new, lambda: switch("", new), icon="add")]
        for each in device.known.sessions or []:
            session = str(each.get("id", ""))
            day = texts.date(device.clock.local(_ms(each.get("updated"))))
            title = str(each.get("title") or day)
            act = partial(switch, session, title)
            found.append(Item(title, act, marked=session == device.link.session))
        return found

    device.known.ask("sessions")
    return ListPage(device, "sessions", texts("menu.sessions"), items, parent)


def due(device: Handheld, parent: Page) -> ListPage:
    """Reminders and timers with the time that is left; ok asks whether one is to be cancelled."""
    texts = device.texts

    def cancel(row: dict[str, Any]) -> None:
        body = {"name": "cancel", "args": {"id": row.get("id")}}
        device.link.call("cancel", 0, "command.run", body)
        device.known.due = [each for each in device.known.due or [] if each is not row]
        device.go(page)

    def items() -> list[Item]:
        found = []
        for row in device.known.due or []:
            label = str(row.get("label") or texts(f"due.{_kind(row)}"))
            asked = f"{label}\n{left(device, row['due'], whole=True)}"
            confirm = Confirm(device, texts("due.cancel"), asked, partial(cancel, row), page)
            icon = "bell" if _kind(row) == "timer" else "clock"
            found.append(Item(label, partial(device.go, confirm), left(device, row["due"]), icon))
        return found or [Item(texts("due.none"))]

    device.known.ask("due")
    page = ListPage(device, "due", texts("menu.due"), items, parent)
    return page


def _kind(row: dict[str, Any]) -> str:
    return "timer" if row.get("kind") == "timer" else "reminder"


def search(device: Handheld, parent: Page) -> Entry:
    """A line to look for; found(...) lists what is there."""
    texts = device.texts

    def send(text: str) -> None:
        device.known.hits = None
        device.link.call("hits", 0, "search", {"query": text, "limit": HITS})
        device.go(ListPage(device, "found", text, items, entry))

    def items() -> list[Item]:
        hits = device.known.hits
        if hits is None:
            return [Item(texts("search.looking"))]
        found = []
        for hit in hits:
            text = " ".join(str(hit.get("snippet", "")).replace("«", "").replace("»", "").split())
            act = partial(read, text, str(hit.get("session", "")))
            found.append(Item(text, act))
        return found or [Item(texts("search.none"))]

    def read(text: str, session: str) -> None:
        """One hit as a whole; ok goes on in its session."""

        def resume() -> None:
            device.link.switch(session)
            device.home()
            device.notices.add(Notice("info", texts("sessions.resumed"), aloud=False))

        device.page = TextPage(device, "found", texts("search.hit"), text, device.page, resume)

    entry = Entry(device, texts("menu.search"), send, parent)
    return entry


class Progress(Page):
    """How far something is that exod tells of, such as an import."""

    state = "progress"

    def __init__(self, device: Handheld, name: str, parent: Page) -> None:
        super().__init__(device, name, parent)
        self._name = name

    def view(self) -> View:
        data = self.device.known.panels.get(self._name)
        if data is None:
            return View(
                "progress", NEVER, self.title, self.device.texts("progress.over"), progress=1.0
            )
        self.title = str(data.get("title") or self._name)
        return View(
            "progress", NEVER, self.title, str(data.get("text") or ""), progress=share(data)
        )

    def key(self, name: str) -> None:
        if name in ("ok", "back", "left"):
            self.back()

    def aloud(self) -> str:
        view = self.view()
        return f"{view.title}. {view.text} {percent(view.progress)}"


def share(data: dict[str, Any]) -> float:
    """0 to 1, -1 when it is not known."""
    done, total = data.get("done"), data.get("total")
    if not isinstance(done, int | float) or not isinstance(total, int | float) or total <= 0:
        return -1.0
    return min(1.0, max(0.0, done / total))


def percent(value: float) -> str:
    return "" if value < 0 else f"{round(100 * value)} %"


def _ms(value: object) -> int:
    return value if is_time(value) else 0
