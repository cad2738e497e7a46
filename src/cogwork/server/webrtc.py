"""WebRTC of a server: manages its process, its clients and its signaling server."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from typing import TYPE_CHECKING

from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.schema.machine import MachineConfig
from cogwork.config.schema.network import IceServerConfig
from cogwork.core.clock import Clock
from cogwork.net.address import is_loopback_address
from cogwork.net.peer import OnClient
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.wire.table.handlers import HandlerTable
from cogwork.wire.transports.ice_servers import IceServer, with_temporary_credential

if TYPE_CHECKING:
    from cogwork.server.answerer import Admit, SignalingSettings
    from cogwork.serving.webrtc_process import WebRtcProcess
    from cogwork.wire.transports.webrtc_peers import WebRtcPeers

_log = logging.getLogger("rdk.networking")


class WebRtc:
    def __init__(
        self, on_client: OnClient, clock: Clock, *, allow_plaintext_credentials: bool = False
    ) -> None:
        """Set up WebRTC without starting its process.

        `allow_plaintext_credentials`: log in to a signaling server that has no TLS.
        """
        self._allow_plaintext = allow_plaintext_credentials
        self._on_client = on_client
        self._clock = clock
        self._process: WebRtcProcess | None = None
        self._peers: WebRtcPeers | None = None
        self._ice_servers: list[IceServerConfig] = []
        self._signaling: SignalingSettings | None = None
        self._answering: asyncio.Task[None] | None = None

    def find_peers(self) -> WebRtcPeers | None:
        """Return the peers, which are created on the first call; None if WebRTC is not
        installed."""
        if self._peers is not None:
            return self._peers
        process = self.find_process()
        if process is None:
            _log.info(
                "WebRTC is not installed, so clients connect directly; to install it, run: pip "
                "install 'cogwork[webrtc]'"
            )
            return None
        from cogwork.wire.transports.webrtc_peers import WebRtcPeers

        self._peers = WebRtcPeers(process, self._list_ice_servers, self._on_client)
        return self._peers

    @property
    def is_installed(self) -> bool:
        return importlib.util.find_spec("aiortc") is not None

    def find_process(self) -> WebRtcProcess | None:
        """Return the process that holds the connections; None if WebRTC is not installed."""
        if self._process is None and self.is_installed:
            from cogwork.serving.webrtc_process import WebRtcProcess

            self._process = WebRtcProcess()
        return self._process

    def apply(self, config: MachineConfig, table: HandlerTable, admit: Admit) -> None:
        """Use the ICE servers and the signaling server of a configuration.

        `admit` checks clients that connect through the signaling server.
        """
        self._ice_servers = config.network.ice_servers
        # Machines without a signaling server start faster without gRPC clients.
        signaling = _read_signaling(config.cloud) if config.cloud is not None else None
        if signaling == self._signaling:
            return
        self._signaling = signaling
        if self._answering is not None:
            self._answering.cancel()
            self._answering = None
        if signaling is None or not self._may_log_in(signaling):
            return
        peers = self.find_peers()
        if peers is None:
            return
        from cogwork.server.answerer import Answerer

        peers.serve(table)
        answerer = Answerer(signaling, peers, admit, self._clock)
        self._answering = asyncio.create_task(answerer.run(), name="answerer")

    def _may_log_in(self, signaling: SignalingSettings) -> bool:
        """Return whether the credentials can be sent. If others could read them, log an error."""
        is_private = not signaling.is_plaintext or is_loopback_address(signaling.address)
        if is_private or self._allow_plaintext:
            return True
        _log.error(
            "not connecting to the signaling server %s: credentials over plaintext are refused; "
            "remove cloud.signaling_insecure, or start the server with -allow-insecure-creds",
            signaling.address,
        )
        return False

    def stop_answering(self) -> None:
        """Stop accepting clients from a signaling server."""
        if self._answering is not None:
            self._answering.cancel()

    async def aclose(self) -> None:
        if self._answering is not None:
            self.stop_answering()
            await asyncio.gather(self._answering, return_exceptions=True)
        if self._peers is not None:
            self._peers.close_all()
        if self._process is not None:
            await self._process.aclose()

    def _list_ice_servers(self) -> list[IceServer]:
        return [
            with_temporary_credential(tuple(each.urls), each.shared_secret, self._clock.time())
            if each.shared_secret
            else IceServer(tuple(each.urls), each.username, each.credential)
            for each in self._ice_servers
        ]


def _read_signaling(cloud: CloudConfig) -> SignalingSettings | None:
    from cogwork.server.answerer import SignalingSettings

    hosts = tuple(dict.fromkeys(name for name in (cloud.fqdn, cloud.local_fqdn) if name))
    if not cloud.signaling_address or not hosts:
        return None
    login = CloudLogin.from_config(cloud)
    return SignalingSettings(cloud.signaling_address, hosts, cloud.signaling_insecure, login)
