"""Bytes of a command in, bytes of its response out: one dispatcher behind every transport.

Invariant: every input gets one typed response; an exception in the engine becomes `internal`."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from exo.core.base.errors import ExoError
from exo.core.protocol.codec import command_id, decode_command, failure, to_json
from exo.core.protocol.schema import Command, EventsSubscribe, Response, SubscribeResult
from exo.core.server.hub import Hub

Subscribe = Callable[[EventsSubscribe], SubscribeResult]


class Engine(Protocol):
    """What the server needs of an engine."""

    async def handle(self, command: Command, body: Any, hub: Hub) -> Any:
        """Do what the command asks and return its result dataclass, soon; long work goes on in the
        background and reports by events. Raises ExoError."""


class Dispatcher:
    """Decodes, asks the engine, encodes."""

    def __init__(self, engine: Engine, hub: Hub) -> None:
        self._engine, self.hub = engine, hub

    async def respond(self, raw: bytes, subscribe: Subscribe | None = None) -> Response:
        """Return the Response to one raw command; never raises. `subscribe` answers
        events.subscribe where the transport can follow."""
        try:
            command, body = decode_command(raw)
            if subscribe is not None and isinstance(body, EventsSubscribe):
                result: Any = subscribe(body)
            else:
                result = await self._engine.handle(command, body, self.hub)
        except ExoError as error:
            return failure(command_id(raw), error.code, str(error))
        except Exception as error:  # noqa: BLE001 - a bug must not end the server
            traceback.print_exc(file=sys.stderr)
            return failure(command_id(raw), "internal", f"{type(error).__name__}: {error}")
        return Response(command.id, True, to_json(result))
