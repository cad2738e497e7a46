"""Warn about settings that have no effect, because this release does not support them yet."""

from __future__ import annotations

from collections.abc import Callable

from cogwork.config.check.diagnostic_collector import DiagnosticCollector
from cogwork.config.check.diagnostics import Effect
from cogwork.config.check.fix import Fix, FixKind
from cogwork.config.schema import codes
from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.schema.machine import MachineConfig, RemoteConfig, ResourceConfig, TracingConfig
from cogwork.config.text.positions import Pointer

_SECTIONS: dict[str, tuple[Callable[[MachineConfig], bool], str, str | None]] = {
    "cloud": (
        lambda config: _lacks_address(config.cloud),
        "the machine does not connect to a cloud, because app_address is missing; it uses only "
        "this file",
        "add the address of the cloud, such as https://fleet.example.org",
    ),
    "tracing": (lambda config: _traces(config.tracing), "this release does not trace calls", None),
    "enable_web_profile": (
        lambda config: config.enable_web_profile,
        "this release does not have a profiler",
        None,
    ),
}
"""For each section: a function that tests whether the section is used, the message, and a hint."""


def warn_unsupported_sections(config: MachineConfig, collector: DiagnosticCollector) -> None:
    for section, (asks, message, hint) in _SECTIONS.items():
        if asks(config):
            collector.add(
                codes.UNSUPPORTED,
                message,
                (section,),
                Effect.IGNORED,
                at_key=True,
                hint=hint,
                # Keep "cloud": its credentials are not in another place.
                fix=Fix(FixKind.REMOVE, (section,)) if section != "cloud" else None,
            )


def _lacks_address(cloud: CloudConfig | None) -> bool:
    return cloud is not None and not cloud.app_address and not cloud.signaling_address


def _traces(tracing: TracingConfig) -> bool:
    return tracing.enabled and bool(tracing.disk or tracing.console or tracing.otlpendpoint)


def warn_associated_configs(
    owner: ResourceConfig | RemoteConfig, at: Pointer, collector: DiagnosticCollector
) -> None:
    for index, associated in enumerate(owner.service_configs):
        collector.add(
            codes.UNSUPPORTED,
            "this release does not capture data"
            if associated.type.rpartition(":")[2] == "data_manager"
            else f'this release has no service for "{associated.type}"',
            (*at, "service_configs", index),
            Effect.IGNORED,
            fix=Fix(FixKind.REMOVE, (*at, "service_configs", index)),
        )
