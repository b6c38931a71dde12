"""What there is in a running exod, as its clients ask for it: models, tools, commands, tasks, skills, settings, memory. Owns
the answers alone; what they tell of is made and kept by the engine.

Invariant: nothing here starts a turn."""

from __future__ import annotations

from typing import Any

from exo.core.base.settings import BY_NAME, Settings
from exo.core.engine.sessions import Sessions
from exo.core.plugins.loader import Plugins
from exo.core.plugins.registry import Registry
from exo.core.plugins.slots import Schedule, Slots
from exo.core.protocol import schema
from exo.core.protocol.codec import refused
from exo.core.retrieve.provider import Provider
from exo.core.router.model import Model
from exo.core.toolbox.registry import Toolbox
from exo.core.toolbox.workers import call as call_plugin
from exo.core.toolbox.workers import within


class Offers:
    """The commands of the protocol that list, look up and set; a part of Engine."""

    sessions: Sessions
    plugins: Plugins
    tools: Toolbox
    _model: Model
    _settings: Settings
    _registry: Registry
    _slots: Slots
    _memory: Provider | None

    @property
    def _schedule(self) -> Schedule:
        found: Schedule = self._registry.slots.get("schedule") or Schedule()
        return found

    async def on_models_list(self, body: schema.ModelsList) -> schema.ModelsResult:
        return schema.ModelsResult(*await self._model.models())

    async def on_models_set(self, body: schema.ModelsSet) -> schema.Nothing:
        self._model.set_routes(body.role, body.routes)
        return schema.Nothing()

    async def on_tools_list(self, body: schema.ToolsList) -> schema.ToolsResult:
        await self.plugins.ready()
        sets = self.sessions.toolsets(body.session) if body.session else None
        return schema.ToolsResult([spec.row() for spec in self.tools.specs(sets)])

    async def on_command_list(self, body: schema.CommandList) -> schema.CommandsResult:
        """What command.run runs."""
        await self.plugins.ready()
        rows = []
        for name, command in sorted(self._registry.commands.items()):
            rows.append({"name": name, "description": command.description})
        return schema.CommandsResult(rows)

    async def on_command_run(self, body: schema.CommandRun) -> schema.AnyResult:
        await self.plugins.ready()
        command = self._registry.commands.get(body.name)
        if command is None:
            why = f"there are {', '.join(sorted(self._registry.commands))}"
            raise refused("unknown_command", f"run {body.name!r}", why)
        work = call_plugin(command.handler, body.args or {}, body.session)
        try:
            result = await within(self._settings.number("tool.timeout"), work)
        except TimeoutError as error:
            raise refused("timeout", f"run {body.name}", "it took too long") from error
        if not isinstance(result, dict):
            result = {"text": str(result or "")}
        return schema.AnyResult(result)

    async def _plugins_command(self, args: dict[str, Any], session: str | None) -> dict[str, Any]:
        return {"plugins": self.plugins.records()}

    async def on_tasks_list(self, body: schema.TasksList) -> schema.Rows:
        """Timers and reminders, soonest first: {id, kind, due (ms UTC), label, repeat, session}; then tasks."""
        await self.plugins.ready()
        return schema.Rows(self._schedule.rows())

    async def on_memory_query(self, body: schema.MemoryQuery) -> schema.AnyResult:
        """The person's memory: recall, remember, rule, why, forget, status."""
        await self.plugins.ready()  # what they keep is forgotten too
        if self._memory is None:
            raise refused("unsupported", "memory.query", "this exod has no home")
        return schema.AnyResult(await self._memory.query(body.verb, dict(body.args)))

    async def on_skills_list(self, body: schema.SkillsList) -> schema.Rows:
        await self.plugins.ready()
        skills = self._registry.skills.values()
        return schema.Rows([vars(skill) | {"path": str(skill.path)} for skill in skills])

    def tuned(self, session: str) -> Settings:
        """The settings as the artifacts of a session make them."""
        return self._settings.under(self._slots.held.get(session, {}))

    async def tuned_for(self, session: str) -> Settings:
        """The same, of a session whose turn runs or, "", of one that begins now."""
        await self.plugins.ready()
        if not session:
            await self._slots.artifacts("", self.sessions.as_of(""))
        return self.tuned(session)

    async def on_config_get(self, body: schema.ConfigGet) -> schema.ConfigResult:
        found, settings = {}, await self.tuned_for("")
        for key in body.keys if body.keys is not None else BY_NAME:
            value, origin = settings.origin(key)
            row = {"value": value, "origin": origin, "unit": BY_NAME[key].unit}
            found[key] = row | {"meaning": BY_NAME[key].meaning}
        return schema.ConfigResult(found)

    async def on_config_set(self, body: schema.ConfigSet) -> schema.ConfigSaved:
        self._settings.set(body.key, body.value)
        return schema.ConfigSaved()
