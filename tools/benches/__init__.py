"""What `exo bench` can measure: one module a bench, one table of them."""

from __future__ import annotations
