"""Find patterns of the `log` section that match nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cogwork.config.check.diagnostic_collector import DiagnosticCollector
from cogwork.config.check.diagnostics import Effect
from cogwork.config.schema import codes
from cogwork.config.schema.machine import MachineConfig
from cogwork.config.text.positions import Pointer
from cogwork.graph.name import ResourceName
from cogwork.logs.logger_names import (
    JOB_LOGGER_PREFIX,
    LIBRARY_LOGGERS,
    MODULE_LOGGER_PREFIX,
    OUTPUT_LOGGERS,
    PROCESS_LOGGER_PREFIX,
    RESOURCE_LOGGER_PREFIX,
    SERVER_LOGGERS,
    matching_names,
)
from cogwork.logs.pattern import Pattern

MAX_COMPARISONS = 200_000
"""Maximum number of comparisons of a pattern with a name. If more are necessary, the patterns are
not checked, because that would take too long."""


def check_log_patterns(
    config: MachineConfig,
    resources: Iterable[ResourceName],
    pointers: Sequence[Pointer],
    collector: DiagnosticCollector,
) -> None:
    if not config.log:
        return
    loggers = _list_loggers(config, resources)
    names = dict.fromkeys(name for logger in loggers for name in matching_names(logger))
    if len(config.log) * len(names) > MAX_COMPARISONS:
        return
    modules = tuple(f"{MODULE_LOGGER_PREFIX}{module.name}." for module in config.modules)
    for rule, at in zip(config.log, pointers, strict=True):
        if not _may_match(rule.pattern, names, modules):
            collector.add(
                codes.UNMATCHED_PATTERN,
                f'the pattern "{rule.pattern.text}" matches no resource, module or logger of the '
                "server",
                (*at, "pattern"),
                Effect.IGNORED,
                hint=collector.suggest(rule.pattern.text, names),
            )


def _may_match(pattern: Pattern, names: Iterable[str], module_prefixes: tuple[str, ...]) -> bool:
    # A pattern for the loggers of a module may match: most of their names are unknown until they
    # log.
    return pattern.text.startswith(module_prefixes) or any(map(pattern.matches, names))


def _list_loggers(config: MachineConfig, resources: Iterable[ResourceName]) -> Iterator[str]:
    yield from SERVER_LOGGERS
    yield from LIBRARY_LOGGERS
    yield from (f"{RESOURCE_LOGGER_PREFIX}{name}" for name in resources)
    yield from (f"{JOB_LOGGER_PREFIX}{job.name}" for job in config.jobs)
    programs = [f"{MODULE_LOGGER_PREFIX}{module.name}" for module in config.modules]
    programs += [f"{PROCESS_LOGGER_PREFIX}{process.id}" for process in config.processes]
    for program in programs:
        yield program
        yield from (f"{program}.{output}" for output in OUTPUT_LOGGERS)
