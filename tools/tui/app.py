"""The client in panes: transcript, prompt, the device's screen, logs; for a socket and for the cable alike. Owns what
stands where and which key does what; what can be done is tools/chat.py's, what is shown tools/transcript.py's.

Invariant: the screen is touched in the app's own thread alone; nothing is allowed by a key that a person
hits while writing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from exo.board.logs import Tail
from exo.board.viewer import Viewer
from exo.core.base.home import Home
from exo.tools.chat import Chat, where
from exo.tools.transcript import visible
from exo.tools.tui.dialogs import Approval, PinDialog
from exo.tools.tui.picture import draw
from exo.tools.tui.prompt import Prompt
from rich.markup import escape
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import RichLog, Static

if TYPE_CHECKING:
    from exo.core.base.client import Client
    from exo.tools.link import Link

KEPT = 400  # pieces of the transcript
SIDE = 66  # columns of the side pane: a screen of 128 dots
WIDE = 120  # columns of a terminal from which on the side pane is there from the start
STYLES = {"tool": "cyan", "notice": "yellow", "error": "bold red", "user": "bold"}


class Do(Message):
    """Something to be done in the app's thread."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act


class Commands(Provider):
    """What the palette offers beside Textual's own: the commands of chat, and the panes."""

    def _all(self) -> list[tuple[str, str, Callable[[], None]]]:
        app = self.app
        assert isinstance(app, ExoApp) and app.chat is not None
        found: list[tuple[str, str, Callable[[], None]]] = []
        for name, (_, about) in app.chat.commands.items():
            found.append((f"/{name}", about, partial(app.choose, name, about)))
        found.append(("screen", "show or hide the device's screen", app.action_screen))
        found.append(("logs", "show or hide the logs", app.action_logs))
        return found

    async def discover(self) -> Hits:
        for name, about, act in self._all():
            yield DiscoveryHit(name, act, help=escape(about))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, about, act in self._all():
            if (score := matcher.match(f"{name} {about}")) > 0:
                yield Hit(score, matcher.highlight(name), act, help=escape(about))


class ExoApp(App[int]):
    """One conversation."""

    TITLE = "Exo"
    CSS = f"""
    #transcript {{ height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }}
    #side {{ width: {SIDE + 2}; border-left: solid $panel; }}
    #screen {{ height: auto; padding: 0 1; color: $success; }}
    #logs {{ height: 1fr; padding: 0 1; }}
    #status {{ height: 1; background: $panel; padding: 0 1; }}
    #hint {{ height: auto; color: $text-muted; padding: 0 1; display: none; }}
    Prompt {{ border: none; border-top: solid $panel; height: 2; padding: 0 1; }}
    """
    COMMANDS = App.COMMANDS | {Commands}
    BINDINGS = [
        Binding("ctrl+c", "stop", "stop the answer, else leave", priority=True),
        Binding("ctrl+o", "output", "the last tool's output"),
        Binding("f2", "screen", "the device's screen"),
        Binding("f3", "logs", "logs"),
    ]

    def __init__(self, client: Client | Link, session: str, home: Home | None = None) -> None:
        """`home` is this machine's, for its logs and its device's screen; without one they come by the link."""
        super().__init__()
        self._client, self._session, self._home = client, session, home
        self.chat: Chat | None = None
        self._reply: Static | None = None
        self._written = ""
        self._pending = ""
        self._state, self._tokens = "", 0
        self._viewer: Viewer | None = None
        self._approval: Approval | None = None

    def compose(self) -> ComposeResult:
        with Horizontal():
            with Vertical():
                yield VerticalScroll(id="transcript")
                yield Static(id="hint")
                yield Prompt()
                yield Static(id="status")
            with Vertical(id="side"):
                yield Static("The device's screen is not here.", id="screen")
                yield RichLog(id="logs", max_lines=1000, wrap=True, min_width=20)

    def on_mount(self) -> None:
        side = self.query_one("#side")
        side.display = self.size.width >= WIDE
        self.chat = Chat(self._client, self._session, self)
        self.query_one(Prompt).begin(self.chat)
        if self._home is not None:
            tail = Tail(self._home.logs)
            self._viewer = Viewer(self._home.state / "screen.sock", lambda: self.do(self._look))
            self.set_interval(1.0, partial(self._log_lines, tail))
        elif hasattr(self._client, "watch"):
            self._client.watch(
                lambda text: self.do(partial(self.link_state, text)),
                lambda name, text: self.do(partial(self.log_line, name, text)),
                lambda event: self.do(partial(self.panel, event["body"])),
                self.ask_pin,
            )
        self.line(
            "Enter says it; @file sends a file along, !command runs in the shell, /help", "notice"
        )
        self.line(
            "Ctrl-P: everything else. F2 the device's screen, F3 logs. Ctrl-C stops, then leaves.",
            "notice",
        )
        self.chat.follow(lambda event: self.do(partial(self.take, event)))
        self.run_worker(self.chat.prefill, thread=True)
        self._show_status()

    def on_unmount(self) -> None:
        if self.chat is not None:
            self.chat.close()
        if self._viewer is not None:
            self._viewer.close()

    def do(self, act: Callable[[], object]) -> None:
        """Have `act` done in the app's thread, in order; from any thread."""
        self.post_message(Do(act))

    def on_do(self, message: Do) -> None:
        if self.query("#status"):  # an event may come while the panes are already being taken down
            message.act()

    # ---- Out (called in any thread) --------------------------------------------------------------

    def text(self, piece: str) -> None:
        self.do(partial(self._text, piece))

    def line(self, text: str, kind: str) -> None:
        self.do(partial(self._line, text, kind))

    def end(self) -> None:
        self.do(self._end)

    def _text(self, piece: str) -> None:
        self._written += piece
        if self._reply is None:
            self._reply = self._add(Text(self._written))
        else:
            self._reply.update(Text(self._written))
            self._scroll()

    def _line(self, text: str, kind: str) -> None:
        self._end()
        text = f"> {visible(text)}" if kind == "user" else visible(text)
        self._add(Text(text, style=STYLES.get(kind, "")))

    def _end(self) -> None:
        self._reply, self._written = None, ""

    def _add(self, text: Text) -> Static:
        pane = self.query_one("#transcript", VerticalScroll)
        made = Static(text)
        pane.mount(made)
        for old in list(pane.children)[: max(0, len(pane.children) - KEPT)]:
            old.remove()
        self._scroll()
        return made

    def _scroll(self) -> None:
        pane = self.query_one("#transcript", VerticalScroll)
        if pane.max_scroll_y - pane.scroll_y <= 3:  # who reads further up stays there
            pane.scroll_end(animate=False)

    # ---- what happens ----------------------------------------------------------------------------

    def take(self, event: dict[str, Any]) -> None:
        """Take an event of the stream."""
        chat = self.chat
        if chat is None:
            return
        if chat.fault is not None:
            self._line(str(chat.fault), "error")
            self.link_state("gone")
            return
        chat.transcript.take(event)
        if event["type"] == "ui.panel":
            self.panel(event["body"])
        elif event["type"] == "usage.updated" and event["session"] == chat.session:
            self._tokens = int(event["body"]["usage"].get("prompt_tokens", 0))
        elif event["type"] == "notice":
            self.log_line("notice", str(event["body"]["text"]))
        self._asks()
        self._show_status()

    def _asks(self) -> None:
        assert self.chat is not None
        transcript = self.chat.transcript
        if self._approval is not None:
            if self._approval.request not in transcript.asked and self._approval.is_current:
                self._approval.dismiss("")  # it was answered elsewhere
            return
        if asked := transcript.approval():
            self._approval = Approval(asked)
            self.push_screen(self._approval, self._answered)

    def _answered(self, choice: str | None) -> None:
        self._approval = None
        chat = self.chat
        if choice and chat is not None:
            self.run_worker(partial(chat.answer, choice), thread=True)
        self.set_timer(0.2, self._asks)

    def panel(self, body: dict[str, Any]) -> None:
        """Draw a panel, if it is the device's screen."""
        if body.get("kind") == "screen":
            lines = draw(body.get("data") or {}, SIDE - 2)
            self.query_one("#screen", Static).update(Text("\n".join(lines)))

    def _look(self) -> None:
        if self._viewer is not None and (event := self._viewer.take()):
            self.panel(event["body"])

    def _log_lines(self, tail: Tail) -> None:
        for name, text in tail.read():
            self.log_line(name, text)

    def log_line(self, name: str, text: str) -> None:
        self.query_one("#logs", RichLog).write(Text(visible(f"{name}: {text}")))

    def link_state(self, text: str) -> None:
        self._state = text.partition(":")[0]
        self.log_line("link", text)
        self._show_status()

    def _show_status(self) -> None:
        chat = self.chat
        if chat is None:
            return
        transcript, doing = chat.transcript, "ready"
        if transcript.working:
            doing = f"runs {transcript.working}"
        elif chat.session in transcript.running:
            doing = "answers"
        parts = [chat.session, doing, f"{self._tokens} tokens" if self._tokens else "", self._state]
        self.query_one("#status", Static).update(Text("  ".join(part for part in parts if part)))

    # ---- keys ------------------------------------------------------------------------------------

    def on_input_submitted(self, message: Prompt.Submitted) -> None:
        line, prompt = message.value, self.query_one(Prompt)
        if message.input is not prompt or self.chat is None:
            return
        prompt.value = ""
        if line.endswith("\\"):
            self._pending += line[:-1] + "\n"
            return
        line, self._pending = self._pending + line, ""
        if line.strip():
            prompt.keep(line)
            self.submit(line)

    def submit(self, line: str) -> None:
        """Do what was typed."""
        chat = self.chat
        assert chat is not None
        self.line(line, "user")

        def work() -> None:
            chat.submit(line)
            self.do(self.exit if chat.leaving else self._show_status)

        self.run_worker(work, thread=True)

    def choose(self, name: str, about: str) -> None:
        """A command of the palette: run it, or let its argument be typed."""
        if about[:1].isupper() or about.startswith("["):
            prompt = self.query_one(Prompt)
            prompt.value = f"/{name} "
            prompt.cursor_position = len(prompt.value)
            prompt.focus()
        else:
            self.submit(f"/{name}")

    def action_stop(self) -> None:
        chat, prompt = self.chat, self.query_one(Prompt)
        if chat is not None and chat.session in chat.transcript.running:
            self.run_worker(chat.interrupt, thread=True)
        elif prompt.value:
            prompt.value = ""
        else:
            self.exit(0)

    def action_output(self) -> None:
        self.submit("/output")

    def action_screen(self) -> None:
        self._toggle("#screen", "#logs")

    def action_logs(self) -> None:
        self._toggle("#logs", "#screen")

    def _toggle(self, name: str, other: str) -> None:
        """Show or hide a part of the side pane; with neither the pane goes."""
        side, part, rest = (self.query_one(each) for each in ("#side", name, other))
        shown = side.display and part.display
        rest.display = rest.display and side.display
        part.display = not shown
        side.display = part.display or rest.display

    def ask_pin(self, why: str) -> str:
        """Ask for the PIN; waits, in the link's thread."""
        told, given = threading.Event(), [""]

        def done(digits: str | None) -> None:
            given[0] = digits or ""
            told.set()

        self.do(lambda: self.push_screen(PinDialog(why), done))
        told.wait(600)
        return given[0]


def run(client: Client | Link, session: str | None, home: Home | None = None) -> int:
    """Run the client until the person leaves; returns the exit code."""
    session = session or str(client.call("session.create", **where(client))["session"])
    client.call("session.resume", session=session)  # refuses an unknown one before a word is typed
    app = ExoApp(client, session, home)
    app.run()
    return app.return_code or 0
