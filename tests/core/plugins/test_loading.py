"""Plugins from folders, files and packages; the broken ones, and the example of the README."""

from __future__ import annotations

import asyncio
import importlib
import re
from pathlib import Path
from typing import Any

import exo.core.plugins
import pytest
from exo.core.plugins.hooks import Hooks
from exo.core.plugins.loader import Plugins
from exo.core.plugins.registry import PluginContext, Registry
from exo.core.protocol.schema import Call
from exo.core.toolbox.registry import Context, Toolbox, ToolSpec

BUNDLED = ("agent", "assistant", "gate", "learning", "providers", "tasks", "workbench")
README = Path(exo.core.plugins.__file__).with_name("README.md")
MANIFEST = 'name = "{name}"\nversion = "1.0"\ndescription = "A plugin."\napi = 1\n'


def folder(root: Path, name: str, code: str, manifest: str = MANIFEST) -> Path:
    made = root / name
    made.mkdir(parents=True)
    (made / "plugin.toml").write_text(manifest.format(name=name))
    (made / "plugin.py").write_text(code)
    return made


def load(root: Path, off: set[str] | None = None) -> tuple[Registry, dict[str, dict[str, Any]]]:
    registry = Registry(Toolbox(), Hooks(0.5))
    plugins = Plugins(registry, root, {*BUNDLED, *(off or ())}, timeout=1.0)

    async def test() -> None:
        await asyncio.gather(plugins.ready(), plugins.ready())
        await plugins.ready()

    asyncio.run(test())
    rows = {row["name"]: row for row in plugins.records()}
    for name in BUNDLED:  # come with the same distribution
        assert rows.pop(name)["state"] == "off"
    return registry, rows


def use(registry: Registry, tool: str, **args: Any) -> str:
    context = Context("s", Path.cwd())
    return asyncio.run(registry.tools.run(Call("c", tool, args), context)).text


EVERYTHING = '''
from pathlib import Path
from exo.core.plugins import ToolSpec
from .helper import WORD

class Memory:
    def pack(self, session): return "pack"
    def tools(self): return [ToolSpec("look", "", {"type": "object"}, lambda context: "seen")]

def register(ctx):
    ctx.register_tool(ToolSpec("hello", "Greet.", {"type": "object"}, lambda context: WORD))
    ctx.register_action(add, risk="low")
    ctx.register_hook("post_tool_call", lambda result: None)
    ctx.register_command("hi", lambda args, session: "hi", "Say hi.")
    ctx.register_memory_provider(Memory())
    ctx.register_context_engine(object())
    ctx.register_channel("post", lambda to, text: None)
    ctx.register_skill("skill", "SKILL.md", "How to.")

def add(context, a: int, b: float = 1.5, *, words: list[str] = []) -> str:
    """Add two numbers."""
    return f"{a + b} in {context.session}"
'''


def test_a_folder_may_register_everything(tmp_path: Path) -> None:
    made = folder(tmp_path, "all", EVERYTHING)
    (made / "helper.py").write_text('WORD = "hello"\n')
    (made / "SKILL.md").write_text("text")
    registry, records = load(tmp_path)
    row = records["all"]
    assert row["state"] == "loaded" and row["version"] == "1.0" and not row["error"]
    assert len(row["registered"]) == 9
    assert use(registry, "hello") == "hello" and use(registry, "look") == "seen"
    assert use(registry, "add", a=1) == "2.5 in s"
    assert "is to be a integer" in use(registry, "add", a="1")
    assert set(registry.slots) == {"memory", "context"} and "hi" in registry.commands
    assert registry.channels.pick("")[0] == "post" and registry.skills["skill"].path.exists()
    spec = next(spec for spec in registry.tools.specs() if spec.name == "add")
    assert spec.description == "Add two numbers." and spec.parameters["required"] == ["a"]


BROKEN = {
    "raises": ("def register(ctx):\n    {good}\n    raise KeyError('x')\n", "KeyError"),
    "imports": ("import nothing_of_that_name\n", "No module named"),
    "syntax": ("def register(ctx:\n", "SyntaxError"),
    "exits": ("def register(ctx):\n    {good}\n    raise SystemExit(1)\n", "SystemExit"),
    "odd": ("class Odd(BaseException): pass\nraise Odd\n", "Odd"),
    "hangs": ("import time\ndef register(ctx):\n    {good}\n    time.sleep(3)\n", "did not finish"),
    "empty": ("x = 1\n", "neither register(ctx) nor"),
    "badhook": ("def register(ctx):\n    {good}\n    ctx.register_hook('x', print)\n", "hook 'x'"),
    "badtool": ("def register(ctx):\n    ctx.register_action(print)\n", ""),
    "badname": (
        "from exo.core.plugins import ToolSpec\ndef register(ctx):\n    {good}\n"
        "    ctx.register_tool(ToolSpec('a b', '', {{}}, print))\n",
        "letters, digits",
    ),
    "noschema": (
        "from exo.core.plugins import ToolSpec\ndef register(ctx):\n    {good}\n"
        "    ctx.register_tool(ToolSpec('a', '', {{'type': object}}, print))\n",
        "no JSON Schema",
    ),
    "twice": ("def register(ctx):\n    {good}\n    {good}\n", "twice"),
    "skill": (
        "def register(ctx):\n    {good}\n    ctx.register_skill('a', 'none.md')\n",
        "no file",
    ),
    "taken": (
        "def register(ctx):\n    {good}\n    ctx.register_channel('mine', print)\n",
        "taken by aa",
    ),
}
GOOD = "ctx.register_command('left-over', print)"


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_leaves_nothing_and_stops_nobody(tmp_path: Path, name: str) -> None:
    folder(tmp_path, "aa", "def register(ctx):\n    ctx.register_channel('mine', print)\n")
    code, says = BROKEN[name]
    folder(tmp_path, name, code.format(good=GOOD))
    folder(tmp_path, "zz", "def register(ctx):\n    ctx.register_command('z', print)\n")
    registry, records = load(tmp_path)
    assert records[name]["state"] == "failed" and says in records[name]["error"]
    assert records[name]["registered"] == [] and "left-over" not in registry.commands
    assert records["aa"]["state"] == records["zz"]["state"] == "loaded"


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ("", "name is to be a str"),
        ("name = [", "plugin.toml" if False else ""),
        (MANIFEST.replace("api = 1", "api = 2"), "written for api 2"),
        (MANIFEST.replace("{name}", "other"), "name is to be p"),
    ],
)
def test_a_manifest_that_does_not_fit_is_said(tmp_path: Path, manifest: str, says: str) -> None:
    folder(tmp_path, "p", "raise SystemExit('never run')\n", manifest)
    (tmp_path / "x.py").write_text("")
    _, records = load(tmp_path, {"x"})
    assert records["p"]["state"] == "failed" and says in records["p"]["error"]
    assert records["x"]["state"] == "off"


def test_a_slot_has_one_holder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder(tmp_path, name, "def register(ctx):\n    ctx.register_context_engine(object())\n")
    registry, records = load(tmp_path)
    assert registry.holder("slot", "context") == "a"
    assert "taken by a" in records["b"]["error"]


def test_one_that_is_off_is_not_even_imported(tmp_path: Path) -> None:
    folder(tmp_path, "p", "raise SystemExit\n")
    assert load(tmp_path, {"p"})[1]["p"]["state"] == "off"


def test_no_folder_is_no_plugins(tmp_path: Path) -> None:
    assert load(tmp_path / "none")[1] == {}


def test_an_installed_package_brings_a_plugin(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "exo_sample.py").write_text(
        "def register(ctx):\n    ctx.register_command('sample', print)\n"
    )
    facts = tmp_path / "exo_sample-2.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: exo-sample\nVersion: 2.0\n")
    (facts / "entry_points.txt").write_text(
        "[exo.plugins]\nsample = exo_sample\nother = exo_sample:register\nlost = no_module\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    registry, records = load(tmp_path / "none")
    assert records["lost"]["state"] == "failed" and "no_module" in records["lost"]["error"]
    loaded = [row for row in records.values() if row["state"] == "loaded"]
    assert len(loaded) == 1 and loaded[0]["version"] == "2.0"  # the second finds its name taken
    assert "sample" in registry.commands


def seated(root: Path, code: str, off: tuple[str, ...] = ("gate",)) -> tuple[Registry, Plugins]:
    """A registry with something built in to fall back on, and a plugin of this code."""
    folder(root, "mine", code)
    registry = Registry(Toolbox(), Hooks(0.5))
    plugins = Plugins(registry, root, set(off), timeout=1.0)
    plugins.fallback("memory", lambda ctx: ctx.register_memory_provider("built in"))
    return registry, plugins


TAKES = "def register(ctx):\n    ctx.register_memory_provider({0})\n"


def test_a_plugin_takes_the_place_of_what_is_built_in(tmp_path: Path) -> None:
    registry, plugins = seated(tmp_path, TAKES.format("str(ctx.home)"))
    asyncio.run(plugins.ready())
    assert registry.slots["memory"] == str(tmp_path.parent)
    assert registry.holder("slot", "memory") == "mine"
    rows = {row["name"]: row for row in plugins.records()}
    assert rows["memory"]["state"] == "off" and "taken by mine" in rows["memory"]["error"]


@pytest.mark.parametrize("code", [TAKES.format("nothing"), "import nothing_of_that_name\n"])
def test_one_that_does_not_load_leaves_the_built_in_one(tmp_path: Path, code: str) -> None:
    registry, plugins = seated(tmp_path, code)
    asyncio.run(plugins.ready())
    assert registry.slots["memory"] == "built in"


def test_loading_that_breaks_leaves_what_is_built_in(tmp_path: Path, monkeypatch: Any) -> None:
    registry, plugins = seated(tmp_path, TAKES.format("None"))

    async def broken(folder: Path) -> None:
        raise OSError("stderr is closed")

    async def test() -> None:
        monkeypatch.setattr(plugins, "_load_found", broken)
        await plugins.ready()
        assert plugins.loading is not None and plugins.loading.exception() is not None

    asyncio.run(test())
    assert registry.slots["memory"] == "built in"


def test_the_judge_of_this_distribution_is_found(tmp_path: Path) -> None:
    """Without it: the installation is older than the entry point; install again."""
    registry, plugins = seated(tmp_path, "def register(ctx): pass\n", off=())
    asyncio.run(plugins.ready())
    assert registry.holder("slot", "judge") == "gate"
    rows = {row["name"]: row for row in plugins.records()}
    assert rows["gate"]["registered"] == ["slot judge"]


def test_the_plugin_of_the_readme_runs(tmp_path: Path) -> None:
    [code] = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    (tmp_path / "greet.py").write_text(code)
    registry, records = load(tmp_path)
    assert records["greet"]["state"] == "loaded", records
    assert use(registry, "greet", name="Ada") == "Hello, Ada!"
    decision = asyncio.run(
        registry.hooks.decide(tool_name="bash", args={"command": "sudo reboot"}, session_id="s")
    )
    assert [each.action for each in decision] == ["block"]


def test_a_context_only_collects(tmp_path: Path) -> None:
    registry = Registry(Toolbox(), Hooks())
    ctx = PluginContext("p", tmp_path)
    ctx.register_tool(ToolSpec("t", "", {}, print))
    ctx.register_hook("pre_tool_call", print)
    assert registry.tools.specs() == [] and registry.hooks.of("p") == []
    other = PluginContext("q", tmp_path)
    other.register_tool(ToolSpec("t", "", {}, print))
    registry.admit(other)
    with pytest.raises(ValueError, match="taken by q"):
        registry.admit(ctx)
    assert registry.hooks.of("p") == []
