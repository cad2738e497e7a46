"""Cache of a module's validation results: the dependencies of resources, before they are built."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from cogwork.core.backoff import RetryPolicy
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import ConfigRejected, Unavailable
from cogwork.graph.spec import Spec
from cogwork.modules.client import ModuleCallError, ValidationResult

Validate = Callable[[Spec], Awaitable[ValidationResult]]
"""A function that validates a configuration. It raises a CogworkError if the module rejects it."""

_REJECTED = "its module rejected the configuration"

_log = logging.getLogger("rdk.modmanager")


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    spec: Spec
    """The configuration that was validated."""
    outcome: ValidationResult | str
    """The result, or the reason why the configuration was rejected."""
    failures: int = 0
    due: bool = False
    """Whether the configuration must be validated again."""


class ValidationCache:
    """Validates each configuration of a resource once, and rejected ones repeatedly with
    back-off."""

    def __init__(
        self,
        validate: Validate,
        notify_changed: Callable[[], None],
        clock: Clock,
        retry: RetryPolicy,
    ) -> None:
        """Create an empty cache. `notify_changed` is called when the result of `get` has
        changed."""
        self._validate = validate
        self._notify_changed = notify_changed
        self._clock = clock
        self._retry = retry
        self._entries: dict[ResourceName, _CacheEntry] = {}
        self._validating: dict[ResourceName, asyncio.Task[None]] = {}
        self._retry_timers: set[asyncio.Task[None]] = set()
        self._closed = False

    def get(self, spec: Spec, *, lives: bool) -> ValidationResult | Unavailable:
        """Return the cached result, or start a validation and report the resource unavailable.

        `lives`: whether the resource exists, maybe with an earlier configuration. An existing
        resource keeps running, so return its earlier result: a changed configuration is validated
        when it is applied.
        """
        entry = self._entries.get(spec.name)
        if entry is None or (entry.spec is not spec and not lives):
            self._start_validation(spec)
            return Unavailable("its module is validating the configuration", is_temporary=True)
        if isinstance(entry.outcome, ValidationResult):
            return entry.outcome
        if entry.due:
            self._start_validation(spec)
        return Unavailable(entry.outcome)

    async def ensure_validated(self, spec: Spec) -> None:
        """Validate the configuration unless the cache has its result.

        Raise ConfigRejected, or ModuleCallError if the dependencies have changed.
        """
        entry = self._entries.get(spec.name)
        if entry is not None and entry.spec is spec:
            return
        try:
            result = await self._validate(spec)
        except CogworkError as error:
            why = f"{_REJECTED}: {error}"
            self._record_refusal(spec, why)
            raise ConfigRejected(why) from error
        self._entries[spec.name] = _CacheEntry(spec, result)
        if entry is None or entry.outcome != result:
            self._notify_changed()
            raise ModuleCallError(
                "ABORTED", "its dependencies changed with its attributes; retrying"
            )

    async def aclose(self) -> None:
        self._closed = True
        tasks = (*self._validating.values(), *self._retry_timers)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start_validation(self, spec: Spec) -> None:
        if spec.name not in self._validating and not self._closed:
            task = _create_task(self._run_validation(spec))
            self._validating[spec.name] = task
            task.add_done_callback(lambda _: self._on_validated(spec.name))

    async def _run_validation(self, spec: Spec) -> None:
        try:
            self._entries[spec.name] = _CacheEntry(spec, await self._validate(spec))
        except CogworkError as error:
            self._record_refusal(spec, f"{_REJECTED}: {error}")
        except Exception as error:
            _log.exception("failed to validate the configuration of %s", spec.name)
            self._record_refusal(spec, f"its module could not validate the configuration: {error}")

    def _record_refusal(self, spec: Spec, why: str) -> None:
        before = self._entries.get(spec.name)
        failures = before.failures + 1 if before is not None and before.spec is spec else 1
        entry = self._entries[spec.name] = _CacheEntry(spec, why, failures)
        delay = self._retry.delay(failures)
        task = _create_task(self._mark_due_later(entry, delay))
        self._retry_timers.add(task)
        task.add_done_callback(self._retry_timers.discard)

    async def _mark_due_later(self, entry: _CacheEntry, delay: float) -> None:
        """After a delay, mark an entry as due, so that the next call of `get` starts a
        validation."""
        await self._clock.sleep(delay)
        name = entry.spec.name
        if self._entries.get(name) is entry:
            self._entries[name] = replace(entry, due=True)
            self._notify_changed()

    def _on_validated(self, name: ResourceName) -> None:
        del self._validating[name]
        # Notify once for all results, so that one plan covers them.
        if not self._validating and not self._closed:
            self._notify_changed()


def _create_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)
