"""Dialogues that stand before everything else: what is to be allowed, and the PIN. Owns which key says yes: one
that nobody hits while writing."""

from __future__ import annotations

import json
from typing import Any

from exo.tools.transcript import visible
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

_BOX = """
{name} {{ align: center middle; }}
{name} > Vertical {{ width: 70; max-width: 90%; height: auto; max-height: 80%; border: thick {colour};
    background: $surface; padding: 1 2; }}
"""
RISKS = {"low": "green", "medium": "yellow", "high": "bold red"}


class Approval(ModalScreen[str]):
    """Asks for one approval; the answer is allow, allow_always, deny, or "" when somebody else was quicker."""

    CSS = _BOX.format(name="Approval", colour="$warning")
    BINDINGS = [
        Binding("ctrl+y", "answer('allow')", "allow"),
        Binding("ctrl+t", "answer('allow_always')", "always in this session"),
        Binding("escape", "answer('deny')", "deny"),
    ]

    def __init__(self, asked: dict[str, Any]) -> None:
        super().__init__()
        self._asked, self.request = asked, asked["request"]

    def compose(self) -> ComposeResult:
        asked = self._asked
        what = Text(f"{visible(asked['tool'])} asks\n\n", style="bold")
        what.append(f"{visible(asked['summary'])}\n\n", style="not bold")
        arguments = visible(json.dumps(asked["args"], ensure_ascii=False, indent=1))
        what.append(f"{arguments[:1500]}\n\n", style="not bold dim")
        what.append(f"risk: {asked['risk']}\n", style=RISKS.get(asked["risk"], ""))
        always = "   Ctrl-T always in this session" if asked.get("always") else ""
        what.append(f"\nCtrl-Y allow{always}   Esc deny", style="not bold")
        with Vertical():
            yield Static(what)

    def action_answer(self, choice: str) -> None:
        if choice != "allow_always" or self._asked.get("always"):
            self.dismiss(choice)


class PinDialog(ModalScreen[str]):
    """Asks for the PIN; "" gives up."""

    CSS = _BOX.format(name="PinDialog", colour="$primary")
    BINDINGS = [Binding("escape", "give_up", "give up")]

    def __init__(self, why: str) -> None:
        super().__init__()
        self._why = why

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._why))
            yield Input(password=True, restrict=r"[0-9]*", max_length=8, type="text")

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self.dismiss(message.value)

    def action_give_up(self) -> None:
        self.dismiss("")
