"""Emergency stop: stop moving resources while the event loop is stuck."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

import grpc

from cogwork.core.error_text import error_text
from cogwork.wire.messages.protobuf_encoding import encode_field_header

T = TypeVar("T")

MAX_THREADS = 64
_CALL_TIMEOUT = 1.0
"""Seconds to wait for the Stop call to another process."""


@runtime_checkable
class EmergencyStop(Protocol):
    """A resource that can be stopped while the event loop is stuck.

    The server's watchdog calls `emergency_stop` when the loop has been stuck for two seconds. If
    the loop recovers, `stop` is awaited as usual.
    """

    def emergency_stop(self) -> None:
        """Stop all motion immediately.

        The watchdog calls this method from another thread than the event loop's, while the loop
        may be inside another method of the same resource. The method must not await anything or
        acquire a lock that the loop may hold, and must return within a fraction of a second. It
        may be called more than once.
        """


class StopFailed(RuntimeError):
    """A moving resource did not stop."""


class NeedsLoop(RuntimeError):
    """A coroutine cannot complete without the event loop."""


def run_without_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, such as one that sets a pin of this computer. Raise
    NeedsLoop if it suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise NeedsLoop("stopping requires the event loop, which is stuck")


def call_stop(target: str, service: str, name: str) -> None:
    """Call the Stop method of a resource in another process, from the current thread.

    The call uses a separate channel, because a grpc.aio channel needs the loop.
    """
    encoded = name.encode()
    with grpc.insecure_channel(target, (("grpc.use_local_subchannel_pool", 1),)) as channel:
        stop: Any = channel.unary_unary(f"/{service}/Stop")
        try:
            stop(encode_field_header(1, len(encoded)) + encoded, timeout=_CALL_TIMEOUT)
        except grpc.RpcError as error:
            status: Any = error
            raise StopFailed(f"Stop failed with {status.code().name}: {status.details()}") from None


def stop_all(stops: Mapping[str, Callable[[], None]], within: float) -> dict[str, str]:
    """Call all functions concurrently, each in its own thread.

    Return the names of the functions that failed or timed out, each with the reason.
    """
    failed = dict.fromkeys(stops, f"it did not stop within {within:g}s")
    slots = threading.Semaphore(MAX_THREADS)
    threads = [_start_thread(name, stop, failed, slots) for name, stop in stops.items()]
    deadline = time.monotonic() + within
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return dict(failed)


def _start_thread(
    name: str, stop: Callable[[], None], failed: dict[str, str], slots: threading.Semaphore
) -> threading.Thread:
    def run() -> None:
        with slots:
            try:
                stop()
            except Exception as error:
                failed[name] = error_text(error)
            else:
                failed.pop(name, None)

    thread = threading.Thread(target=run, name=f"stop {name}", daemon=True)
    thread.start()
    return thread
