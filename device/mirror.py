"""The device's screen for others to look at: what the panel shows, over a Unix socket. Owns the socket and its
viewers; nothing is drawn for it, nothing is saved, and without a viewer a picture costs one comparison.

A viewer gets events of the protocol's shape with number 0, which the record does not have: `ui.panel` of kind
`screen`; `bits` is the picture, a bit a pixel, rows filled to bytes, packed by zlib and Base64."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
import zlib
from pathlib import Path

from exo.core.base.errors import storage_error
from exo.core.base.unix import bind
from PIL import Image

VIEWERS = 4


def event_of(image: Image.Image) -> bytes:
    """The picture as one line of JSON."""
    mono = image.convert("L").point(lambda value: 255 * (value > 127)).convert("1")
    bits = base64.b64encode(zlib.compress(mono.tobytes(), 6)).decode()
    data = {"width": mono.width, "height": mono.height, "bits": bits}
    body = {"panel": "device", "kind": "screen", "action": "show", "data": data}
    event = {"id": "", "seq": 0, "session": None, "type": "ui.panel", "ts": 0, "body": body}
    return json.dumps(event).encode() + b"\n"


class Mirror:
    """Serves the pictures that `show` is given, at `path` (0600, in a folder of 0700)."""

    def __init__(self, path: Path) -> None:
        """Raises StorageError."""
        self._path = path
        try:
            path.unlink(missing_ok=True)
            self._listener = bind(path)
            path.chmod(0o600)
        except OSError as error:
            raise storage_error(f"listen on {path}", error) from error
        self._viewers: list[socket.socket] = []
        self._lock = threading.Lock()
        self._last: Image.Image | None = None
        threading.Thread(target=self._serve, name="mirror", daemon=True).start()

    def show(self, image: Image.Image) -> None:
        """A picture that the panel shows now; it is not changed later."""
        with self._lock:
            self._last = image
            if self._viewers:
                self._send(event_of(image), self._viewers)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._path.unlink(missing_ok=True)
        with self._lock:
            for each in self._viewers:
                each.close()
            self._viewers.clear()

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            link.settimeout(0.2)
            with self._lock:
                if len(self._viewers) >= VIEWERS:
                    link.close()
                    continue
                self._viewers.append(link)
                if self._last is not None:
                    self._send(event_of(self._last), [link])

    def _send(self, line: bytes, to: list[socket.socket]) -> None:
        for link in list(to):
            try:
                link.sendall(line)
            except OSError:  # gone, or too slow: it comes again
                self._viewers.remove(link)
                link.close()
