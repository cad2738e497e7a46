"""The log settings of a configuration: level rules, and secrets that no output may show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cogwork.config.schema.machine import MachineConfig
from cogwork.config.text.placeholders import find_environment_placeholders
from cogwork.config.text.positions import Json, Pointer
from cogwork.config.text.secrets import find_url_passwords, is_masked, is_named_secret
from cogwork.logs.rules import LevelRules
from cogwork.logs.secret_mask import MIN_SUBSTRING_LENGTH


def build_level_rules(
    config: MachineConfig, provided: Mapping[str, str], *, debug: bool
) -> LevelRules:
    """Build the level rules of a configuration.

    `provided` is a live mapping from modular resources to their modules. `debug` is the command
    line option; the file can enable debug mode as well.
    """
    resources = [*config.components, *config.services]
    return LevelRules(
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
        module_by_resource=provided,
        debug=debug or config.debug,
    )


def find_secret_values(value: Json, environment: Mapping[str, str]) -> frozenset[str]:
    """Return the secret values, the values of placeholders in them, and all URL passwords."""
    return frozenset(filter(None, _find_secrets(value, (), environment)))


def _find_secrets(value: Json, at: Pointer, environment: Mapping[str, str]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, member in value.items():
            if key.lower() == "keys" and isinstance(member, list):
                # In "keys", skip the IDs of API keys, which are not secret. A string in "keys" is
                # an ID if there is also a field with this name beside "keys".
                member = [each for each in member if not (isinstance(each, str) and each in value)]
            yield from _find_secrets(member, (*at, key), environment)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _find_secrets(member, (*at, index), environment)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield from _find_secrets_in_text(str(value), at, environment)


def _find_secrets_in_text(text: str, at: Pointer, environment: Mapping[str, str]) -> Iterator[str]:
    yield from find_url_passwords(text)
    if not is_masked(at):
        return
    for secret in (
        text,
        *(environment.get(name, "") for name in find_environment_placeholders(text)),
    ):
        if len(secret) >= MIN_SUBSTRING_LENGTH or is_named_secret(at):
            yield secret
