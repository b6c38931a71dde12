"""Is the companion of use on the default model: authored requests, and questions about an invented person
(README.md), put to the whole product, to the bare model with the same notes pasted in, and to the product
without its decisions (no rules, no answer from a belief, no abstaining; what is recalled goes to the model).

`python -m exo.tools.benches.useful dev` tells of every miss of that part; without a part it writes REPORT.md."""

from __future__ import annotations

import asyncio
import datetime
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.core.engine.engine import Engine
from exo.core.engine.reader import Past, Plan, Reader
from exo.core.engine.sessions import open_database
from exo.core.protocol import schema
from exo.core.router.model import Request, Text
from exo.core.router.router import Router
from exo.core.server.hub import Hub
from exo.tools.assistant import plugin as assistant
from exo.tools.assistant.offer import asks
from exo.tools.assistant.pick import pick
from exo.tools.assistant.rules import plan
from exo.tools.assistant.talk import INSTEAD
from exo.tools.assistant.tongue import NAMES, told
from exo.tools.bench import Figure, Say, machine
from exo.tools.benches.useful import near
from exo.tools.clock import FakeClock
from exo.tools.supervisor import Supervisor
from exo.tools.tasks import plugin as tasks

FOLDER = Path(__file__).parent
REPORT = FOLDER / "REPORT.md"
NOW = datetime.datetime(2026, 3, 4, 10, 20, tzinfo=datetime.UTC)
PARTS = ("dev", "held-out")
# another author's person, requests and questions, in the folder fresh: those of even number were looked at after the
# first run, of the others the figures alone
FRESH = ("fresh", "fresh-seen")
WAYS = {
    "product": "the whole product, each question in a session of its own",
    "no decisions": "the product without rules, answers from beliefs and abstaining: recall, then the model",
    "bare model": "the model alone, all 120 notes pasted into its prompt, told to say when they hold no answer",
}
PEERS = (
    2  # the peers are asked every second question: a machine of two cores is to be done in minutes
)
SILENCE = 900.0  # seconds: a busy machine reads 120 notes for minutes before the first word
WORDS = 60  # tokens of a reply, of every way: the answers are short
YES = {"en": "yes", "de": "ja", "es": "sí"}
ORDERED = ("command", "note")
SHY = re.compile(
    r"(?:do|does|did) ?n[o']t (?:know|say|mention|have|contain|specify|provide|state)|not (?:mentioned|stated|"
    r"specified|provided|in the notes|known)|no (?:information|mention|answer|record)|unknown|cannot (?:say|tell|"
    r"answer)|can't (?:say|tell|answer)|weiß (?:ich )?nicht|keine (?:information|angabe)|no (?:lo )?sé",
    re.I,
)
PASTED = (
    "You are a helpful assistant. Below are notes that the person has told you, oldest first. Answer the"
    " person's question from the notes in one short sentence. If the notes do not hold the answer, say"
    ' "I don\'t know".'
)


@dataclass
class Reply:
    """What one way said to one question: right, wrong, mixed or abstained; `near`: it said that nothing says just that, and
    the lines that it told as nearest hold the answer."""

    row: dict[str, Any]
    text: str
    seconds: float

    @property
    def verdict(self) -> str:
        low = self.text.lower()
        shy = any(told(name, "nothing") in self.text for name in NAMES) or SHY.search(low)
        if shy or self.text in INSTEAD:
            return "abstained"
        answers = [*self.row["answers"], *self.row.get("answers_also", ())]
        right = any(each in low for each in answers)
        if any(self.text.startswith(told(name, "nearest", text="").strip()) for name in NAMES):
            return "near" if right and self.row["answerable"] else "abstained"
        mixed = any(each in low for each in self.row["wrong"])
        return "right" if right and not mixed else "mixed" if right else "wrong"


@dataclass
class Results:
    """`requests`: (row, what was planned, whether that is right, whether it is after a yes)."""

    requests: list[tuple[dict[str, Any], str, bool, bool]]
    replies: dict[str, list[Reply]]


def rows(name: str, part: str = "") -> list[dict[str, Any]]:
    """The rows of a file, of a part; the notes of dev and held-out are the same."""
    folder = FOLDER / FRESH[0] if part in FRESH else FOLDER
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    for row in found if part in FRESH else ():
        if "part" in row:
            row["part"] = FRESH[int(row["id"].lstrip("xpq")) % 2 == 0]
    return [row for row in found if row.get("part", part) == part]


# ---- requests ------------------------------------------------------------------------------------------


async def planned(made: Engine, text: str) -> Plan:
    """What the product makes of a request before any language model: the rules, then the decision which tool."""
    found = plan(text, NOW)
    if found.calls or found.said or made._loop._decisions is None:
        return found
    read = await made._loop._decisions.read("bench", "bench", text)
    return (read.tool and pick(text, read.tool, read.sure, NOW)) or found


def judge(row: dict[str, Any], made: Plan) -> tuple[str, bool]:
    """(what is made of a request, whether that is what its label wants)."""
    shown = made.said if asks(made) else f"{made.calls}{made.said}" or made.kind
    if row["tool"] == "":
        # a courtesy is answered as talk; asking back is the beginning of an order
        return shown, not made.calls and (not made.said or made.kind == "chat")
    if asks(made):
        return made.said, False
    if row["tool"] == "recall":
        asked = made.calls[0][1].get("query", "") if made.calls else row["text"]
        # every question that is no command is put to recall before any model
        hit = made.calls[0][0] == "recall" if made.calls else made.kind == "question"
        return shown, hit and row["args"]["query"] in asked.lower()
    return shown, len(made.calls) == 1 and _same(row, *made.calls[0])


def follow(text: str, asked: Plan) -> Plan:
    """What comes of a yes after a question back."""
    return plan(YES[asked.language], NOW, Past(text, asked.calls, asked.said))


def _same(row: dict[str, Any], tool: str, args: dict[str, Any]) -> bool:
    want = dict(row["args"])
    if tool == "timers":
        return want.get("action") in ("left", "list")
    if tool == "cancel":
        return want.get("action") == "cancel" and args["what"] == row["tool"]
    if tool == "add_time":
        tool, args = "timer", args | {"action": "add"}
    if tool == "device":
        tool, args = _device(**args)
    if tool == "forget":
        args = {"text": args["id"]}
    if tool != row["tool"]:
        return False
    if tool == "reminder" and "when" in row:
        at = datetime.datetime.fromisoformat(args["at"]).replace(tzinfo=None)
        times = [row["when"], *row.get("when_also", [])]
        if f"{at:%Y-%m-%dT%H:%M}" not in times or args.get("repeat") != row.get("repeat"):
            return False
    for name, value in want.items():
        got = args.get(name)
        if isinstance(value, str) and name in ("text", "label", "query"):
            if value not in str(got).lower():
                return False
        elif got != value:
            return False
    return True


def _device(action: str, value: int | None = None, delta: int = 0) -> tuple[str, dict[str, Any]]:
    if action == "mute":
        return "volume", {"percent": 0 if value else 100}
    if action in ("volume", "brightness"):
        change = {"change": "up" if delta > 0 else "down"}
        return action, change if value is None else {"percent": value}
    return action, {}


class Undecided(Reader):
    """Takes everything for talk."""

    def plan(self, text: str, now: datetime.datetime, past: Past | None = None) -> Plan:
        return Plan("chat")


# ---- questions -----------------------------------------------------------------------------------------


def furnish(home: Home, clock: FakeClock, part: str) -> list[str]:
    """Tell the notes to a store, each at its date; returns them as lines."""
    told_ = rows("person", part)
    notes = [(f"{row['date']}T12:00", row["text"]) for row in told_]
    near.told(home, clock, notes, NOW).close()
    return [f"{row['date']}: {row['text']}" for row in told_]


@asynccontextmanager
async def engine(home: Home, clock: FakeClock) -> Any:
    """The real engine over that store, with the real models behind their socket."""
    settings = Settings.load(
        home.settings_file, {"EXO_TITLES_IDLE": "0", "EXO_REPLY_TOKENS": str(WORDS)}
    )
    database = open_database(home.sessions_db)
    hub = Hub(database, clock, 50_000)
    router = Router(home.state, SILENCE, clock)
    work = home.root / "work"
    work.mkdir(exist_ok=True)
    more: dict[str, Any] = {"notes": home.root / "notes", "work": work, "server": "bench"}
    made = Engine(database, hub, router, settings, clock, home=home, **more)
    made.plugins.builtin("tasks", partial(tasks.register, root=home.root))
    made.plugins.builtin("assistant", assistant.register)
    made.start()
    try:
        yield made, hub, router
    finally:
        await made.close()
        hub.close()
        await router.close()
        database.close()


async def _turn(made: Engine, hub: Hub, text: str) -> str:
    session = (await made.on_session_create(schema.SessionCreate())).session
    since = hub.seq
    sent = await made.on_turn_send(schema.TurnSend(session, text))
    async for event in hub.follow(since):
        if isinstance(event, tuple):
            body = json.loads(event[2])
            if body["type"] == "turn.completed" and body["body"]["turn"] == sent.turn:
                break
    answers = [m for m in made.sessions.messages(session) if m.role == "assistant" and not m.calls]
    return answers[-1].text if answers else ""


async def _bare(router: Router, notes: list[str], text: str) -> str:
    system = {"role": "system", "content": PASTED + "\n\n" + "\n".join(notes)}
    request = Request([system, {"role": "user", "content": text}], [], WORDS, "bare", 1)
    said = [event.text async for event in router.stream("main", request) if isinstance(event, Text)]
    return "".join(said)


async def ask(home: Home, say: Say, parts: tuple[str, ...], wanted: tuple[str, ...]) -> Results:
    """Put the requests of `parts` to the product, the questions to the `wanted` ways."""
    clock = FakeClock()
    notes = furnish(home, clock, parts[0])
    asked = [row for part in parts for row in rows("questions", part)]
    replies: dict[str, list[Reply]] = {way: [] for way in wanted}
    async with engine(home, clock) as (made, hub, router):

        async def product(text: str) -> str:
            return await _turn(made, hub, text)

        async def bare(text: str) -> str:
            return await _bare(router, notes, text)

        ways: dict[str, Callable[[str], Any]] = {"product": product, "no decisions": product}
        ways["bare model"] = bare
        reader = made._loop._reader
        for way in wanted:
            answer = ways[way]
            made._loop._reader = Undecided if way == "no decisions" else reader
            await answer("Hello.")  # load the model
            for row in asked if way == "product" else asked[::PEERS]:
                begun = time.monotonic()
                reply = await answer(row["text"])
                replies[way].append(Reply(row, reply, time.monotonic() - begun))
                say(f"{way}: {replies[way][-1].verdict}: {row['text']}")
        made._loop._reader = reader
        requests = []
        for row in (row for part in parts for row in rows("requests", part)):
            found = await planned(made, row["text"])
            agreed = follow(row["text"], found) if asks(found) else None
            asked_first = bool(agreed and judge(row, agreed)[1] and row["tool"])
            requests.append((row, *judge(row, found), asked_first))
    return Results(requests, replies)


def measure(
    say: Say, parts: tuple[str, ...] = PARTS, wanted: tuple[str, ...] = tuple(WAYS)
) -> Results:
    """Everything, in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="exo-bench-") as folder:
        home = Home(Path(folder)).make()
        with Supervisor(home, ["models"]) as services:
            services.wait_ready()
            return asyncio.run(ask(home, say, parts, wanted))


# ---- what came out -------------------------------------------------------------------------------------


def share(count: int, of: int) -> float:
    return count / of if of else 0.0


def figures(results: Results, part: str) -> dict[str, tuple[float, str]]:
    """name -> (value, aim) of a part."""
    mine = [each for each in results.requests if each[0]["part"] == part]
    orders = [(ok, late) for row, _, ok, late in mine if row["tool"] and row["kind"] in ORDERED]
    asks = [ok for row, _, ok, _ in mine if row["tool"] == "recall"]
    quiet = [ok for row, _, ok, _ in mine if not row["tool"]]
    right = sum(ok for ok, _ in orders)
    found: dict[str, tuple[float, str]] = {
        "commands right": (share(right, len(orders)), "0.97"),
        "commands right, or right after one yes": (
            share(sum(ok or late for ok, late in orders), len(orders)),
            "",
        ),
        "false triggers": (share(len(quiet) - sum(quiet), len(quiet)), "< 0.01"),
        "requests for recall right": (share(sum(asks), len(asks)), ""),
    }
    for way, replies in results.replies.items():
        ours = [each for each in replies if each.row["part"] == part]
        aims = way == "product"
        for known, names in (
            (True, ("right", "wrong", "mixed", "near", "abstained")),
            (False, ("wrong", "abstained")),
        ):
            of = [each for each in ours if each.row["answerable"] == known]
            kind = "answerable" if known else "unanswerable"
            for name in names:
                aim = {
                    ("right", True): "0.85",
                    ("wrong", True): "< 0.05",
                    ("abstained", False): "0.90",
                }
                value = share(sum(each.verdict == name for each in of), len(of))
                found[f"{way}: {kind} {name}"] = value, aim.get((name, known), "") if aims else ""
        seconds = sorted(each.seconds for each in ours) or [0.0]
        found[f"{way}: seconds, median"] = seconds[len(seconds) // 2], ""
    return found


def run(rounds: int, say: Say) -> Iterator[Figure]:
    """Both parts once; `rounds` changes nothing: the model is drawn with one seed."""
    results = measure(say)
    for part in PARTS:
        for name, (value, aim) in figures(results, part).items():
            yield Figure(f"{part}: {name}", value, "", aim)


def misses(results: Results) -> Iterator[str]:
    """Every request and question that may be looked at and did not come out right."""
    for row, shown, ok, _ in results.requests:
        if row["part"] in ("dev", FRESH[1]) and not ok:
            yield f"{row['id']} {row['text']} -> {shown} (wanted {row['tool']} {row['args']})"
    for way, replies in results.replies.items():
        for each in replies:
            good = "right" if each.row["answerable"] else "abstained"
            if each.row["part"] in ("dev", FRESH[1]) and each.verdict != good:
                yield f"{way}: {each.verdict}: {each.row['text']} -> {each.text[:150]!r}"


def report(results: Results) -> str:
    """REPORT.md."""
    both = {part: figures(results, part) for part in PARTS}
    lines = [
        f"| {name} | {both['dev'][name][0]:.3f} | {both['held-out'][name][0]:.3f} | {aim} |"
        for name, (_, aim) in both["dev"].items()
    ]
    ways = [f"- {way}: {what}" for way, what in WAYS.items()]
    head = f"{datetime.date.today()}, {machine()}; default models; `python -m exo.tools.benches.useful`"
    table = ["| figure | dev | held-out | aim |", "|---|---:|---:|---|", *lines]
    return "\n".join(["# How useful it is", "", head, "", *ways, "", *table, ""])


def main(arguments: list[str]) -> int:
    if "near" in arguments:
        print("\n".join(near.table()))
        return 0
    parts = tuple(each for each in PARTS if each in arguments) or PARTS
    parts = FRESH if FRESH[0] in arguments else parts
    wanted = tuple(way for way in WAYS if way in arguments) or tuple(WAYS)
    results = measure(lambda text: print(text, file=sys.stderr), parts, wanted)
    for part in parts:
        for name, (value, aim) in figures(results, part).items():
            print(f"{part:10} {name:45} {value:.3f} {aim}")
    print("\n".join(misses(results)))
    if parts == PARTS and wanted == tuple(WAYS):
        text = REPORT.read_text() if REPORT.exists() else ""
        _, mark, rest = text.partition("\n## ")
        REPORT.write_text(report(results) + (mark + rest if rest else ""))
    return 0
