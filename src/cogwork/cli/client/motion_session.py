"""The session of a command that moves a resource. If the command crashes or loses its connection,
the machine stops the resource."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import grpc

from cogwork.cli.client.grpc_client import call_robot
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

SESSION_KEY = "viam-sid"
_HEARTBEATS_IN_WINDOW = 5
_POLL_INTERVAL = 0.1
_NO_SESSIONS = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.NOT_FOUND)


@contextlib.contextmanager
def open_session(channel: grpc.Channel) -> Iterator[tuple[tuple[str, str], ...]]:
    """Start a session, send heartbeats, and yield the metadata for calls of the session.

    The metadata is empty if the machine does not support sessions.
    """
    try:
        reply = call_robot(
            channel, "StartSession", robot.StartSessionRequest(), robot.StartSessionResponse
        )
    except grpc.RpcError as error:
        if error.code() not in _NO_SESSIONS:
            raise
        yield ()
        return
    interval = reply.heartbeat_window.ToMilliseconds() / 1000 / _HEARTBEATS_IN_WINDOW
    is_over = threading.Event()
    heartbeats = threading.Thread(
        target=_send_heartbeats, args=(channel, reply.id, interval, is_over), daemon=True
    )
    heartbeats.start()
    try:
        yield ((SESSION_KEY, reply.id),)
    finally:
        is_over.set()
        heartbeats.join()


def wait_while_moving(is_moving: Callable[[], bool], stop: Callable[[], object]) -> None:
    """Wait until the resource is at rest. Stop it if the command is interrupted."""
    try:
        while is_moving():
            time.sleep(_POLL_INTERVAL)
    except KeyboardInterrupt:
        stop()
        raise


def _send_heartbeats(
    channel: grpc.Channel, session_id: str, interval: float, is_over: threading.Event
) -> None:
    request = robot.SendSessionHeartbeatRequest(id=session_id)
    while not is_over.wait(interval):
        # A later heartbeat may succeed. If all fail, the machine stops the moving resources.
        with contextlib.suppress(grpc.RpcError):
            call_robot(channel, "SendSessionHeartbeat", request, robot.SendSessionHeartbeatResponse)
