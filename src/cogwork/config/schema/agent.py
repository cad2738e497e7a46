"""The section `agent`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from cogwork.config.schema.fields import Section


class VersionControl(Section):
    """The sources of updates: a version such as `1.4.0`, a channel such as `stable`, or a URL."""

    agent: str = "stable"
    """The version, channel or URL of the agent."""
    server: Annotated[str, Field(alias="viam-server")] = "stable"
    """The version, channel or URL of the server."""


class AgentConfig(Section):
    """Settings of the agent, which keeps the machine up to date. The agent gets them from the
    cloud; without a cloud, the section has no effect."""

    version_control: VersionControl | None = None
    """The sources of updates. Defaults to the channel `stable` of the cloud."""
    advanced_settings: dict[str, JsonValue] = {}
    """Settings of the agent itself."""
    network_configuration: dict[str, JsonValue] = {}
    """The network configuration of the agent."""
    additional_networks: dict[str, JsonValue] = {}
    """Networks that the agent adds, by name."""
    system_configuration: dict[str, JsonValue] = {}
    """The settings of the operating system that the agent applies."""
