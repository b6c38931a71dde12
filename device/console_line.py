"""The console for a person with any terminal program: the PIN, then a prompt. Owns the typed line and what is
shown of a conversation; knows no port.

Invariant: before the PIN only a greeting is shown; an approval needs the whole word; nothing that comes
from elsewhere can move the terminal's cursor."""

from __future__ import annotations

import codecs
import secrets
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from exo.board.cable import BOUND, Outgoing
from exo.core.base.errors import ExoError, StorageError
from exo.device.pin import DIGITS

if TYPE_CHECKING:
    from exo.device.console import Around

IDLE = 600.0  # seconds after the last key until it is locked again
LONGEST = 4000  # characters of a line
BACK = 500  # events before the first that are read again for open approvals
_TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # Unicode TR9
WORDS = {"allow": "allow", "deny": "deny", "no": "deny", "n": "deny", "always": "allow_always"}
HELP = """What you type is said to Exo; its answer appears here. Ctrl-C stops it.
/sessions       those used last          /resume N   go on with one of them
/new            begin a new one          /approvals  what waits for your word
/lock, /quit    lock this console again; it locks itself after ten idle minutes
An approval is answered in whole words: allow, deny, always."""


def safe(text: str) -> str:
    """Text that moves no cursor and turns no order of reading; lines end as a raw terminal wants them."""
    kept = (
        c
        for c in text.replace("\t", "    ")
        if c == "\n" or ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0 and c not in _TURNS
    )
    return "".join(kept).replace("\n", "\r\n")


class LineSession:
    """One person at a terminal, locked at first."""

    over = False

    def __init__(self, around: Around, out: Outgoing) -> None:
        self._around, self._out = around, out
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._text, self._prompt = "", ""  # what is typed; the prompt that stands, "" for none
        self._return = False  # the last character ended a line as \r: a \n behind it is the same
        self._escape = ""
        self._touched = around.clock.monotonic()
        self._locked, self._salt = True, None
        self._pump: Any = None
        self._close_talk()

    def _close_talk(self) -> None:
        if self._pump is not None:
            self._pump.close()
        self._pump = None
        self._session, self._turns = "", 0
        self._asked: dict[str, dict[str, Any]] = {}
        self._shown: dict[str, int] = {}
        self._told: set[str] = set()  # approvals that were shown
        self._mine: set[str] = set()
        self._listed: list[str] = []
        self._quiet = 0
        self._midline = False

    @property
    def due(self) -> float | None:
        """The moment, monotonic, at which it locks itself."""
        return None if self._locked else self._touched + IDLE

    def close(self) -> None:
        """Lock, and say nothing."""
        self._locked = True
        self._close_talk()

    def tick(self, room: bool) -> None:
        """Show what has come while there is room for it; lock when nobody types."""
        if self._locked:
            return
        if self._around.clock.monotonic() - self._touched >= IDLE:
            self._lock("Locked: nothing was typed for ten minutes.")
        while room and self._pump is not None and (event := self._pump.take()) is not None:
            self._event(event)
            room = self._out.size < BOUND
        if self._pump is not None:
            self._ask()

    # ---- keys ------------------------------------------------------------------------------------

    def typed(self, data: bytes) -> None:
        """Take bytes from the terminal."""
        for char in self._decoder.decode(data):
            if self._escape or char == "\x1b":
                self._skip(char)
            elif char in "\r\n":
                if not (char == "\n" and self._return):
                    self._enter()
            else:
                self._key(char)
            self._return = char == "\r"

    def _skip(self, char: str) -> None:
        """Keys that send a sequence (arrows, functions) do nothing (ECMA-48 5.4)."""
        self._escape += char
        second = self._escape[1:2]
        if len(self._escape) > 24 or (
            second and (second not in "[O" or len(self._escape) > 2 and "@" <= char <= "~")
        ):
            self._escape = ""

    def _key(self, char: str) -> None:
        if char in "\x7f\x08":
            self._erase(1)
        elif char == "\x15":
            self._erase(len(self._text))
        elif char == "\x03":
            self._interrupt()
        elif char == "\x04" and not self._text and not self._locked:
            self._lock("Locked.")
        elif char.isprintable() and len(self._text) < LONGEST:
            self._text += char
            if self._prompt:
                self._echo("*" if self._locked else char)

    def _erase(self, count: int) -> None:
        gone, self._text = (
            self._text[len(self._text) - count :],
            self._text[: len(self._text) - count],
        )
        if self._prompt:
            width = sum(1 if self._locked else _width(char) for char in gone)
            self._echo("\b \b" * width)

    def _interrupt(self) -> None:
        self._erase(len(self._text))
        self._text = ""
        if self._turns and self._session:
            session, client = self._session, self._around.client
            self._work(lambda: client.call("turn.interrupt", session=session))

    def _enter(self) -> None:
        line, self._text = self._text.strip(), ""
        if not self._locked:
            self._touched = self._around.clock.monotonic()
        if self._prompt:
            self._put("\r\n")
            self._prompt = ""
        if self._locked:
            self._guess(line)
            return
        if self._around.pin.challenge().get("salt") != self._salt:
            self._lock("The PIN was changed. Locked.")
            return
        if self._asked_now() and line.lower() in WORDS:
            self._answer(WORDS[line.lower()])
        elif self._asked_now() and line:
            self._say('Type the whole word "allow" or "deny".')
        elif line.startswith("/") and not line.startswith("//"):
            self._command(*line[1:].partition(" ")[::2])
        elif line in ("help", "?"):
            self._say(HELP)
        elif line:
            self._send(line.removeprefix("/"))
        if not self._locked:
            self._ask()

    # ---- the PIN ---------------------------------------------------------------------------------

    def _guess(self, line: str) -> None:
        pin = self._around.pin
        if not pin.set:
            self._put(
                "Exo. No PIN is set: set one on the device, under Settings. Until then nobody is let in here.\r\n"
            )
            return
        said = "Exo, locked.\r\n" if not line else ""
        if (
            not pin.wait
            and line.isascii()
            and line.isdigit()
            and DIGITS[0] <= len(line) <= DIGITS[1]
        ):
            try:
                if pin.matches(line):
                    self._unlock()
                    return
                said = "Wrong.\r\n"
            except StorageError as error:
                said = f"{safe(str(error))}\r\n"
        elif line and not pin.wait:
            said = f"A PIN is {DIGITS[0]} to {DIGITS[1]} digits.\r\n"
        if pin.wait:
            said += f"Wait {-int(-pin.wait // 1)} s before the next try.\r\n"
        self._prompt = "PIN: "
        self._put(said + self._prompt)

    def _unlock(self) -> None:
        from exo.device.console import Pump

        self._locked, self._salt = False, self._around.pin.challenge().get("salt")
        self._touched = self._around.clock.monotonic()
        client = self._around.client
        self._say("Unlocked. /help tells what can be typed.")

        def begin(hello: dict[str, Any]) -> None:
            self._quiet = int(hello["seq"])
            since = max(int(hello["first"]) - 1, self._quiet - BACK, 0)
            if not self._locked:
                self._pump = Pump(client, since, self._around.wake)

        self._work(lambda: client.wait_ready(30.0), begin)
        self._ask()

    def _lock(self, why: str) -> None:
        self._hide()
        self._text = ""
        self._close_talk()
        self._locked = True
        self._put(f"{why}\r\n\x1b[3J\x1b[2J\x1b[HExo, locked. Press Enter.\r\n")

    # ---- what is typed ---------------------------------------------------------------------------

    def _command(self, name: str, rest: str) -> None:
        commands: dict[str, Callable[[str], None]] = {
            "help": lambda _: self._say(HELP),
            "sessions": self._sessions,
            "resume": self._resume,
            "new": lambda _: self._go(""),
            "approvals": self._approvals,
            "lock": lambda _: self._lock("Locked."),
            "quit": lambda _: self._lock("Locked."),
        }
        if name in commands:
            commands[name](rest.strip())
        else:
            self._say(f"There is no /{name}; see /help.")

    def _sessions(self, rest: str) -> None:
        client = self._around.client

        def show(result: dict[str, Any]) -> None:
            self._listed = [row["id"] for row in result["sessions"]]
            for n, row in enumerate(result["sessions"], 1):
                mark = "*" if row["id"] == self._session else " "
                self._say(f"{mark}{n:2}  {row['turns']:3} turns  {row['title'] or '(no title)'}")
            if not self._listed:
                self._say("There is none yet.")

        self._work(lambda: client.call("session.list", limit=20), show)

    def _resume(self, rest: str) -> None:
        if not (rest.isascii() and rest.isdigit() and 0 < int(rest) <= len(self._listed)):
            self._say("/resume N: a number of the list that /sessions shows.")
            return
        session, client = self._listed[int(rest) - 1], self._around.client
        self._work(
            lambda: client.call("session.resume", session=session), lambda _: self._go(session)
        )

    def _go(self, session: str) -> None:
        self._session, self._turns = session, 0
        self._say("Going on there." if session else "A new conversation.")

    def _approvals(self, rest: str) -> None:
        for asked in self._asked.values():
            self._say(f"{asked['tool']} ({asked['risk']}): {asked['summary']}")
        if not self._asked:
            self._say("Nothing waits.")

    def _send(self, text: str) -> None:
        client = self._around.client
        self._turns += 1

        def failed() -> None:
            self._turns -= 1

        def opened(result: dict[str, Any]) -> None:
            # known before the first event of it comes
            session = self._session = self._session or str(result["session"])
            message = secrets.token_hex(8)
            self._mine.add(message)
            body = {"session": session, "text": text, "mode": "queue", "message": message}
            say = lambda: client.call("turn.send", **body, channel="console")  # noqa: E731
            self._work(say, failed=failed)

        if self._session:
            opened({})
        else:
            self._work(lambda: client.call("session.create"), opened, failed)

    def _answer(self, choice: str) -> None:
        asked, client = self._asked_now(), self._around.client
        if asked is None:
            return
        if choice == "allow_always" and not asked.get("always"):
            self._say('This can only be allowed once: type "allow" or "deny".')
            return
        request = asked["request"]
        self._asked.pop(request, None)
        self._work(
            lambda: client.call(
                "approval.respond", request=request, choice=choice, by="console", via="typed"
            )
        )

    def _asked_now(self) -> dict[str, Any] | None:
        """The oldest open approval, of any session: whoever types here is the person."""
        return next(iter(self._asked.values()), None)

    def _work(
        self,
        call: Callable[[], dict[str, Any]],
        done: Callable[[dict[str, Any]], None] = lambda result: None,
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Call exod in a thread; `done` takes its result, in the loop, unless it was locked meanwhile."""
        opened = self._salt, id(self._asked)

        def work() -> Callable[[], None]:
            try:
                result, why = call(), ""
            except ExoError as error:
                result, why = {}, str(error)

            def report() -> None:
                if self._locked or opened != (self._salt, id(self._asked)):
                    return
                if why:
                    failed()
                    self._say(why)
                else:
                    done(result)
                self._ask()

            return report

        self._around.spawn(work)

    # ---- what happens ----------------------------------------------------------------------------

    def _event(self, event: dict[str, Any]) -> None:
        kind, body, session = event["type"], event["body"], event["session"]
        if kind == "approval.requested":
            self._asked[body["request"]] = body
        elif kind == "approval.resolved":
            self._asked.pop(body["request"], None)
        if 0 < event["seq"] <= self._quiet:
            return
        if kind == "fault":
            self._turns = 0  # exod is away: what ran there does not go on
            self._say(str(body["message"]))
        elif kind == "notice" and (
            session == self._session or body.get("code") in ("timer", "reminder")
        ):
            self._say(str(body["text"]))
        elif session and session == self._session:
            self._talk(kind, body)
        self._ask()

    def _talk(self, kind: str, body: dict[str, Any]) -> None:
        if kind == "turn.started":
            self._turns = max(1, self._turns)
            if not self._text:
                self._hide()
        elif kind == "message.delta":
            self._shown[body["message"]] = self._shown.get(body["message"], 0) + len(body["text"])
            self._stream(body["text"])
        elif kind == "message.completed":
            message = body["message"]
            if message["role"] == "assistant":
                self._stream(message["text"][self._shown.pop(message["id"], 0) :])
                self._line_end()
            elif message["role"] == "user" and message["id"] not in self._mine:
                self._say(f"> {message['text']}")
        elif kind == "tool.completed":
            self._say(
                f"({'done' if body['ok'] else 'failed'}: {body['text'][:60]})".replace("\n", " ")
            )
        elif kind == "question.asked":
            self._say(str(body["text"]))
        elif kind == "turn.completed":
            self._turns = max(0, self._turns - 1)
            self._line_end()
            if body["stop_reason"] not in ("end", "error"):
                self._say(f"(stopped: {body['stop_reason']})")

    # ---- the terminal ----------------------------------------------------------------------------

    def _ask(self) -> None:
        """Show the prompt, and what was typed ahead, unless an answer is being written; before that what it
        asks for."""
        asked = self._asked_now()
        if asked and not self._locked and asked["request"] not in self._told:
            self._told.add(asked["request"])
            always = ', "always"' if asked.get("always") else ""
            self._say(f"{asked['tool']} ({asked['risk']}) asks: {asked['summary']}")
            self._say(f'Type "allow"{always} or "deny".')
        wanted = "allow? " if asked else "" if self._turns else "> "
        if wanted and not self._locked and wanted != self._prompt:
            self._hide()
            self._line_end()
            self._prompt = wanted
            self._put(wanted + safe(self._text))

    def _hide(self) -> None:
        if self._prompt:
            self._put("\r\x1b[K")
        self._prompt = ""

    def _say(self, text: str) -> None:
        self._hide()
        self._line_end()
        self._put(f"{safe(text)}\r\n")

    def _stream(self, text: str) -> None:
        if text:
            self._hide()
            self._put(safe(text))
            self._midline = not text.endswith("\n")

    def _line_end(self) -> None:
        if self._midline:
            self._put("\r\n")
        self._midline = False

    def _echo(self, text: str) -> None:
        if self._out.size < BOUND:  # who types and does not read sees less of it
            self._put(text)

    def _put(self, text: str) -> None:
        self._out.put(text.encode("utf-8", "replace"))


def _width(char: str) -> int:
    """Columns of a character (Unicode TR11)."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
