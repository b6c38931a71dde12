"""What a plugin imports."""

from exo.core.plugins.hooks import Decision, approve, block, hook
from exo.core.plugins.registry import PluginContext
from exo.core.toolbox.registry import Context, Output, ToolSpec

__all__ = ["Context", "Decision", "Output", "PluginContext", "ToolSpec", "approve", "block", "hook"]
