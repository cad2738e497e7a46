"""Options of gRPC channels and servers."""

from __future__ import annotations

from typing import Final, NamedTuple

from cogwork.front.uploads import SMALL_SIZE
from cogwork.wire.table.request_limits import MAX_REQUEST_SIZE

MAX_MESSAGE_SIZE = MAX_REQUEST_SIZE
MAX_METADATA_SIZE = 68 * 1024
"""Maximum bytes of a request's headers: 64 kB for the client, and the rest for gRPC."""

Options = tuple[tuple[str, int], ...]


class Keepalive(NamedTuple):
    """HTTP/2 pings with which one side of a connection notices soon that the other is dead."""

    silence: float
    """Seconds without data from the other side until it is pinged."""
    timeout: float
    """Seconds without an answer until the connection is closed."""

    @property
    def options(self) -> Options:
        timeout = int(self.timeout * 1000)
        return (
            ("grpc.keepalive_time_ms", int(self.silence * 1000)),
            # This is only the timeout of TCP for unacknowledged data.
            ("grpc.keepalive_timeout_ms", timeout),
            ("grpc.http2.ping_timeout_ms", timeout),
            ("grpc.keepalive_permit_without_calls", 1),
            # Unlimited: by default, gRPC pings a silent peer only twice.
            ("grpc.http2.max_pings_without_data", 0),
            # The answers to pings that measure the bandwidth come late on a slow network.
            ("grpc.http2.bdp_probe", 0),
        )


CLOUD_KEEPALIVE: Final = Keepalive(5.0, 4.0)
"""For the connections of a machine to its cloud. A configuration must arrive within 15 seconds,
even if the machine has just moved to another network."""
CLOUD_SERVER_KEEPALIVE: Final = Keepalive(6.0, 4.0)
"""For the cloud. It waits a little longer, so that usually only the machine pings."""

GRPC_OPTIONS: Options = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_SIZE),
    ("grpc.max_send_message_length", MAX_MESSAGE_SIZE),
    # Detect dead peers and close their connections.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Both limits are equal: gRPC rejects some calls with a size between the two at random.
    ("grpc.max_metadata_size", MAX_METADATA_SIZE),
    ("grpc.absolute_max_metadata_size", MAX_METADATA_SIZE),
)
"""Options of servers and clients."""
SERVER_OPTIONS: Options = (
    ("grpc.so_reuseport", 0),
    # Accept frequent pings: clients of this API ping every 20 s, machines every 5 s. By default,
    # gRPC would close their connections with GOAWAY (too_many_pings).
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_concurrent_streams", 1024),
    # Keep the windows of streams small, even on a fast network. A larger request needs a window
    # update, which the relay withholds until memory is available for the request.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", SMALL_SIZE),
    ("grpc.http2.max_frame_size", SMALL_SIZE),
    # Effectively unlimited: gRPC would reject requests at random, and the relay already limits
    # bursts.
    ("grpc.server.max_pending_requests", 1 << 20),
    ("grpc.server.max_pending_requests_hard_limit", 1 << 20),
    # Disabled: cancelled streams would count as open until they are cleaned up, and new streams
    # would be refused at random.
    ("grpc.http.overload_protection", 0),
)
