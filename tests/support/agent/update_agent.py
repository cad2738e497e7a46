"""An agent at a cloud: it asks for versions and reports how updates went."""

from __future__ import annotations

from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct
from grpclib.client import Channel, UnaryUnaryMethod

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.app.agent.v1 import agent_pb2 as pb  # noqa: E402
from viam.gen.app.agent.v1.agent_grpc import AgentDeviceServiceStub  # noqa: E402
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub  # noqa: E402
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, Credentials  # noqa: E402

from cogwork.core.versions.product import Product  # noqa: E402
from cogwork.wire.messages.update_method import AGENT_TAG, REPORT, Outcome, UpdateReport  # noqa: E402

PLATFORM = "linux/amd64"


class UpdateAgent:
    def __init__(self, channel: Channel, part: str, server: str = "1.0.0") -> None:
        self.part = part
        self.server = server
        """The version of the server that it runs."""
        self.agent = "0.1.0"
        self.platform = PLATFORM
        self.tags = [AGENT_TAG]
        self.metadata: dict[str, str] = {}
        self._channel = channel
        self._stub = AgentDeviceServiceStub(channel)

    async def log_in(self, secret: str) -> None:
        credentials = Credentials(type="robot-secret", payload=secret)
        request = AuthenticateRequest(entity=self.part, credentials=credentials)
        token = (await AuthServiceStub(self._channel).Authenticate(request)).access_token
        self.metadata = {"authorization": f"Bearer {token}"}

    async def poll(self, part: str = "") -> pb.DeviceAgentConfigResponse:
        request = pb.DeviceAgentConfigRequest(
            id=part or self.part,
            host_info=pb.HostInfo(platform=self.platform, distro="debian:12", tags=self.tags),
            version_info=pb.VersionInfo(
                agent_running=self.agent,
                agent_installed=self.agent,
                viam_server_running=self.server,
                viam_server_installed=self.server,
            ),
        )
        request.agent_uptime.FromSeconds(120)
        reply: pb.DeviceAgentConfigResponse = await self._stub.DeviceAgentConfig(
            request, metadata=self.metadata
        )
        return reply

    async def poll_server(self) -> pb.UpdateInfo:
        return (await self.poll()).viam_server_update_info

    async def report(
        self, version: str, outcome: Outcome, reason: str = "", part: str = ""
    ) -> None:
        message = UpdateReport(Product.SERVER, version, outcome, part, reason, 1_000_000.0)
        await self.send_report(message.to_struct())

    async def send_report(self, message: Struct) -> None:
        await UnaryUnaryMethod(self._channel, REPORT, Struct, Empty)(
            message, metadata=self.metadata
        )
