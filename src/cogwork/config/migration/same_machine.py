"""Whether two configurations run the same machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cogwork.config.check.checker import CheckResult
from cogwork.config.schema.machine import MachineConfig, RemoteConfig

_NOT_RUN = ("components", "services", "schema_location", "tracing", "enable_web_profile")
"""The resources, which are compared as specs, and the sections that have no effect."""


def runs_the_same(before: CheckResult, after: CheckResult) -> bool:
    """Return whether the same resources run with the same settings, and the rest is the same.

    Resources that cannot run need not be kept.
    """
    return (
        before.is_refused is after.is_refused
        and _describe_resources(before) == _describe_resources(after)
        and _describe_sections(before.config) == _describe_sections(after.config)
    )


def _describe_resources(checked: CheckResult) -> Mapping[str, object]:
    configs = {
        config.full_name: config
        for config in (*checked.config.components, *checked.config.services)
    }
    return {
        # Compare texts, because Python considers 1 and true equal.
        str(spec.name): repr(
            (
                str(spec.model),
                spec.settings,
                spec.needs,
                spec.wants,
                configs[spec.name].frame,
                configs[spec.name].log_configuration,
            )
        )
        for spec in checked.specs
        if spec.fault is None and spec.name in configs
    }


def _describe_sections(config: MachineConfig) -> Mapping[str, object]:
    return {
        name: repr(_without_idle_parts(getattr(config, name)))
        for name in MachineConfig.model_fields
        if name not in _NOT_RUN
    }


def _without_idle_parts(section: Any) -> Any:
    if not isinstance(section, list):
        return section
    return [
        each.model_copy(update={"service_configs": []}) if isinstance(each, RemoteConfig) else each
        for each in section
    ]
