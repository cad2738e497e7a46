"""Connects to another machine in the way that its configuration asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogwork.config.schema import RemoteConfig
from cogwork.remotes.connection import RemoteConnection
from cogwork.remotes.dialing import dial, find_login, resolve_address
from cogwork.remotes.errors import RemoteUnavailable
from cogwork.remotes.webrtc_dialing import DialingProcess, call_machine

_MACHINE_PORT: Final = 8080
_CLOUD_PORT: Final = 443


class MachineDialer:
    def __init__(
        self, find_webrtc: Callable[[], DialingProcess | None], *, allow_plaintext: bool
    ) -> None:
        self._find_webrtc = find_webrtc
        self._allow_plaintext = allow_plaintext

    async def connect(self, config: RemoteConfig) -> RemoteConnection:
        """Raise RemoteUnavailable or AioRpcError."""
        if config.managed_by:
            return await self._connect_by_cloud(config)
        return await dial(
            resolve_address(config.address, _MACHINE_PORT),
            find_login(config),
            insecure=config.insecure,
            allow_plaintext=self._allow_plaintext,
        )

    async def _connect_by_cloud(self, config: RemoteConfig) -> RemoteConnection:
        process = self._find_webrtc()
        if process is None:
            raise RemoteUnavailable(
                "managed_by needs WebRTC, which is not installed or off: pip install "
                "'cogwork[webrtc]', and start the server without -webrtc=false"
            )
        cloud = resolve_address(config.managed_by, _CLOUD_PORT)
        try:
            signaling = await dial(
                cloud,
                find_login(config),
                insecure=config.insecure,
                allow_plaintext=self._allow_plaintext,
            )
        except RemoteUnavailable as error:
            raise RemoteUnavailable(f"the cloud {config.managed_by}: {error}") from None
        try:
            return await call_machine(config.address, signaling, process)
        finally:
            await signaling.aclose()
