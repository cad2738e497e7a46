"""What a configuration says about the log: levels, and what no output may show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cogwork.config.placeholders import environment_in
from cogwork.config.positions import Json, Pointer
from cogwork.config.schema import MachineConfig
from cogwork.config.secrets import is_masked
from cogwork.logs.rules import Rules


def rules_of(config: MachineConfig, provided: Mapping[str, str], *, debug: bool) -> Rules:
    """`provided`: which module each modular resource lives in, at any moment. `debug` is the option
    of the command line; the file may ask for it too."""
    resources = [*config.components, *config.services]
    return Rules(
        patterns=tuple((rule.pattern, rule.level) for rule in config.log),
        resources={
            str(each.full_name): each.log_configuration.level
            for each in resources
            if each.log_configuration is not None
        },
        jobs={
            job.name: job.log_configuration.level
            for job in config.jobs
            if job.log_configuration is not None
        },
        modules={module.name: module.log_level for module in config.modules},
        provided=provided,
        debug=debug or config.debug,
    )


def secret_values(value: Json, environment: Mapping[str, str]) -> frozenset[str]:
    """Every text in a place that is not shown, and what a placeholder there stands for."""
    return frozenset(_secrets(value, (), environment))


def _secrets(value: Json, at: Pointer, environment: Mapping[str, str]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _secrets(member, (*at, key), environment)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _secrets(member, (*at, index), environment)
    elif isinstance(value, str) and at and is_masked(at):
        yield value
        yield from (environment.get(name, "") for name in environment_in(value))
