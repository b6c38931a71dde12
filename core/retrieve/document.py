"""What recall searches: one document a node, item or note, whatever it is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Trust = Literal["self", "verified", "third_party", "untrusted"]
TRUST: tuple[Trust, ...] = ("untrusted", "third_party", "verified", "self")  # worst first


@dataclass(frozen=True)
class Document:
    """`kind` is node, item or note. Dates are ISO strings, "" open; `ts` ms UTC of its capture; `links` are
    (type, id of the target)."""

    id: str
    kind: str
    title: str
    summary: str = ""
    load_when: str = ""
    tags: str = ""
    body: str = ""
    trust: str = "self"
    valid_from: str = ""
    valid_until: str = ""
    ts: int = 0
    url: str = ""
    domain: str = ""
    private: bool = False
    links: tuple[tuple[str, str], ...] = ()


class Embedder(Protocol):
    """Turns texts into unit vectors. `name` changes with the model, `width` is its numbers a vector."""

    @property
    def name(self) -> str: ...

    @property
    def width(self) -> int: ...

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Vectors in the order asked. Raises ModelError or ServiceError within a bounded time."""
        ...
