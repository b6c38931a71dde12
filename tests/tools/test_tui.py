"""The client in panes, driven as a person drives it, on a real exod with scripted models."""

from __future__ import annotations

import asyncio
import base64
import time
import zlib

import pytest
from exo.board.fake_cable import FakeCable
from exo.core.base.client import Client
from exo.core.base.clock import SystemClock
from exo.device.mirror import Mirror, event_of
from exo.device.pin import Pin
from exo.tools.console import open_serial
from exo.tools.link import Link
from exo.tools.tui.app import ExoApp
from exo.tools.tui.dialogs import Approval, PinDialog
from exo.tools.tui.picture import draw
from exo.tools.tui.prompt import Prompt
from PIL import Image, ImageDraw
from textual.widgets import Input, Static

PATIENCE = 30.0
SIZE = (140, 36)


@pytest.fixture
def app(exo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hello.txt").write_text("one\n")
    client = Client(exo.exod_socket)
    session = client.call("session.create", cwd=str(tmp_path))["session"]
    return ExoApp(client, session, exo)


def shown(app) -> str:
    """The text of the transcript."""
    return "\n".join(str(each.render()) for each in app.query("#transcript Static").results(Static))


async def until(pilot, wanted):
    end = time.monotonic() + PATIENCE
    while not wanted():
        assert time.monotonic() < end, shown(pilot.app)
        await pilot.pause(0.05)


async def type_(pilot, text):
    pilot.app.query_one(Prompt).value = text
    await pilot.press("enter")


def drive(app, steps, size=SIZE):
    async def run():
        async with app.run_test(size=size) as pilot:
            await steps(pilot)

    asyncio.run(run())


def test_a_turn_streams_into_the_transcript(app):
    async def steps(pilot):
        await type_(pilot, "hullo there")
        await until(pilot, lambda: "You said: hullo there" in shown(app))
        assert "> hullo there" in shown(app)
        await until(pilot, lambda: "ready" in str(app.query_one("#status", Static).render()))

    drive(app, steps)


def test_the_three_prefixes(app):
    async def steps(pilot):
        await type_(pilot, "/sessions")
        await until(pilot, lambda: "turns" in shown(app))
        await type_(pilot, "!cat hello.txt")
        await until(pilot, lambda: "\none" in shown(app))
        await type_(pilot, "what is in @hello.txt")
        await until(pilot, lambda: "File hello.txt" in shown(app))

    drive(app, steps)


def test_tab_completes_commands_and_paths(app):
    async def steps(pilot):
        prompt = app.query_one(Prompt)
        prompt.value, prompt.cursor_position = "/sess", 5
        await pilot.press("tab")
        assert prompt.value == "/sessions "
        prompt.value, prompt.cursor_position = "see @hel", 8
        await pilot.press("tab")
        assert prompt.value == "see @hello.txt "

    drive(app, steps)


def test_the_palette_finds_commands(app):
    async def steps(pilot):
        await pilot.press("ctrl+p")
        await pilot.pause(0.2)
        await pilot.press(*"sessions")
        await pilot.pause(0.5)
        await pilot.press("enter")
        await until(pilot, lambda: "turns" in shown(app))

    drive(app, steps)


def test_an_approval_is_no_matter_of_one_letter(app, exo):
    async def steps(pilot):
        await type_(pilot, '!tool bash {"command": "git push origin main"}')
        app.chat.client.send(
            app.chat.session, '!tool bash {"command": "git push origin main"}', "queue"
        )
        await until(pilot, lambda: isinstance(app.screen, Approval))
        await pilot.press("y", "a", "space", "enter")
        assert isinstance(app.screen, Approval)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Approval))
        await until(pilot, lambda: "deny (by" in shown(app))

    drive(app, steps)


def test_one_answered_elsewhere_goes_away(app, exo):
    async def steps(pilot):
        client = Client(exo.exod_socket)
        client.send(app.chat.session, '!tool bash {"command": "git push origin main"}')
        await until(pilot, lambda: isinstance(app.screen, Approval))
        client.call("approval.respond", request=app.screen.request, choice="deny", via="button")
        await until(pilot, lambda: not isinstance(app.screen, Approval))

    drive(app, steps)


def test_ctrl_y_allows(app, exo):
    async def steps(pilot):
        client = Client(exo.exod_socket)
        client.send(app.chat.session, '!tool bash {"command": "git push origin main"}')
        await until(pilot, lambda: isinstance(app.screen, Approval))
        await pilot.press("ctrl+y")
        await until(pilot, lambda: "allow (by" in shown(app))

    drive(app, steps)


def test_ctrl_c_stops_and_then_leaves(app):
    async def steps(pilot):
        app.chat.client.send(app.chat.session, "!delay 0.2\n!words 400")
        await until(pilot, lambda: "word2" in shown(app))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: "stopped: interrupted" in shown(app))
        await until(pilot, lambda: "ready" in str(app.query_one("#status", Static).render()))
        await pilot.press("ctrl+c")
        await pilot.pause(0.2)
        assert app.return_code == 0 or not app.is_running

    drive(app, steps)


def picture() -> Image.Image:
    image = Image.new("1", (128, 64))
    ImageDraw.Draw(image).rectangle((0, 0, 127, 63), outline=1)
    ImageDraw.Draw(image).text((8, 24), "10:42", fill=1)
    return image


def test_the_devices_screen_is_mirrored(app, exo):
    mirror = Mirror(exo.state / "screen.sock")

    async def steps(pilot):
        mirror.show(picture())
        await until(pilot, lambda: "⡏⠉⠉" in str(app.query_one("#screen", Static).render()))
        await pilot.press("f2")
        assert not app.query_one("#screen").display and app.query_one("#side").display
        await pilot.press("f3")
        assert not app.query_one("#side").display

    try:
        drive(app, steps)
    finally:
        mirror.close()


def test_new_lines_of_logs_are_shown(app, exo):
    async def steps(pilot):
        with (exo.logs / "trial.log").open("a") as file:
            file.write("something odd \x1b[31m happened\n")
        logs = app.query_one("#logs")
        await until(pilot, lambda: any("something odd [31m" in str(s.text) for s in logs.lines))

    drive(app, steps)


def test_a_narrow_terminal_has_no_side_pane(app):
    async def steps(pilot):
        assert not app.query_one("#side").display
        await pilot.press("f2")
        assert app.query_one("#screen").display and not app.query_one("#logs").display

    drive(app, steps, (80, 24))


def test_the_pin_is_asked_in_a_dialogue(app):
    async def steps(pilot):
        given = asyncio.get_running_loop().run_in_executor(None, app.ask_pin, "PIN of the device")
        await until(pilot, lambda: isinstance(app.screen, PinDialog))
        app.screen.query_one(Input).focus()
        await pilot.press(*"24x68", "enter")
        assert await given == "2468"

    drive(app, steps)


def test_the_picture_is_what_the_panel_shows():
    body = eval_event(event_of(picture()))
    lines = draw(body["data"], 64)
    assert len(lines) == 16 and {len(line) for line in lines} == {64}
    assert lines[0][0] == "⡏" and lines[-1][-1] == "⣸"
    assert len(draw(body["data"], 32)[0]) == 32


def test_the_same_client_at_the_end_of_a_cable(exo, tmp_path, console_at):
    Pin(exo.state / "pin", SystemClock()).change("2468")
    with FakeCable(tmp_path) as cable, console_at(exo, cable.device):
        mirror = Mirror(exo.state / "screen.sock")
        mirror.show(picture())
        link = Link(lambda: open_serial(str(cable.host)), lambda why: "2468")
        link.start(30)
        app = ExoApp(link, link.call("session.create")["session"])

        async def steps(pilot):
            await type_(pilot, "hullo cable")
            await until(pilot, lambda: "You said: hullo cable" in shown(app))
            await until(pilot, lambda: "⡏⠉⠉" in str(app.query_one("#screen", Static).render()))
            with (exo.logs / "trial.log").open("a") as file:
                file.write("a line from afar\n")
            logs = app.query_one("#logs")
            await until(pilot, lambda: any("from afar" in str(s.text) for s in logs.lines))
            cable.pull()
            await until(pilot, lambda: "cut" in str(app.query_one("#status", Static).render()))
            cable.plug()
            await type_(pilot, "and again")
            await until(pilot, lambda: "You said: and again" in shown(app))
            assert shown(app).count("You said: hullo cable") == 1

        try:
            drive(app, steps)
        finally:
            link.close()
            mirror.close()


def eval_event(line: bytes):
    import json

    return json.loads(line)["body"]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"width": 8, "height": 8, "bits": "!"},
        {"width": 1e9, "height": 8, "bits": ""},
        {"width": 64, "height": 64, "bits": base64.b64encode(zlib.compress(b"x")).decode()},
    ],
)
def test_what_is_no_picture_is_none(data):
    assert draw(data, 40) == []
