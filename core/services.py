"""What runs, in which process: one table. Command lines only; no other room is imported. Who keeps it running is
systemd on a board, else tools/supervisor.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Service:
    """One row: `socket` in state/ answers when the service is ready."""

    name: str
    module: str
    socket: str


TABLE = (
    Service("exod", "exo.core.server.app", "exod.sock"),  # owns all state; the engine
    Service("models", "exo.models.app", "models.sock"),  # language, embedding, speech models
)
BY_NAME = {row.name: row for row in TABLE}
