"""The front end of `exo chat` in a terminal, on prompt_toolkit: the prompt stays at the bottom while
text streams above it, so that one can type ahead, answer a question with a key, complete with Tab.

Whole lines are printed above the prompt and belong to the terminal's own scrollback; the line that is
being written is part of the prompt until it is whole."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import termios
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from exo.core.base.client import Client
from exo.tools.chat import Chat
from exo.tools.transcript import visible
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText, StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import StdoutProxy
from prompt_toolkit.utils import get_cwidth

_COLOURS = {"tool": "36", "notice": "33", "error": "31", "user": "1"}
_CHOICES = {"y": "allow", "n": "deny", "a": "allow_always"}


class PromptScreen:
    """One conversation in one terminal."""

    def __init__(self, history: Path) -> None:
        history.touch(0o600)
        self._history = FileHistory(str(history))
        self._partial = ""  # the line of the reply that is not whole yet
        self._proxy: StdoutProxy | None = None
        self._interrupted = False
        self._lock = threading.RLock()

    # ---- Out (called in any thread) --------------------------------------------------------------

    def text(self, piece: str) -> None:
        with self._lock:
            self._feed(piece)

    def _feed(self, piece: str) -> None:
        *lines, self._partial = (self._partial + piece).split("\n")
        for line in lines:
            self._write(line)
        while (cut := _wrap(self._partial, self._columns())) is not None:
            self._write(self._partial[:cut].rstrip())
            self._partial = self._partial[cut:].lstrip(" ")

    def line(self, text: str, kind: str) -> None:
        self.end()
        text = visible(text)
        if kind == "user":
            text = f"> {text}"
        if colour := _COLOURS.get(kind):
            text = "\n".join(f"\x1b[{colour}m{line}\x1b[0m" for line in text.split("\n"))
        self._write(text)

    def end(self) -> None:
        with self._lock:
            line, self._partial = self._partial, ""
            if line:
                self._write(line)

    def _write(self, text: str) -> None:
        assert self._proxy is not None
        self._proxy.write(text + "\n")
        self._proxy.flush()

    def _columns(self) -> int:
        return max(20, get_app().output.get_size().columns - 1)

    # ---- the loop --------------------------------------------------------------------------------

    def run(self, client: Client, session: str) -> int:
        """Returns the exit code."""
        with _ctrl_d_is_a_key(), StdoutProxy(sleep_between_writes=0.03, raw=True) as self._proxy:
            return asyncio.run(self._main(Chat(client, session, self)))

    async def _main(self, chat: Chat) -> int:
        loop = asyncio.get_running_loop()
        prompt: PromptSession[str] = PromptSession(
            message=lambda: self._prompt(chat),
            history=self._history,
            completer=_Complete(chat),
            complete_while_typing=True,
            key_bindings=self._keys(chat),
            bottom_toolbar=lambda: self._status(chat),
            erase_when_done=True,
            reserve_space_for_menu=4,
        )

        def take(event: dict[str, Any]) -> None:
            chat.transcript.take(event)
            if event["type"] == "turn.completed":
                self._interrupted = False
            if chat.fault is not None and prompt.app.is_running:
                prompt.app.exit(exception=EOFError)
            prompt.app.invalidate()

        def deliver(event: dict[str, Any]) -> None:
            with contextlib.suppress(RuntimeError):  # the person has left: the loop is closed
                loop.call_soon_threadsafe(take, event)

        def signalled() -> None:
            """Ctrl-C between two prompts, when the terminal makes a signal of it and no key."""
            if not self._stop(chat):
                chat.leaving = True
                if prompt.app.is_running:  # it prints just now: the key did not reach it
                    prompt.app.exit(exception=EOFError)

        loop.add_signal_handler(signal.SIGINT, signalled)
        chat.follow(deliver)
        jobs: set[asyncio.Task[str]] = set()
        pending = ""
        try:
            while not chat.leaving and chat.fault is None:
                await asyncio.to_thread(chat.prefill)
                try:
                    line = pending + await prompt.prompt_async(handle_sigint=False)
                except (EOFError, KeyboardInterrupt):
                    break
                pending = line[:-1] + "\n" if line.endswith("\\") else ""
                if pending or not line.strip():
                    continue
                self.line(line, "user")
                job = asyncio.create_task(asyncio.to_thread(chat.submit, line))
                jobs.add(job)
                job.add_done_callback(jobs.discard)
                if line.startswith("/"):
                    await job  # what comes next may depend on it
        finally:
            chat.close()
        if chat.fault is not None:
            self.line(str(chat.fault), "error")
            return 1
        return 0

    def _stop(self, chat: Chat) -> bool:
        """Interrupt the turn that runs, once; False when there is nothing to interrupt."""
        if chat.session not in chat.transcript.running or self._interrupted:
            return False
        self._interrupted = True
        asyncio.get_running_loop().run_in_executor(None, chat.interrupt)
        return True

    def _prompt(self, chat: Chat) -> StyleAndTextTuples:
        parts: StyleAndTextTuples = [("", f"{self._partial}\n")] if self._partial else []
        if asked := chat.transcript.approval():
            always = " [a]lways in this session" if asked.get("always") else ""
            what = visible(asked["summary"])
            parts.append(("ansiyellow bold", f"{what}\nallow? [y]es [n]o{always} "))
            return parts
        return [*parts, ("bold", "> ")]

    def _status(self, chat: Chat) -> FormattedText:
        transcript = chat.transcript
        state = "ready"
        if transcript.working:
            state = f"runs {transcript.working}"
        elif chat.session in transcript.running:
            state = "answers (Ctrl-C stops)"
        return FormattedText([("", f" {chat.session}  {state}  /help ")])

    def _keys(self, chat: Chat) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c")
        def stop(event: KeyPressEvent) -> None:
            if self._stop(chat):
                return
            if event.current_buffer.text:
                event.current_buffer.reset()
            else:
                event.app.exit(exception=EOFError)

        @keys.add("c-o")
        def output(event: KeyPressEvent) -> None:
            chat.submit("/output")

        asked = Condition(
            lambda: chat.transcript.approval() is not None and not get_app().current_buffer.text
        )
        for key, choice in _CHOICES.items():

            @keys.add(key, filter=asked)
            def answer(event: KeyPressEvent, choice: str = choice) -> None:
                asyncio.get_running_loop().run_in_executor(None, chat.answer, choice)

        return keys


@contextlib.contextmanager
def _ctrl_d_is_a_key() -> Iterator[None]:
    """While text is printed above the prompt the terminal is in line mode for a moment, and would take a
    Ctrl-D for itself: it would be lost."""
    if not sys.stdin.isatty():  # prompt_toolkit was given other input
        yield
        return
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    changed = [*before[:6], [*before[6]]]
    changed[6][termios.VEOF] = b"\0"  # _POSIX_VDISABLE
    termios.tcsetattr(handle, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


class _Complete(Completer):
    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        count, found = self._chat.complete(document.text_before_cursor)
        for each in found:
            about = self._chat.commands.get(each[1:], (None, ""))[1]
            yield Completion(each, -count, display_meta=about)


def _wrap(text: str, columns: int) -> int | None:
    """Where to break a line that is wider than the terminal; None when it fits."""
    width = 0
    for n, character in enumerate(text):
        width += get_cwidth(character)
        if width > columns:
            space = text.rfind(" ", 0, n)
            return space + 1 if space > 0 else n
    return None
