"""How a conversation is laid out for a model. Owns the families of chat templates (recognised in the
GGUF's own template), the rendering message by message, and the memory of which tokens a reply was.

Invariant: a message's tokens depend on that message and its place (first or not) alone, so that two
prompts that begin with the same messages begin with the same tokens. Only the layout itself makes
control tokens; text from people, tools and models never does."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from dataclasses import dataclass

from exo.core.base.errors import ModelError
from exo.models.llama import Llama
from exo.models.requests import Call, Message, Tool, compact

REMEMBERED = 512  # replies whose tokens are kept
CACHED = 2048  # messages whose tokens are kept
LARGEST = 8192  # tokens of a message that are kept: a text that fits no window is not met again
OPEN, CLOSE = "<tool_call>", "</tool_call>"

TOOLS = """# Tools

You may call a function to help with the user's request. Functions, one a line as JSON:
<tools>
{tools}
</tools>

To call one, answer with only this:
<tool_call>
{{"name": <function name>, "arguments": <JSON object>}}
</tool_call>"""


@dataclass(frozen=True)
class Family:
    """The marks around a message: `head` has {role}. `roles` renames; `system` False: there is no system
    role and its text stands before the first user message. `think` is put before every reply so that a
    reasoning model answers at once."""

    name: str
    head: str
    tail: str
    roles: tuple[tuple[str, str], ...] = (("tool", "user"),)
    system: bool = True
    think: str = ""
    greeting: str = ""  # the system message the template itself puts first when none is given


CHATML = Family("chatml", "<|im_start|>{role}\n", "<|im_end|>\n")
LLAMA3 = Family(
    "llama3",
    "<|start_header_id|>{role}<|end_header_id|>\n\n",
    "<|eot_id|>",
    (("tool", "ipython"),),
)
GEMMA = Family(
    "gemma",
    "<start_of_turn>{role}\n",
    "<end_of_turn>\n",
    (("assistant", "model"), ("tool", "user")),
    system=False,
)


def recognise(template: str) -> Family:
    """The family of a GGUF's template. Raises ModelError for one that is not known here."""
    for family, mark in (
        (CHATML, "<|im_start|>"),
        (LLAMA3, "<|start_header_id|>"),
        (GEMMA, "<start_of_turn>"),
    ):
        if mark in template:
            return Family(
                family.name,
                family.head,
                family.tail,
                family.roles,
                family.system,
                "<think>\n\n</think>\n\n" if "enable_thinking" in template else "",
                _greeting(template),
            )
    raise ModelError(
        "read the model's chat template",
        "it is of none of the families chatml, llama3, gemma",
        "choose another model from `exo models list`",
    )


def _greeting(template: str) -> str:
    found = re.search(r"<\|im_start\|>system\\?n?\n?([^{}<]+)<\|im_end\|>", template)
    return found.group(1).strip().removeprefix("\\n").strip() if found else ""


class Layout:
    """Renders messages to tokens for one model."""

    def __init__(self, llama: Llama) -> None:
        self._llama = llama
        self.family = recognise(llama.template)
        self._cache: OrderedDict[tuple[Message, bool], list[int]] = OrderedDict()
        self._replies: OrderedDict[str, list[int]] = OrderedDict()

    def prompt(
        self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()
    ) -> tuple[list[int], list[int]]:
        """(tokens, ends): `ends[i]` is how many tokens the first i messages take. Offered `tools` are
        described in the first system message."""
        tokens = list(self._llama.begin)
        ends = [len(tokens)]
        for index, message in enumerate(self._arranged(messages, tools)):
            tokens += self._message(message, index == 0)
            ends.append(len(tokens))
        # a system message that was added or merged shifts the count; the last end is always right
        shift = len(ends) - 1 - len(messages)
        return tokens, ends[shift:] if shift > 0 else ends + [ends[-1]] * -shift

    def opening(self, start: str = "") -> list[int]:
        """The tokens after which the model writes its reply; `start` are its first words."""
        head = self.family.head.format(role=self._role("assistant")) + self.family.think
        return self._llama.tokenize(head, True) + (
            self._llama.tokenize(start, False) if start else []
        )

    def aside(self, text: str) -> list[int]:
        """A system note, for the end of a prompt."""
        role = "system" if self.family.system else "user"
        return self._message(Message(role, text), False)

    def remember(self, text: str, tokens: list[int]) -> None:
        """The model wrote `text` as `tokens`: render it so again, for the cache holds just these. When
        `text` was cut, the longest run of tokens that spells it is kept."""
        text = text.strip()
        raw, spelt, size = text.encode("utf-8", "replace"), b"", 0
        while size < len(tokens) and len(spelt.strip()) < len(raw):
            spelt += self._llama.piece(tokens[size])
            size += 1
        if raw and spelt.strip() == raw:
            self._keep(text, tokens[:size])

    def remember_call(self, text: str, tokens: list[int], call: str) -> None:
        """The model wrote a call, shown to the client as `text`: what it left out, the end of `call`, is
        added. It is spelt a little differently, with the same meaning."""
        spelt = b"".join(map(self._llama.piece, tokens)).decode("utf-8", "replace").rstrip()
        place = 0
        while place < len(call) and not spelt.endswith(call[: len(call) - place]):
            place += 1
        rest = call[len(call) - place :] if place < len(call) else f"\n{CLOSE}"
        self._keep(text.strip(), [*tokens, *self._llama.tokenize(rest, False)])

    def _keep(self, text: str, tokens: list[int]) -> None:
        self._replies[text] = tokens
        self._replies.move_to_end(text)
        while len(self._replies) > REMEMBERED:
            self._replies.popitem(last=False)

    def _arranged(self, messages: tuple[Message, ...], tools: tuple[Tool, ...]) -> list[Message]:
        """The messages with tools, greeting and the missing system role worked in."""
        out = list(messages)
        if out[0].role != "system" and (tools or self.family.greeting):
            out.insert(0, Message("system", self.family.greeting))
        if tools:
            lines = "\n".join(_described(tool) for tool in tools)
            text = f"{out[0].text}\n\n{TOOLS.format(tools=lines)}".strip()
            out[0] = Message("system", text)
        if not self.family.system and out[0].role == "system":
            head, rest = out[0], out[1:]
            first = rest[0] if rest and rest[0].role == "user" else Message("user", "")
            merged = Message("user", f"{head.text}\n\n{first.text}".strip())
            out = [merged, *(rest[1:] if rest and rest[0].role == "user" else rest)]
        return out

    def _message(self, message: Message, first: bool) -> list[int]:
        if message.role == "assistant":
            return self._assistant(message)
        key = (message, first)
        tokens = self._cache.pop(key, None)  # two threads lay out: each step must hold by itself
        if tokens is None:
            text = message.text
            if message.role == "tool":
                text = f"<tool_response>\n{text}\n</tool_response>"
            tokens = [
                *self._llama.tokenize(self.family.head.format(role=self._role(message.role)), True),
                *self._llama.tokenize(text, False),
                *self._llama.tokenize(self.family.tail, True),
            ]
        if len(tokens) <= LARGEST:
            self._cache[key] = tokens
            while len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        return tokens

    def _assistant(self, message: Message) -> list[int]:
        text = "\n".join(part for part in (message.text, *map(call_text, message.calls)) if part)
        body = self._replies.get(text.strip())
        if body is None:
            body = self._llama.tokenize(text, False)
        return [*self.opening(), *body, *self._llama.tokenize(self.family.tail, True)]

    def _role(self, role: str) -> str:
        return dict(self.family.roles).get(role, role)


def call_text(call: Call) -> str:
    """A call as the model writes it."""
    name = json.dumps(call.name)
    return f'{OPEN}\n{{"name": {name}, "arguments": {call.arguments}}}\n{CLOSE}'


def _described(tool: Tool) -> str:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return compact({"type": "function", "function": function})
