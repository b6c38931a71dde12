"""The simulated handheld in a terminal: the panel in braille dots, the buttons as keys, a line to type
on. Plain ANSI through termios. Owns the terminal while it runs; the handheld runs in its own thread.

Invariant: the terminal is given back as it was, on every way out."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from exo.board.fake import FakeButtons, FakeGauge, FakeMicrophone, FakePanel, FakeSpeaker
from exo.board.panels import is_paper
from exo.board.pcaudio import PcMicrophone, PcSpeaker
from exo.board.pcm import write_wav
from exo.board.ports import Microphone, Speaker
from exo.board.profile import Profile
from exo.core.base.errors import BoardError, ExoError
from exo.core.base.home import Home
from exo.core.base.settings import Settings
from exo.device.display import unfit
from exo.device.events import Silence, Typed
from exo.device.keys import Key, Keys, LineEditor, width
from exo.device.launch import Services
from exo.device.power import Ending, powered
from exo.device.world import FAULTS, FINGERS, SimClock, World
from exo.device.world import check as check_words

if TYPE_CHECKING:
    from exo.board.screen import Box
    from exo.device.handheld import Handheld
    from PIL.Image import Image

ESCAPE = 0.05  # seconds after which a lone escape is the key
RELEASE = (
    0.12  # seconds after a key's last sign that its button comes up: a held key repeats sooner
)
LIT = "\x1b[97;40m"
CASE = "\x1b[90m"
PLAIN = "\x1b[0m"
LIGHTS = {  # the LED's colour at the top of the case
    "listening": "\x1b[91m",
    "thinking": "\x1b[94m",
    "speaking": "\x1b[92m",
    "error": "\x1b[91m",
    "low": "\x1b[91m",
}
# bit of each dot of a cell, by row and column (Unicode 15, Braille Patterns)
_BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_QUADRANTS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
FINE = 200  # pixels each way, from which on two of them are a dot
HELP = "/say FILE.wav speaks a recording; /press, /double, /chord and faults as in scripts"


def check(stdin: TextIO | None, stdout: TextIO | None) -> None:
    """Raise ExoError when there is no terminal to draw on; None is a stream that was closed."""
    if not (stdin and stdout and stdin.isatty() and stdout.isatty()):
        raise ExoError(
            "draw the handheld", "this is no terminal", "use --script FILE", code="bad_use"
        )
    encoding = (stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        raise ExoError(
            "draw the handheld",
            f"the terminal's encoding is {stdout.encoding}",
            "set LC_ALL=C.UTF-8, or use --script FILE",
            code="bad_use",
        )


def cells(image: Image, braille: bool) -> list[str]:
    """Return the rows of `image` (mode "1") as characters of 2 x 4 dots, or of 2 x 2 quadrants."""
    high = 4 if braille else 2
    stride = (image.width + 7) // 8
    raw = image.tobytes()
    rows = []
    for top in range(0, image.height, high):
        line = []
        for left in range(0, image.width, 2):
            value = 0
            for y in range(min(high, image.height - top)):
                bits = raw[(top + y) * stride + left // 8] >> (6 - left % 8) & 3
                if braille:
                    value |= (_BRAILLE[y][0] if bits & 2 else 0) | (
                        _BRAILLE[y][1] if bits & 1 else 0
                    )
                else:
                    value |= ((bits >> 1) | (bits & 1) << 1) << (2 * y)
            line.append(chr(0x2800 + value) if braille else _QUADRANTS[value])
        rows.append("".join(line))
    return rows


def tints(image: Image, columns: int, rows: int) -> list[bytes]:
    """The colour of each cell in 6 x 6 x 6 steps, as bright as its hue can be: a byte a cell, as xterm
    numbers them."""
    raw = image.resize((columns, rows), resample=4).tobytes()
    cells = []
    for r, g, b in zip(raw[::3], raw[1::3], raw[2::3], strict=True):
        top = max(r, g, b, 1)
        cells.append(16 + 36 * round(5 * r / top) + 6 * round(5 * g / top) + round(5 * b / top))
    return [bytes(cells[start : start + columns]) for start in range(0, len(cells), columns)]


def tinted(row: str, colours: bytes) -> str:
    """A row of cells with its colours."""
    parts, last = [], -1
    for cell, colour in zip(row, colours, strict=True):
        if colour != last and cell not in " \u2800":
            parts.append(f"\x1b[38;5;{colour}m")
            last = colour
        parts.append(cell)
    return "".join(parts)


def dots(image: Image) -> Image:
    """A copy in mode "1": of colours, the lighter half is lit."""
    if image.mode == "1":
        return image.copy()
    return image.convert("L").point(lambda value: 255 if value > 127 else 0, "1")


class TerminalPanel(FakePanel):
    """The panel, of which a terminal shows the dots; every change wakes the terminal's loop through a pipe."""

    def __init__(self, size: tuple[int, int], mode: str, wake: int, paper: bool = False) -> None:
        super().__init__(size, mode, paper)
        self._wake = wake
        self._look()

    def show(self, image: Image, box: Box | None = None) -> None:
        super().show(image, box)
        self._look()
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake, b".")

    def _look(self) -> None:
        """Make the dots: of a fine panel a dot stands for four pixels."""
        if self.mode == "1":
            self.frame, self.colours = unfit(self.image, self.paper), None
        else:
            self.colours = self.image.reduce(2) if min(self.size) >= FINE else self.image
            self.frame = dots(self.colours)


class SwitchedMicrophone:
    """The PC's microphone, and a WAV file's sound while `/say` plays one; `broken` says why neither."""

    def __init__(self, real: Microphone) -> None:
        self.real, self.fake = real, FakeMicrophone()
        self.saying, self.broken = False, ""

    def record(self, stop: threading.Event) -> Iterator[bytes]:
        for block in (self.fake if self.saying else self.real).record(stop):
            if self.broken:
                raise BoardError("record", self.broken, "plug the microphone in again")
            yield block


class SwitchedSpeaker:
    """The PC's speaker, unless `broken` says why not."""

    def __init__(self, real: Speaker) -> None:
        self.real, self.broken = real, ""

    @property
    def stops(self) -> int:
        return self.real.stops

    def play(self, pcm: bytes, rate: int, since: int | None = None) -> None:
        if self.broken:
            raise BoardError("play", self.broken, "plug the speaker in again")
        self.real.play(pcm, rate, since)

    def drain(self) -> None:
        self.real.drain()

    def stop(self) -> None:
        self.real.stop()


def run(
    home: Home,
    settings: Settings,
    board: Profile,
    audio_out: Path | None,
    trace: Callable[..., None],
    services: Services,
) -> int:
    """Show the handheld until the person quits; returns an exit code."""
    from exo.device.app import build, running
    from exo.device.simulated import beacon_of, names_of

    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    clock, gauge, beacon = SimClock(), FakeGauge(), beacon_of(board, settings)
    paper = is_paper(board.panel.driver)
    panel = TerminalPanel(board.panel.size, board.panel.mode, writing, paper)
    buttons = FakeButtons(names_of(board), clock.monotonic)
    microphone = SwitchedMicrophone(PcMicrophone(settings.text("audio.microphone")))
    recorder = FakeSpeaker() if audio_out else None
    speaker = SwitchedSpeaker(recorder or PcSpeaker(settings.text("audio.speaker")))
    handheld = build(
        *(home, settings, panel, buttons, microphone, speaker), True, trace, clock=clock
    )
    parts = panel, buttons, microphone, speaker, gauge, beacon, clock
    world = World(*parts, services.kill, time.sleep)
    texts = settings.text("power.off"), settings.text("power.restart")
    ending = Ending(home, handheld.post, False, *texts, services.switch)
    view = Terminal(handheld, panel, world, microphone, board, reading, writing)
    with (
        powered(handheld, settings, ending, gauge, beacon) as world.power,
        running(handheld),
        _borrowed(home.logs / "device.log"),
    ):
        view.loop()
    if audio_out and recorder:
        write_wav(audio_out, recorder.heard(), FakeSpeaker.RATE)
    return 0


@contextlib.contextmanager
def _borrowed(log: Path) -> Iterator[None]:
    """The terminal in raw mode on its other page; standard error goes to `log`, because sound
    libraries write there as they please."""
    before = termios.tcgetattr(0)
    errors = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        tty.setraw(0)
        _out("\x1b[?1049h\x1b[?2004h\x1b[2J")
        yield
    finally:
        _out(f"{PLAIN}\x1b[?2004l\x1b[?25h\x1b[?1049l")
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        os.dup2(errors, 2)
        os.close(errors)


def _out(text: str) -> None:
    raw = text.encode()
    while raw:
        raw = raw[os.write(1, raw) :]


class Terminal:
    """The loop between keys and picture."""

    def __init__(
        self,
        handheld: Handheld,
        panel: TerminalPanel,
        world: World,
        microphone: SwitchedMicrophone,
        board: Profile,
        reading: int,
        writing: int,
    ) -> None:
        """`reading` and `writing` are the ends of the pipe that wakes the loop."""
        self.handheld, self.panel, self.world = handheld, panel, world
        self.buttons = world.buttons
        self.microphone, self.board = microphone, board
        self._reading, self._writing = reading, writing
        self._keys, self._line = Keys(), LineEditor()
        self._by_key = {key: button.name for button in board.buttons for key in button.keys}
        self._message = HELP
        self._rows: list[str] = []  # as they stand in the terminal
        self._down: dict[str, float] = {}  # buttons that are down, and when they come up
        self._done = False
        self._braille = os.environ.get("TERM") != "linux"  # its console font has no dots

    def loop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._end)
        signal.signal(signal.SIGWINCH, self._resized)
        while not self._done and self.handheld.machine.state != "off":
            self._draw()
            wait = ESCAPE if self._keys.waiting or self._down else 1.0
            ready, _, _ = select.select([0, self._reading], [], [], wait)
            if self._reading in ready:
                os.read(self._reading, 4096)
            if 0 in ready:
                raw = os.read(0, 65536)
                if not raw:
                    return  # the terminal was closed
                self._handle(self._keys.feed(raw))
            elif not ready and self._keys.waiting:
                self._handle(self._keys.idle())
            self._release()

    def _end(self, *_: object) -> None:
        self._done = True
        self._wake()

    def _resized(self, *_: object) -> None:
        self._rows = []
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._writing, b".")

    # keys

    def _handle(self, keys: list[Key]) -> None:
        for key in keys:
            if key.name == "Quit":
                self._done = True
            elif key.name == "Redraw":
                self._rows = []
            elif key.name == "F3":
                self.handheld.post(Silence())
            elif key.name == "Enter" and self._line.text.strip():
                self._entered(self._line.take().strip())
            elif key.name == "Escape" and self._line.text:
                self._line.take()
            elif key.text and (key.name != "Space" or self._line.text):
                self._line.insert(key.text)
            elif self._line.text and self._line.key(key.name):
                pass
            elif name := self._by_key.get(key.name):
                self._press(name)

    def _press(self, name: str) -> None:
        """A terminal tells no release: talk stays down while it records, until it is pressed again; any
        other button as long as its key repeats."""
        if name == "talk" and self.handheld.machine.state == "listening":
            self._down.pop(name, None)
            self.buttons.release(name)
            return
        if name not in self._down:
            self.buttons.release(name)  # talk, when what it recorded has ended by itself
            self.buttons.hold(name)
        # talk has more: whether it records is known once the handheld has taken it
        self._down[name] = time.monotonic() + (3 * RELEASE if name == "talk" else RELEASE)

    def _release(self) -> None:
        """Let buttons up whose keys are not repeated any more."""
        now = time.monotonic()
        for name in [name for name, until in self._down.items() if until <= now]:
            del self._down[name]
            if name != "talk" or self.handheld.machine.state != "listening":
                self.buttons.release(name)

    def _entered(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "/say":
            self._say(rest.strip())
        elif word in ("/quit", "/q"):
            self._done = True
        elif word == "/help":
            self._message = HELP
        elif word.removeprefix("/") in (FINGERS | FAULTS) and word.startswith("/"):
            self._happen(line.removeprefix("/"))
        else:
            self.handheld.post(Typed(line))

    def _happen(self, line: str) -> None:
        """What fingers or misfortune do, in a thread: it may take its time."""
        try:
            check_words(line.split(), self.buttons.names)
        except ValueError as error:
            self._message = str(error)
            return

        def act() -> None:
            try:
                self.world.act(line.split())
            except ExoError as error:
                self._message = str(error)
            self._wake()

        self._message = line
        threading.Thread(target=act, name="happen", daemon=True).start()

    def _say(self, name: str) -> None:
        """Press the button, let the file sound, release: in a thread, as a person would meanwhile."""
        if not name:
            self._message = "write /say FILE.wav"
            return
        try:
            path = Path(name).expanduser()
        except RuntimeError:  # ~somebody whom this machine does not know
            path = Path(name)

        def speak() -> None:
            try:
                from exo.board.pcm import read_wav
                from exo.board.ports import MICROPHONE_RATE

                pcm = read_wav(path, MICROPHONE_RATE)
                self.microphone.saying = True
                self.buttons.hold("talk")
                time.sleep(self.microphone.fake.sound(pcm) + 0.1)
                self.buttons.release("talk")
                self._message = f"said {path.name}"
            except BoardError as error:
                self._message = str(error)
            finally:
                self.microphone.saying = False
                self._wake()

        self._message = f"saying {path.name}"
        threading.Thread(target=speak, name="say", daemon=True).start()

    # picture

    def _draw(self) -> None:
        """Write the rows that changed."""
        columns, lines = os.get_terminal_size(1)  # COLUMNS of a shell would not follow the window
        picture = cells(self.panel.frame, self._braille)
        wide = len(picture[0]) + 6
        if self.panel.colours and self._braille:
            colours = tints(self.panel.colours.convert("RGB"), len(picture[0]), len(picture))
            picture = [tinted(*each) for each in zip(picture, colours, strict=True)]
        rows, cursor = self._layout(picture, columns, lines, wide)
        out = []
        if len(rows) != len(self._rows):
            self._rows = [""] * len(rows)
            out.append(f"{PLAIN}\x1b[2J")
        for number, (new, old) in enumerate(zip(rows, self._rows, strict=True)):
            if new != old:
                out.append(f"\x1b[{number + 1};1H{new}{PLAIN}\x1b[K")
        self._rows = rows
        if cursor:
            out.append(f"\x1b[{cursor[0]};{cursor[1]}H\x1b[?25h")
        else:
            out.append("\x1b[?25l")
        _out("".join(out))

    def _layout(
        self, picture: list[str], columns: int, lines: int, wide: int
    ) -> tuple[list[str], tuple[int, int] | None]:
        """All rows and the cursor's (row, column), both from 1."""
        if columns < wide or lines < len(picture) + 5:
            text = (
                f"The terminal is {columns}x{lines}; the handheld needs {wide}x{len(picture) + 5}."
            )
            return [text[:columns], "Make it larger; Ctrl-C ends."[:columns]], None
        pad = " " * ((columns - wide) // 2)
        name, light = f" {self.board.title} ", LIGHTS.get(self.world.beacon.state, "")
        line = "─" * (wide - 3 - len(name) - 4 * bool(light))
        top = f"{pad}{CASE}╭─{name}{line}" + (f" {light}●{CASE} ─╮" if light else "╮")
        rows = [top]
        rows += [f"{pad}{CASE}│ {LIT} {row} {PLAIN}{CASE} │" for row in picture]
        rows.append(f"{pad}{CASE}╰{'─' * (wide - 2)}╯")
        rows.append(f"{pad}{_fit(self._legend(), wide)}")
        rows.append(f"{pad}{CASE}{_fit(self._message, wide)}")
        shown, place = self._line.window(wide - 3)
        rows.append(f"{pad}> {shown}")
        return rows, (len(rows), len(pad) + 3 + place)

    def _legend(self) -> str:
        """The buttons and the first keys that stand for each."""
        signs = {"Up": "↑", "Down": "↓", "Escape": "Esc", "Enter": "⏎"}
        parts = []
        for button in self.board.buttons:
            keys = [signs.get(key, key) for key in button.keys]
            shown = "/".join(keys[:1] + (["Space"] if "Space" in keys else []))
            parts.append(f"[{shown}] {button.label}")
        return "  ".join([*parts, "[^C] Quit"])


def _fit(text: str, columns: int) -> str:
    """Cut to `columns`; control characters of a path do no harm."""
    text = "".join(char for char in text[: 4 * columns] if char.isprintable())
    while width(text) > columns:
        text = text[:-1]
    return text
