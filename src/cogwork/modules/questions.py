"""What a module says that its resources need, asked ahead of building them."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.graph.limits import Limits, retry_delay
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Unavailable
from cogwork.graph.spec import Spec
from cogwork.modules.calls import Needed, Refused

Ask = Callable[[Spec], Awaitable[Needed]]
"""Raises a CogworkError with what the module has against it."""

_log = logging.getLogger("rdk.modmanager")


@dataclass(frozen=True, slots=True)
class _Answer:
    spec: Spec
    """What it was asked about."""
    outcome: Needed | str
    """Or why it is refused."""
    failures: int = 0
    due: bool = False
    """Whether to ask once more."""


class Questions:
    """Asked once for each configuration of a resource; what is refused, now and then again."""

    def __init__(self, ask: Ask, changed: Callable[[], None], clock: Clock, pauses: Limits) -> None:
        """`changed` is called when `answer` would say something else."""
        self._ask = ask
        self._changed = changed
        self._clock = clock
        self._pauses = pauses
        self._answers: dict[ResourceName, _Answer] = {}
        self._asking: dict[ResourceName, asyncio.Task[None]] = {}
        self._waking: set[asyncio.Task[None]] = set()
        self._over = False
        self._rng = random.Random()  # noqa: S311 - to keep many from being asked at once

    def answer(self, spec: Spec, *, lives: bool) -> Needed | Unavailable:
        """`lives`: whether the resource is there, perhaps as it was configured before: then the
        module is asked when it gets the change, and what runs stays meanwhile."""
        known = self._answers.get(spec.name)
        if known is None or (known.spec is not spec and not lives):
            self._find_out(spec)
            return Unavailable("its module is asked what it needs", soon=True)
        if isinstance(known.outcome, Needed):
            return known.outcome
        if known.due:
            self._find_out(spec)
        return Unavailable(known.outcome)

    async def make_sure(self, spec: Spec) -> None:
        """Attributes may have changed since it said what it needs. Raises Refused."""
        known = self._answers.get(spec.name)
        if known is not None and known.spec is spec:
            return
        needed = await self._ask(spec)
        self._answers[spec.name] = _Answer(spec, needed)
        if known is None or known.outcome != needed:
            self._changed()
            raise Refused("ABORTED", "what it needs has changed with its attributes; once more")

    async def aclose(self) -> None:
        self._over = True
        tasks = (*self._asking.values(), *self._waking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _find_out(self, spec: Spec) -> None:
        if spec.name not in self._asking and not self._over:
            task = _started(self._asked(spec))
            self._asking[spec.name] = task
            task.add_done_callback(lambda _: self._found_out(spec.name))

    async def _asked(self, spec: Spec) -> None:
        try:
            self._answers[spec.name] = _Answer(spec, await self._ask(spec))
        except CogworkError as error:
            self._refuse(spec, f"its module does not accept it: {error}")
        except Exception as error:
            _log.exception("%s could not be asked about", spec.name)
            self._refuse(spec, f"its module could not be asked about it: {error}")

    def _refuse(self, spec: Spec, why: str) -> None:
        before = self._answers.get(spec.name)
        failures = before.failures + 1 if before is not None and before.spec is spec else 1
        answer = self._answers[spec.name] = _Answer(spec, why, failures)
        delay = retry_delay(failures, self._pauses, self._rng)
        task = _started(self._come_due(answer, delay))
        self._waking.add(task)
        task.add_done_callback(self._waking.discard)

    async def _come_due(self, answer: _Answer, delay: float) -> None:
        """Whether anybody still wants the resource is for them to say, by asking."""
        await self._clock.sleep(delay)
        name = answer.spec.name
        if self._answers.get(name) is answer:
            self._answers[name] = replace(answer, due=True)
            self._changed()

    def _found_out(self, name: ResourceName) -> None:
        del self._asking[name]
        # One plan for many answers.
        if not self._asking and not self._over:
            self._changed()


def _started(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)
