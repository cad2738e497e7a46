"""Builds the handler table of a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from cogwork.core.clock import Clock
from cogwork.graph.public_apis import PUBLIC_APIS, SERVICE_BY_API
from cogwork.logs.rules import LevelOf, log_everything
from cogwork.resource.services.api_methods import load_methods
from cogwork.robot.machine import Machine
from cogwork.robot.middleware.authentication import Authentication
from cogwork.robot.middleware.change_wait import ChangeWait
from cogwork.robot.middleware.resource_proxy import ResourceProxy
from cogwork.wire.table.concurrency_limit import ConcurrencyLimiter
from cogwork.wire.table.grpc_services import add_standard_services
from cogwork.wire.table.handlers import HandlerTable, Method
from cogwork.wire.table.redacted_errors import redact_errors

if TYPE_CHECKING:
    from cogwork.wire.transports.webrtc_peers import WebRtcPeers


def build_handler_table(
    machine: Machine,
    clock: Clock,
    shut_down: Callable[[str], None],
    level_of: LevelOf = log_everything,
    authentication: Authentication | None = None,
    find_peers: Callable[[], WebRtcPeers | None] | None = None,
) -> HandlerTable:
    """Return the handlers of all methods.

    `shut_down` stops the server for the given reason. `level_of` returns the lowest level at which
    modules and clients may log. Without `authentication`, no login is required. `find_peers`
    returns the WebRTC clients; it is None if WebRTC is off.
    """
    authentication = authentication or Authentication(machine.operations)
    limiter = ConcurrencyLimiter(clock)
    proxy = ResourceProxy(machine, limiter)
    table = HandlerTable(
        middleware=(
            redact_errors(machine.redact),
            machine.operations.wrap,
            authentication.wrap,
            machine.access.wrap,
            limiter.wrap,
            machine.sessions.wrap,
            ChangeWait(machine, clock, proxy.make_proxy_route).wrap,
        ),
        fallback=proxy.forward_unknown,
        make_proxy_route=proxy.make_proxy_route,
    )
    for api, service in SERVICE_BY_API.items():
        if PUBLIC_APIS[api].is_served:
            table.add(service, partial(load_methods, PUBLIC_APIS[api], machine.find))
    table.add(
        "viam.robot.v1.RobotService",
        lambda: _load_robot_methods(machine, clock, shut_down, level_of),
    )
    table.add("proto.rpc.v1.AuthService", lambda: _load_auth_methods(authentication))
    table.add(
        "proto.rpc.webrtc.v1.SignalingService",
        lambda: _load_signaling_methods(table, find_peers, authentication),
    )
    table.add(
        "proto.stream.v1.StreamService",
        lambda: _load_stream_methods(machine, clock, find_peers),
    )
    add_standard_services(table, machine.descriptor_pools, machine.serving, proxy.find_descriptors)
    return table


def _load_auth_methods(authentication: Authentication) -> Iterable[Method]:
    from cogwork.robot.services.auth import auth_methods

    return auth_methods(authentication)


def _load_signaling_methods(
    table: HandlerTable,
    find_peers: Callable[[], WebRtcPeers | None] | None,
    authentication: Authentication,
) -> Iterable[Method]:
    from cogwork.robot.services.signaling import signaling_methods

    peers = find_peers() if find_peers is not None else None
    if peers is not None:
        peers.serve(table)
    return signaling_methods(peers, authentication)


def _load_stream_methods(
    machine: Machine, clock: Clock, find_peers: Callable[[], WebRtcPeers | None] | None
) -> Iterable[Method]:
    from cogwork.robot.video.stream_service import CameraFrames, stream_methods
    from cogwork.robot.video.video_streams import VideoStreams

    peers = find_peers() if find_peers is not None else None
    frames = CameraFrames(machine, clock)
    videos = None
    if peers is not None:
        videos = VideoStreams(peers.process, frames.get_newest, frames.find_feed, clock)
    return stream_methods(peers, videos, frames)


def _load_robot_methods(
    machine: Machine, clock: Clock, shut_down: Callable[[str], None], level_of: LevelOf
) -> Iterable[Method]:
    # Imported on the first call: the machine starts faster without importing the SDK.
    from cogwork.robot.services.robot import robot_methods

    return robot_methods(machine, clock, shut_down, level_of)
