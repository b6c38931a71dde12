"""Model files come whole or not at all: by pip from a wheel, by HTTP from a server on loopback."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import shutil
import threading
import time
import zipfile
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest
from exo.core.base.errors import ModelMissing, StorageError
from exo.models import fetch
from exo.models.catalog import TABLE, Catalog, CatalogError, ModelCorrupt

DATA = bytes(range(256)) * 20_000
HASH = hashlib.sha256(DATA).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves DATA with Range; `stop` cuts an answer short after that many bytes."""

    stop: int | None = None
    asked: list[str] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range", "")
        type(self).asked.append(wanted)
        start = int(wanted[6:-1]) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(DATA) - start))
        self.end_headers()
        self.wfile.write(DATA[start : self.stop])

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    Handler.stop, Handler.asked = None, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/data.bin"
    server.shutdown()
    server.server_close()


def catalog(tmp_path: Path, source: str, sha256: str = HASH, size: int = len(DATA)) -> Catalog:
    table = tmp_path / "models.toml"
    table.write_text(
        f"""[[model]]
name = "m"
roles = ["main"]
format = "gguf"
licence = "MIT"
ram_mb = 10
files = [{{ name = "data.bin", size_bytes = {size}, sha256 = "{sha256}", {source} }}]
"""
    )
    (tmp_path / "models").mkdir(exist_ok=True)
    return Catalog(tmp_path / "models", table)


def get(made: Catalog, trust: bool = False) -> list[Path]:
    return fetch.get(made, made.row("m"), lambda *_: None, trust)


def test_the_default_rows_are_whole_and_come_from_pypi_alone() -> None:
    rows = [row for row in Catalog(Path("/nowhere"), TABLE).rows if row.default]
    assert {role for row in rows for role in row.roles} == {
        "main", "aux", "embedding", "transcription", "activity", "speech",
    }  # fmt: skip
    for row in rows:
        assert all(f.pypi and len(f.sha256) == 64 and f.size_bytes for f in row.files), row.name


def test_a_download_that_stopped_goes_on_where_it_stopped(tmp_path: Path, url: str) -> None:
    made = catalog(tmp_path, f'url = "{url}"')
    Handler.stop = 2_000_000
    with pytest.raises(fetch.FetchError, match="goes on"):
        get(made)
    assert not (made.path(made.row("m")) / "data.bin").exists()
    Handler.stop = None
    assert [path.read_bytes() for path in get(made)] == [DATA]
    assert Handler.asked == ["", "bytes=2000000-"]
    assert get(made) == [] and len(Handler.asked) == 2  # and no network once it is here


def test_a_file_with_another_hash_never_gets_its_name(tmp_path: Path, url: str) -> None:
    made = catalog(tmp_path, f'url = "{url}"', sha256="0" * 64)
    with pytest.raises(ModelCorrupt, match="sha256"):
        get(made)
    assert list(made.path(made.row("m")).iterdir()) == []


def test_a_hash_that_no_one_knows_is_refused_unless_trusted(tmp_path: Path, url: str) -> None:
    made = catalog(tmp_path, f'url = "{url}"', sha256="", size=0)
    with pytest.raises(fetch.FetchError, match="--trust"):
        get(made)
    assert Handler.asked == []
    assert len(get(made, trust=True)) == 1
    made.require(made.row("m"))
    # from now on the hash that was learnt holds
    path = made.path(made.row("m")) / "data.bin"
    path.write_bytes(b"x" + DATA[1:])
    with pytest.raises(ModelCorrupt):
        made.require(made.row("m"))


def test_a_wheel_gives_only_its_member_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = tmp_path / "links"
    links.mkdir()
    with zipfile.ZipFile(links / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_model/data.bin", DATA)
        wheel.writestr("tiny_model/__init__.py", "raise SystemExit('nobody runs this')")
        wheel.writestr(
            "tiny_model-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        )
        wheel.writestr(
            "tiny_model-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("tiny_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    source = 'pypi = { package = "tiny-model", version = "1.0", member = "tiny_model/data.bin" }'
    made = catalog(tmp_path, source)
    assert [path.read_bytes() for path in get(made)] == [DATA]
    assert list((made.folder / ".cache").iterdir()) == []
    shutil.rmtree(links)
    assert get(made) == []  # offline, once it is here


def test_a_package_that_is_not_there_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    source = 'pypi = { package = "no-such-model", version = "1.0", member = "x" }'
    with pytest.raises(fetch.FetchError, match="get no-such-model 1.0.*try again"):
        get(catalog(tmp_path, source))


def test_a_full_disk_is_said_before_the_first_byte(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 1_000_000))
    with pytest.raises(StorageError, match="needs 25 MB .* 1 MB are free"):
        get(catalog(tmp_path, f'url = "{url}"'))
    assert Handler.asked == []


def test_missing_and_corrupt_files_are_named_with_the_command(tmp_path: Path, url: str) -> None:
    made = catalog(tmp_path, f'url = "{url}"')
    with pytest.raises(ModelMissing, match="data.bin.*exo models get m"):
        made.require(made.row("m"))
    (path,) = get(made)
    path.write_bytes(DATA[:-1])
    with pytest.raises(ModelCorrupt, match="data.bin has.*exo models get m"):
        made.require(made.row("m"))
    path.write_bytes(b"x" + DATA[1:])
    with pytest.raises(ModelCorrupt, match="wrong hash"):
        made.require(made.row("m"))
    assert [each.read_bytes() for each in get(made)] == [DATA]


def test_a_start_does_not_read_what_was_read_before(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = catalog(tmp_path, f'url = "{url}"')
    (path,) = get(made)
    monkeypatch.setattr("exo.models.catalog.sha256_of", lambda _: pytest.fail("read again"))
    made.require(made.row("m"))
    monkeypatch.undo()
    os.utime(path, (time.time(), time.time() + 5))  # touched: looked at again
    seen = []
    monkeypatch.setattr("exo.models.catalog.sha256_of", functools.partial(_note, seen))
    made.require(made.row("m"))
    assert seen == [path]


def _note(seen: list[Path], path: Path) -> str:
    seen.append(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_name_that_is_none_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CatalogError, match="exo models list"):
        Catalog(Path("/nowhere")).row("nothing")
    assert fetch.main(["nothing"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
