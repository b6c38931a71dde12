"""One exo-models for the whole room, started as the product starts it, and one that is scripted."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exo.core.base.home import models_folder
from exo.models.catalog import Catalog

# importlib mode puts no folder of tests on the path; the kit's name is its own
sys.path.insert(0, str(Path(__file__).parent))
from modelkit import Server


@pytest.fixture(scope="session")
def files() -> Catalog:
    """The default model files, fetched when they are not here."""
    catalog = Catalog(models_folder())
    if not all(catalog.present(row) for row in catalog.rows if row.default):
        subprocess.run([sys.executable, "-m", "exo.models.fetch", "--defaults"], check=True)
    return catalog


@pytest.fixture(scope="session")
def server(files: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("models")).start()
    yield server
    if server.process:
        server.end()


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory, shared_processes: set[int]) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("fake"), "--fake").start()
    if server.process:
        shared_processes.add(server.process.pid)
    yield server
    if server.process:
        server.end()


@pytest.fixture
def another(files: Catalog, tmp_path: Path) -> Iterator[Any]:
    """Makes further servers, real or not, and ends what is left of them."""
    made: list[Server] = []

    def make(*args: str, home: str = "home", **environ: str) -> Server:
        made.append(Server(tmp_path / home, *args, **environ))
        return made[-1]

    yield make
    for each in made:
        if each.process:
            each.end(signal.SIGKILL)
