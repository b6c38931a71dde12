"""`exo serve`: Exo in the foreground."""

from __future__ import annotations

import argparse

from exo.core.base.home import Home
from exo.tools.supervisor import BY_NAME, run


def serve(options: argparse.Namespace) -> int:
    """Run every service of the table until Ctrl-C. Raises AlreadyRunning with the pid of another."""
    run(Home.find(options.home).make(), list(BY_NAME))
    return 0
