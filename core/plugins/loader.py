"""Finds plugins and loads them: folders and single files in EXO_HOME/plugins, installed packages with an
entry point `exo.plugins`. Owns a record of each.

Invariant: whatever a plugin does while it loads (raise, exit, hang), the core goes on, nothing of it is
registered, and its record says why."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import re
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from exo.core.plugins.hooks import ACTIONS
from exo.core.plugins.registry import Core, PluginContext, Registry
from exo.core.toolbox.workers import call, in_thread, within

API = 1  # what this core offers plugins; a manifest names the one it was written for
GROUP = "exo.plugins"
_KEYS = {"name": str, "version": str, "description": str, "api": int}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")


@dataclass
class Record:
    """What became of one plugin; `state` is loaded, failed or off."""

    name: str
    source: str
    version: str = ""
    description: str = ""
    state: str = "failed"
    error: str = ""
    registered: list[str] = field(default_factory=list)
    faults: int = 0
    last_fault: str = ""


class Plugins:
    """The plugins of one home. `folder` None: only those that are built in."""

    def __init__(
        self, registry: Registry, folder: Path | None, off: set[str], timeout: float = 10.0
    ) -> None:
        self.registry = registry
        self.only: set[str] | None = None  # nothing else is loaded; None: all
        self.core: Core | None = None  # the exod that they will run in
        self._folder, self._off, self._timeout = folder, off, timeout
        self._records: dict[str, Record] = {}
        self._fallbacks: dict[str, Callable[[PluginContext], None]] = {}
        self.loading: asyncio.Task[None] | None = None

    def builtin(self, name: str, register: Callable[[PluginContext], None]) -> None:
        """Register what belongs to the core, through the same context. Raises what `register` does."""
        ctx = PluginContext(name, None, core=self.core)
        register(ctx)
        made = self.registry.admit(ctx)
        self._records[name] = Record(name, "built in", state="loaded", registered=made)

    def fallback(self, name: str, register: Callable[[PluginContext], None]) -> None:
        """Register what belongs to the core once all plugins are loaded, unless one took its place."""
        self._fallbacks[name] = register

    async def ready(self) -> None:
        """Load all plugins, once, beside whatever else is going on; every caller waits for the end."""
        if self.loading is None:
            self.loading = asyncio.create_task(self._load_all())
        if not self.loading.done():
            await asyncio.wait({self.loading})

    async def close(self) -> None:
        """Load no more, and let those that live end."""
        if self.loading is not None:
            self.loading.cancel()
        for _, stop in self.registry.lives:
            await self._lived(stop)

    async def _lived(self, function: Callable[..., Any]) -> None:
        try:
            await within(self._timeout, call(function))
        except Exception:  # noqa: BLE001 - one bad plugin never stops the core
            traceback.print_exc(file=sys.stderr)

    def records(self) -> list[dict[str, Any]]:
        """Every plugin with what it registered and how its hooks fare."""
        rows = []
        for record in self._records.values():
            hooks = self.registry.hooks.of(record.name)
            record.faults = sum(hook.faults for hook in hooks)
            record.last_fault = next((hook.last for hook in hooks if hook.last), "")
            rows.append(asdict(record))
        return rows

    async def _load_all(self) -> None:
        try:
            if self._folder is not None:
                await self._load_found(self._folder)
        finally:  # whatever happened: no seat is left empty
            for name, register in self._fallbacks.items():
                try:
                    self.builtin(name, register)
                except ValueError as error:
                    self._records[name] = Record(name, "built in", state="off", error=str(error))
        for start, _ in self.registry.lives:
            await self._lived(start)

    async def _load_found(self, folder: Path) -> None:
        try:
            found = await within(self._timeout, in_thread(lambda: list(_find(folder))))
        except Exception as error:  # noqa: BLE001 - no plugin is worth the core
            self._records["plugins"] = Record("plugins", str(folder), error=str(error))
            return
        for record, read in found:
            name = record.name
            if name in self._records:
                record.name = f"{name} ({record.source})"
                record.error = f"{self._records[name].source} has this name already"
            elif name in self._off or self.only is not None and name not in self.only:
                record.state = "off"
                record.error = "" if name in self._off else "it was not in the last start that held"
            else:
                await self._load(record, read)
            self._records[record.name] = record
            if record.error:
                print(f"plugin {name} is not loaded: {record.error}", file=sys.stderr)

    async def _load(self, record: Record, read: Callable[[], Any]) -> None:
        path = Path(record.source)
        home = self._folder and self._folder.parent
        own = path if path.is_dir() else path.parent
        ctx = PluginContext(record.name, own, home, self.core)
        try:
            await within(self._timeout, in_thread(lambda: _register(ctx, read())))
            record.registered = self.registry.admit(ctx)
            record.state = "loaded"
        except TimeoutError:
            record.error = f"it did not finish loading within {self._timeout:g} s"
        except Exception as error:  # noqa: BLE001 - one bad plugin never stops the core
            traceback.print_exc(file=sys.stderr)
            record.error = f"{type(error).__name__}: {error}"


def _find(folder: Path) -> Iterator[tuple[Record, Callable[[], Any]]]:
    """Every plugin there is, with what opens it: returns its module, or its function register."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.suffix == ".py" or (path / "plugin.toml").exists():
            record = Record(path.stem if path.is_file() else path.name, str(path))
            yield record, partial(_open, record)
    # about 20 ms and 2 MB: this runs in a thread, after exod has begun to answer
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        version = point.dist.version if point.dist is not None else ""
        yield Record(point.name, point.value, version), point.load


def _open(record: Record) -> Any:
    """Import a file, or the plugin.py of a folder whose manifest fits."""
    path = Path(record.source)
    if not _NAME.fullmatch(record.name):
        raise ValueError("use small letters, digits, _ and - for its name")
    if path.is_dir():
        _read_manifest(path / "plugin.toml", record)
        path /= "plugin.py"
    full = f"exo_plugin_{record.name.replace('-', '_')}"
    folder = [str(path.parent)]
    spec = importlib.util.spec_from_file_location(full, path, submodule_search_locations=folder)
    assert spec is not None and spec.loader is not None
    sys.modules[full] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(full, None)
        raise
    return module


def _read_manifest(path: Path, record: Record) -> None:
    data = tomllib.loads(path.read_text())
    for key, kind in _KEYS.items():
        if not isinstance(data.get(key), kind):
            raise ValueError(f"plugin.toml: {key} is to be a {kind.__name__}")
    if data["name"] != record.name:
        raise ValueError(f"plugin.toml: name is to be {record.name}")
    if data["api"] != API:
        raise ValueError(f"it is written for api {data['api']}, this Exo has {API}")
    record.version, record.description = data["version"], data["description"]


def _register(ctx: PluginContext, plugin: Any) -> None:
    """Call register(ctx) of a module (or the function itself), then take its functions marked @hook."""
    register = plugin if inspect.isfunction(plugin) else getattr(plugin, "register", None)
    every = vars(plugin).values()
    marked = [each for each in every if getattr(each, "__exo_hook__", False) is True]
    if register is None and not marked:
        raise ValueError("it has neither register(ctx) nor a function marked @hook")
    if register is not None:
        register(ctx)
    for function in marked:
        if function.__name__ == ACTIONS:
            function(ctx.register_action)
        else:
            ctx.register_hook(function.__name__, function)
