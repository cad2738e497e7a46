"""Fetches the configuration of a machine from its cloud."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import DecodeError
from viam.gen.app.v1.robot_pb2 import ConfigRequest, ConfigResponse, RobotConfig

from cogwork.config.cloud import CloudConfig
from cogwork.uplink.cloud_client import CloudClient, CloudLogin
from cogwork.uplink.joined_config import join_config

_CONFIG: Final = "/viam.app.v1.RobotService/Config"


class ConfigLink:
    def __init__(self, cloud: CloudConfig, *, allow_plaintext: bool) -> None:
        """Raise CloudUnavailable or ValueError if the address cannot be used."""
        self._part = cloud.id
        self._client = CloudClient(
            cloud.app_address, CloudLogin.from_config(cloud), allow_plaintext=allow_plaintext
        )

    async def fetch(self, timeout: float) -> bytes:
        request = ConfigRequest(id=self._part)
        reply = await self._client.call(_CONFIG, request, ConfigResponse, timeout)
        return reply.config.SerializeToString(deterministic=True)

    def render(self, message: bytes, local: dict[str, Any]) -> str:
        try:
            return join_config(RobotConfig.FromString(message), local)
        except DecodeError as error:
            raise ValueError(str(error)) from None

    async def aclose(self) -> None:
        await self._client.aclose()
