"""The signed record: `Ledger` appends, reads, verifies, forgets and merges entries."""

from exo.core.ledger.entry import Draft, Entry
from exo.core.ledger.ledger import Ledger

__all__ = ["Draft", "Entry", "Ledger"]
