"""Checks configurations in the cloud with the same rules as machines.

Organizations take turns, and no organization can occupy the last free worker, so that the edits of
one organization do not delay the edits of another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from cogwork.cloud.configuration.config_text import parse_config
from cogwork.config.check.diagnostics import Effect
from cogwork.config.check.diff import describe_outcome, diff
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, LocatedDiagnostic, load
from cogwork.config.schema.codes import Severity
from cogwork.config.source.config_editor import IsCancelled
from cogwork.config.text.positions import Pointer, format_pointer
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.workers import run_in_thread
from cogwork.drivers.builtin_models import builtin_models
from cogwork.resource.messages.config_message import to_message
from cogwork.resource.registry import Registry
from cogwork.wire.table.concurrency_limit import ConcurrencyLimits, SlotQueues

_TIMEOUT: Final = 10.0
"""Timeout of one check in seconds."""
_LIMITS: Final = ConcurrencyLimits(running=2, waiting=32, timeout=_TIMEOUT)
"""Concurrency limits by organization."""
_TARGET: Final = "the check of configurations"
_MAX_SHOWN: Final = 5
_CLOUD_SECTION: Final = "cloud"

T = TypeVar("T")


class EditRefused(CogworkError):
    """A machine would refuse the configuration."""

    status = "INVALID_ARGUMENT"


class CheckTooSlow(CogworkError):
    """The configuration could not be checked in time."""

    status = "DEADLINE_EXCEEDED"


class CheckedChange(NamedTuple):
    steps: str
    """The resources that the machine would build, change and close."""
    errors: list[str]
    """New errors in single resources and settings, which do not prevent the edit."""


class ConfigChecker:
    """Checks a few configurations at a time, each in a thread."""

    def __init__(self, clock: Clock) -> None:
        self._slots = SlotQueues(clock, _LIMITS)
        self._lock = threading.Lock()
        self._registry: Registry | None = None

    async def check(
        self, organization: str, read_text: Callable[[], str], *, is_another_make: bool = False
    ) -> None:
        """Check a configuration. Raise EditRefused, CheckTooSlow or TooManyCalls.

        `read_text` returns the configuration, and runs in the thread. `is_another_make` is True if
        the machine runs a server of another vendor.
        """

        def work(is_cancelled: IsCancelled) -> None:
            loaded = load(read_text(), self._make_context(), is_cancelled)
            check_loaded(loaded, is_another_make=is_another_make)

        await self._run(organization, work)

    async def plan(self, organization: str, before: str, after: str) -> CheckedChange:
        """Return the steps that a machine would take if its configuration changed.

        Raise CheckTooSlow or TooManyCalls.
        """

        def work(is_cancelled: IsCancelled) -> CheckedChange:
            context = self._make_context()
            old, new = (load(each, context, is_cancelled) for each in (before, after))
            change = None
            if not old.is_refused and not new.is_refused:
                change = diff(old.result, new.result, context.catalog)
            steps = describe_outcome(change, is_refused=new.is_refused)
            return CheckedChange(steps, _list_new_errors(old, new))

        return await self._run(organization, work)

    async def _run(self, organization: str, work: Callable[[IsCancelled], T]) -> T:
        is_cancelled = threading.Event()
        try:
            async with self._slots.hold(None, organization, _TARGET):
                return await run_in_thread("config check", _TIMEOUT, work, is_cancelled.is_set)
        except TimeoutError:
            raise CheckTooSlow(
                f"the configuration could not be checked within {_TIMEOUT:g} s; retry later, or "
                "make it smaller"
            ) from None
        finally:
            is_cancelled.set()

    def _make_context(self) -> LoadContext:
        """Return a context without files and environment variables, which only the machine has."""
        with self._lock:
            # Imported in the first check, because the models are slow to import.
            if self._registry is None:
                self._registry = Registry(builtin_models())
        return LoadContext(self._registry, Path("/"), {}, lambda _: True, lambda _: True)


def check_loaded(loaded: LoadedConfig, *, is_another_make: bool = False) -> None:
    """Raise EditRefused if machines would refuse the configuration, or cannot receive it.

    For a server of another vendor, whose rules are unknown, only check that the text can be parsed,
    and that a message can carry the configuration.
    """
    refused = [each for each in loaded.diagnostics if each.diagnostic.effect is Effect.REFUSED]
    if refused and not refused[0].diagnostic.location.pointer:
        raise EditRefused(_explain("the machine would refuse this configuration", refused))
    config = parse_config(loaded.text)
    refused = [each for each in refused if _is_decided(config, each.diagnostic.location.pointer)]
    if refused and not is_another_make:
        raise EditRefused(_explain("the machine would refuse this configuration", refused))
    try:
        to_message(config)
    except InvalidRequest as error:
        errors = [each for each in loaded.diagnostics if _is_error(each)]
        raise EditRefused(_explain(str(error), errors)) from None


def _is_decided(config: dict[str, Any], pointer: Pointer) -> bool:
    """Return whether the value at a pointer is final, so that its faults are certain.

    The section `cloud` is not final, because the cloud replaces it. Values with environment
    variables are not final, because the machine substitutes the variables.
    """
    if pointer[0] == _CLOUD_SECTION:
        return False
    value: Any = config
    for key in pointer:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            break  # the value is missing: look at the object that should have it
    return not _has_variable(value)


def _has_variable(value: Any) -> bool:
    match value:
        case str():
            return "${" in value
        case dict():
            return any(map(_has_variable, value.values()))
        case list():
            return any(map(_has_variable, value))
        case _:
            return False


def _list_new_errors(old: LoadedConfig, new: LoadedConfig) -> list[str]:
    """Return the errors that `new` would add to those that the machine already shows."""
    known = {(each.diagnostic.code, each.diagnostic.message) for each in old.diagnostics}
    config = {} if new.is_refused else parse_config(new.text)
    found = [
        each
        for each in new.diagnostics
        if _is_error(each)
        and each.diagnostic.effect is not Effect.REFUSED
        and (each.diagnostic.code, each.diagnostic.message) not in known
        and _is_decided(config, each.diagnostic.location.pointer)
    ]
    # Leave out excerpts: they would show merged text that no person has written.
    return [_describe(replace(each, excerpt=None)) for each in found[:_MAX_SHOWN]]


def _is_error(fault: LocatedDiagnostic) -> bool:
    return fault.diagnostic.code.severity is Severity.ERROR


def _explain(summary: str, faults: list[LocatedDiagnostic]) -> str:
    shown = "".join(f"\n{_describe(each)}" for each in faults[:_MAX_SHOWN])
    more = len(faults) - _MAX_SHOWN
    return f"{summary}{':' if shown else ''}{shown}" + (f"\nand {more} more" if more > 0 else "")


def _describe(fault: LocatedDiagnostic) -> str:
    found = fault.diagnostic
    place = format_pointer(found.location.pointer)
    if fault.excerpt is not None:
        line, column = fault.excerpt.position
        place = f"line {line}, column {column}" + (f" ({place})" if place else "")
    hint = f"; {found.hint}" if found.hint else ""
    return f"{place}: {found.message}{hint}"
