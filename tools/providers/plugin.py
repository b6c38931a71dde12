"""Ways to speak to models that core does not bring, as a plugin: the Anthropic Messages API. Core speaks the API that
most servers have, exo-models among them."""

from __future__ import annotations

from exo.core.plugins import PluginContext
from exo.core.router.router import TRANSPORTS


def register(ctx: PluginContext) -> None:
    """Add the transports; a provider of the catalog that names one works from then on."""
    from exo.tools.providers.anthropic import AnthropicTransport

    TRANSPORTS.setdefault("anthropic", AnthropicTransport)
