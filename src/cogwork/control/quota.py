"""Quotas that HTTP clients share, and responses that use a quota while they are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.responses import PlainTextResponse, Response

from cogwork.core.errors import CogworkError
from cogwork.core.limits.held_amounts import HeldAmounts
from cogwork.wire.transports.asgi import ABORT_KEY

OnEvict = Callable[[], None]
"""A function that ends the holder of an allocation. It returns immediately."""


_RETRY_AFTER = "1"


class Overloaded(CogworkError):
    """A limit is reached. The message names the limit and what to do."""

    status = "RESOURCE_EXHAUSTED"


@dataclass(eq=False, slots=True)
class _Allocation:
    address: str
    amount: int
    on_evict: OnEvict | None


class Quota:
    """A limited amount, in total and per client address."""

    def __init__(self, what: str, total: int, per_address: int) -> None:
        """Create an unused quota. `what` names the limited items in error messages."""
        self._what = what
        self._total = total
        self._per_address = per_address
        self._allocations: dict[_Allocation, None] = {}
        """Allocations, oldest first."""
        self.held = HeldAmounts()

    @contextmanager
    def hold(
        self, address: str, amount: int = 1, on_evict: OnEvict | None = None
    ) -> Iterator[None]:
        """Hold an amount, and evict older allocations if necessary.

        Raise Overloaded if too little is left and the oldest allocation cannot be evicted. An
        amount that exceeds the quota is granted if nothing else is held.
        """
        self._make_room(address, amount)
        allocation = _Allocation(address, amount, on_evict)
        self._allocations[allocation] = None
        self.held.hold(address, amount)
        try:
            yield
        finally:
            self._release(allocation)

    def _make_room(self, address: str, amount: int) -> None:
        while (heaviest := self._find_heaviest_user(address, amount)) is not None:
            oldest = next((each for each in self._allocations if each.address == heaviest), None)
            if oldest is None or oldest.on_evict is None:
                raise Overloaded(f"too many {self._what} at once; try again later")
            self._release(oldest)
            oldest.on_evict()

    def _find_heaviest_user(self, address: str, amount: int) -> str | None:
        """Return the address that must release an allocation; None if the amount is available."""
        held, total = self.held.of(address), self.held.total
        if held and held + amount > self._per_address:
            return address
        if total and total + amount > self._total:
            return self.held.find_heaviest()
        return None

    def _release(self, allocation: _Allocation) -> None:
        if allocation not in self._allocations:
            return  # already evicted
        del self._allocations[allocation]
        self.held.release(allocation.address, allocation.amount)


class MeteredResponse:
    """A response that uses a quota until its last byte is sent."""

    def __init__(
        self, response: Response, quota: Quota, amount: int = 1, *, evictable: bool = False
    ) -> None:
        """Wrap a response. `evictable`: whether its connection may be closed if another response
        needs the quota."""
        self._response = response
        self._quota = quota
        self._amount = amount
        self._is_evictable = evictable

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        on_evict = scope.get("state", {}).get(ABORT_KEY) if self._is_evictable else None
        try:
            with self._quota.hold(scope["client"][0], self._amount, on_evict):
                await self._response(scope, receive, send)
        except Overloaded as error:
            response = PlainTextResponse(f"{error}\n", 503, {"Retry-After": _RETRY_AFTER})
            await response(scope, receive, send)
