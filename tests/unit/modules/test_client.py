"""The client of the module API, and the limits for replies of modules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from tests.contract.conftest import grpc_core as grpc_core  # what it keeps for life
from tests.unit.subprocesses.children import DEADLINE

from cogwork.graph.name import Reference
from cogwork.modules.client import ModuleCallError, ModuleClient, ReplyTooLarge
from cogwork.modules.reply_limits import LIMITS
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.clients.fetched_descriptors import (
    DescriptorBudget,
    NotDescribed,
    fetch_descriptors,
)
from cogwork.wire.transports.grpc_options import MAX_MESSAGE_SIZE

assert sdk.VERSION  # the SDK must be imported first
from grpclib.reflection.v1.reflection_pb2 import (  # noqa: E402
    ServerReflectionRequest,
    ServerReflectionResponse,
)
from viam.gen.app.v1.robot_pb2 import ComponentConfig  # noqa: E402
from viam.gen.common.v1.common_pb2 import ResourceName  # noqa: E402
from viam.gen.module.v1 import module_pb2 as messages  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import ResourceRPCSubtype  # noqa: E402

Answer = Callable[[bytes, Any], Awaitable[bytes]]
OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


class FakeModule(grpc.GenericRpcHandler):
    """A module that gives preset answers."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        self.error = ""
        self.files: Callable[[str], FileDescriptorProto] | None = None
        self.reflection_requests = 0

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        path: str = handler_call_details.method
        if path.endswith("ServerReflectionInfo"):
            return grpc.stream_stream_rpc_method_handler(self._reflect)
        return grpc.unary_unary_rpc_method_handler(self._make_handler(path.rpartition("/")[2]))

    def _make_handler(self, method: str) -> Answer:
        async def answer(_: bytes, context: Any) -> bytes:
            if self.error:
                await context.abort(grpc.StatusCode.UNKNOWN, self.error)
            return self.answers.get(method, b"")

        return answer

    async def _reflect(self, requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
        assert self.files is not None
        async for data in requests:
            self.reflection_requests += 1
            name = ServerReflectionRequest.FromString(data).file_by_filename
            reply = ServerReflectionResponse()
            reply.file_descriptor_response.file_descriptor_proto.append(
                self.files(name).SerializeToString()
            )
            yield reply.SerializeToString()


@pytest.fixture
async def module() -> FakeModule:
    return FakeModule()


@pytest.fixture
async def channel(module: FakeModule, tmp_path: Path) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server(handlers=(module,), options=OPTIONS)
    server.add_insecure_port(f"unix:{tmp_path}/m.sock")
    await server.start()
    options = [("grpc.max_receive_message_length", MAX_MESSAGE_SIZE)]
    async with grpc.aio.insecure_channel(f"unix:{tmp_path}/m.sock", options=options) as channel:
        yield channel
    await server.stop(None)


@pytest.fixture
def client(channel: grpc.aio.Channel) -> ModuleClient:
    return ModuleClient(channel)


def handler(subtype: str, *models: str) -> messages.HandlerDefinition:
    name = ResourceName(namespace="acme", type="component", subtype=subtype)
    return messages.HandlerDefinition(
        subtype=ResourceRPCSubtype(subtype=name, proto_service=f"acme.{subtype}"), models=models
    )


def ready_reply(*handlers: messages.HandlerDefinition) -> bytes:
    answer = messages.ReadyResponse(ready=True, handlermap=messages.HandlerMap(handlers=handlers))
    return answer.SerializeToString()


def validate_reply(*names: str) -> bytes:
    return messages.ValidateConfigResponse(dependencies=names).SerializeToString()


def model_names(count: int) -> list[str]:
    return [f"acme:test:m{number}" for number in range(count)]


async def test_reply_at_the_limits_is_accepted(module: FakeModule, client: ModuleClient) -> None:
    module.answers["Ready"] = ready_reply(handler("a", *model_names(LIMITS.models)))
    offered = await client.ready("/parent", DEADLINE)
    assert offered is not None
    assert len(offered.models) == LIMITS.models
    module.answers["ValidateConfig"] = validate_reply(
        *(f"n{i}" for i in range(LIMITS.dependencies))
    )
    needed = await client.validate(ComponentConfig(), DEADLINE)
    assert needed.needs[0] == Reference("n0")
    assert len(needed.needs) == LIMITS.dependencies


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            ready_reply(handler("a", *model_names(LIMITS.models + 1))),
            "it reports 10001 models; the limit is",
        ),
        (ready_reply(*(handler(f"a{i}") for i in range(LIMITS.apis + 1))), "it reports 1001 APIs"),
        (
            ready_reply(handler("a", "x" * 1001)),
            "it reports a model with a name of 1001 characters",
        ),
        (ready_reply(handler("x" * 1001)), "it reports an API with a name of 1006 characters"),
        (bytes(LIMITS.message + 1), r"its reply to Ready has 4194305 bytes; the limit is 4194304"),
    ],
    ids=["models", "APIs", "a long model", "a long API", "bytes"],
)
async def test_ready_reply_over_the_limits_raises(
    module: FakeModule, client: ModuleClient, answer: bytes, words: str
) -> None:
    module.answers["Ready"] = answer
    with pytest.raises(ReplyTooLarge, match=words):
        await client.ready("/parent", DEADLINE)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            validate_reply(*map(str, range(200_000))),
            "it reports 200000 dependencies; the limit is 1000",
        ),
        (
            validate_reply("x" * 1_000_000),
            "it reports a dependency with a name of 1000000 characters",
        ),
    ],
    ids=["many", "long"],
)
async def test_validate_reply_over_the_limits_raises(
    module: FakeModule, client: ModuleClient, answer: bytes, words: str
) -> None:
    module.answers["ValidateConfig"] = answer
    with pytest.raises(ReplyTooLarge, match=words):
        await client.validate(ComponentConfig(), DEADLINE)


async def test_long_errors_are_truncated(module: FakeModule, client: ModuleClient) -> None:
    module.error = "E" * 6000
    with pytest.raises(ModuleCallError) as refused:
        await client.add(ComponentConfig(), (), DEADLINE)
    assert str(refused.value) == "E" * 4096 + "… (1904 more characters)"


async def test_prefix_of_the_sdk_is_removed_from_errors(
    module: FakeModule, client: ModuleClient
) -> None:
    module.error = "<class 'type'>: no such pin"
    with pytest.raises(ModuleCallError) as refused:
        await client.validate(ComponentConfig(), DEADLINE)
    assert str(refused.value) == "no such pin"


async def test_undecodable_reply_raises(module: FakeModule, client: ModuleClient) -> None:
    module.answers["Ready"] = b"\xff\xff\xff"
    with pytest.raises(ModuleCallError, match="its reply to Ready cannot be decoded"):
        await client.ready("/parent", DEADLINE)


async def test_endless_descriptors_are_refused(module: FakeModule, channel: Any) -> None:
    def file(name: str) -> FileDescriptorProto:
        number = int(name or "0")
        descriptor = FileDescriptorProto(name=name or "0", dependency=[str(number + 1)])
        descriptor.message_type.add(name="M" * 10_000)
        return descriptor

    module.files = file
    budget = DescriptorBudget(100_000)
    with pytest.raises(NotDescribed, match="the descriptors exceed 100000 bytes"):
        await fetch_descriptors(channel, "acme.A", budget)
    assert module.reflection_requests <= 12
    with pytest.raises(NotDescribed, match="the descriptors exceed 100000 bytes"):
        await fetch_descriptors(channel, "acme.B", budget)
    assert module.reflection_requests <= 14
