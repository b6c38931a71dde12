"""The bench of core (tests/core/conftest.py) for the commands that go through the engine."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_file = Path(__file__).parents[2] / "core" / "conftest.py"
_spec = importlib.util.spec_from_file_location("core_bench", _file)
assert _spec and _spec.loader
_bench = sys.modules["core_bench"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_bench)
run, gate = _bench.run, _bench.gate
