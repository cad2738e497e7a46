"""The front process: it accepts the clients of the public port and relays their bytes.

A separate process ensures that moving bytes does not take time from the server's event loop. It
imports little, to stay small, and does not interpret calls. The server opens the listening sockets
and passes them on, so a new front process takes over the clients that wait in the backlog of the
sockets.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from cogwork.front.connections import ConnectionLimits
from cogwork.front.public_listener import PublicListener
from cogwork.front.relay import GrpcRelay, Relay
from cogwork.front.tls_socket import TlsSettings
from cogwork.helpers.control_channel import Message
from cogwork.helpers.run import run


class _FrontWorker:
    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self._grpc, self._http = GrpcRelay(Path()), Relay(Path())
        self._listener = PublicListener(
            self._grpc,
            self._http,
            on_client=lambda peer, connected: send({"client": peer, "connected": connected}),
        )
        self._grpc.ask = lambda: send({"asks": True})

    def on_message(self, message: Message, sockets: list[socket.socket]) -> None:
        if "working" in message:
            self._grpc.settle({int(number): n for number, n in message["working"].items()})
        else:
            self._use(message, sockets)

    def _use(self, message: Message, sockets: list[socket.socket]) -> None:
        self._grpc.target, self._http.target = Path(message["grpc"]), Path(message["http"])
        self._listener.limit_connections(ConnectionLimits(*message["connections"]))
        self._listener.use_tls(_read_tls_settings(message["tls"]))
        self._listener.trust_proxies(message["proxies"])
        if message["generation"] is not None:
            self._listener.serve(sockets)
            self._send({"generation": message["generation"]})

    async def aclose(self) -> None:
        await self._listener.aclose()


def _read_tls_settings(tls: Message | None) -> TlsSettings | None:
    if tls is None:
        return None
    authority = tls["client_authority"]
    return TlsSettings(
        Path(tls["certificate"]),
        Path(authority) if authority is not None else None,
        tuple(tls["client_names"]),
    )


if __name__ == "__main__":
    run(_FrontWorker)
