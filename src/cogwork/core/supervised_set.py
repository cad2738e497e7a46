"""Supervises named items while they are configured: modules, processes, remotes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar


class Supervised(Protocol):
    config: Any

    def start(self) -> None: ...

    async def stop(self) -> None: ...


_Config = TypeVar("_Config")
_Item = TypeVar("_Item", bound=Supervised)


async def _stop_item(item: Supervised) -> None:
    await item.stop()


class SupervisedSet(Generic[_Config, _Item]):
    """Owns the items and the tasks that stop them."""

    def __init__(
        self,
        kind: str,
        make: Callable[[_Config], _Item],
        comparable: Callable[[_Config], object],
        log: logging.Logger,
        *,
        one_at_a_time: bool = True,
    ) -> None:
        """Create an empty set.

        `kind` names an item in the log: `module`. `comparable` returns the settings whose change
        replaces an item. If `one_at_a_time`, an item starts only after the previous item of the
        same name has stopped.
        """
        self._kind = kind
        self._make = make
        self._comparable = comparable
        self._log = log
        self._one_at_a_time = one_at_a_time
        self._items: dict[str, _Item] = {}
        self._stopping: dict[asyncio.Task[None], _Item] = {}
        self._last_stops: dict[str, asyncio.Task[None]] = {}

    def __iter__(self) -> Iterator[_Item]:
        return iter(self._items.values())

    @property
    def by_name(self) -> Mapping[str, _Item]:
        """The running items, in the order of the configuration."""
        return self._items

    @property
    def stopping(self) -> Mapping[asyncio.Task[None], _Item]:
        """The items that are being stopped, by the task that stops them."""
        return self._stopping

    def apply(self, wanted: Mapping[str, _Config]) -> None:
        """Start, stop and replace items to match the configuration; unchanged ones keep running."""
        for name, item in tuple(self._items.items()):
            if name not in wanted or self._is_changed(item, wanted[name]):
                self._stop(name, _stop_item)
        for name, config in wanted.items():
            if name in self._items:
                self._items[name].config = config
            else:
                self._add(name, self._make(config))
        self._items = {name: self._items[name] for name in wanted}

    def stop_all(self, stop: Callable[[_Item], Coroutine[Any, Any, None]] = _stop_item) -> None:
        """Start to stop all items."""
        for name in tuple(self._items):
            self._stop(name, stop)

    def _is_changed(self, item: _Item, config: _Config) -> bool:
        return self._comparable(config) != self._comparable(item.config)

    def _add(self, name: str, item: _Item) -> None:
        self._items[name] = item
        former = self._last_stops.get(name)
        if former is None:
            item.start()
        else:
            former.add_done_callback(lambda _: self._start_if_wanted(name, item))

    def _start_if_wanted(self, name: str, item: _Item) -> None:
        if self._items.get(name) is item:
            item.start()

    def _stop(self, name: str, stop: Callable[[_Item], Coroutine[Any, Any, None]]) -> None:
        item, former = self._items.pop(name), self._last_stops.get(name)

        async def stop_after_former() -> None:
            if former is not None:
                await asyncio.wait({former})
            await stop(item)

        task = asyncio.get_running_loop().create_task(stop_after_former())
        self._stopping[task] = item
        if self._one_at_a_time:
            self._last_stops[name] = task
        task.add_done_callback(lambda done: self._on_stopped(name, done))

    def _on_stopped(self, name: str, task: asyncio.Task[None]) -> None:
        del self._stopping[task]
        if self._last_stops.get(name) is task:
            del self._last_stops[name]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("%s %s could not be stopped: %s", self._kind, name, error)
