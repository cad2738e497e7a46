from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc.aio
import numpy as np
import pytest
from google.protobuf.struct_pb2 import Struct
from grpclib import GRPCError
from grpclib.const import Status
from grpclib.server import Server
from numpy.typing import NDArray
from tests.contract.conftest import grpc_core
from tests.support.machine.served import CHANNELS, refused, served
from tests.support.waiting import run_others
from tests.unit.robot.bench import InProcess

from cogwork.core.errors import CogworkError, InvalidRequest, NotFound
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.messages.tensors import read_infer_reply, write_infer_request
from cogwork.resource.sdk import clean_import as sdk
from cogwork.resource.sdk.mlmodel_client import FastMLModelClient
from cogwork.resource.services.mlmodel import mlmodel_methods
from cogwork.wire.clients.channel import SdkChannel
from cogwork.wire.table.handlers import Handler, HandlerTable, Method, Stream
from cogwork.wire.transports.grpc import grpc_server

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.service.mlmodel.v1 import mlmodel_pb2 as mlmodel  # noqa: E402
from viam.proto.service.mlmodel import Metadata, TensorInfo  # noqa: E402
from viam.resource.manager import ResourceManager  # noqa: E402
from viam.services.mlmodel import MLModel, MLModelClient  # noqa: E402
from viam.services.mlmodel.service import MLModelRPCService  # noqa: E402

__all__ = ["grpc_core"]

API = Api.parse("rdk:service:mlmodel")
SERVICE = "viam.service.mlmodel.v1.MLModelService"
EVERY_TYPE = {
    f"{name} tensor": np.array([[0, 1, 2], [3, 4, 100]], name)
    for name in (
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *("float32", "float64"),
    )
}

Tensors = dict[str, NDArray[Any]]


class EchoModel(MLModel):
    """A model as the SDK's documentation describes it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.arguments: dict[str, Any] = {}

    async def infer(
        self,
        input_tensors: Tensors,
        *,
        extra: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Tensors:
        self.arguments = {"extra": extra, "timeout": timeout}
        if "wait" in input_tensors:
            await asyncio.Event().wait()
        if "fail" in input_tensors:
            raise ValueError("it cannot")
        if "half" in input_tensors:
            return {"half": np.zeros(1, np.float16)}
        return {f"{name} again": tensor for name, tensor in input_tensors.items()}

    async def metadata(
        self, *, extra: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> Metadata:
        self.arguments = {"extra": extra, "timeout": timeout}
        return Metadata(name="echo", input_info=[TensorInfo(name="x", shape=[-1, 3])])

    async def get_status(self, *, timeout: float | None = None, **kwargs: Any) -> Mapping[str, Any]:
        return {"is": "fine"}


@pytest.fixture
def echo() -> EchoModel:
    return EchoModel("m")


def make_methods(*models: MLModel) -> dict[str, Method]:
    known = {ResourceName(API, each.name): each for each in models}

    def find(name: ResourceName) -> object:
        if name not in known:
            raise NotFound(f"there is no {name}")
        return known[name]

    return {each.path.rpartition("/")[2]: each for each in mlmodel_methods(API, find)}


async def infer(model: MLModel, request: bytes, **options: Any) -> Tensors:
    """Call Infer through the handler table with raw bytes."""
    stream = InProcess(request, **options)
    await make_methods(model)["Infer"].handle(stream)
    (reply,) = stream.replies
    return read_infer_reply(reply)


class TestInfer:
    async def test_tensors_pass_through_unchanged(self, echo: EchoModel) -> None:
        outputs = await infer(echo, write_infer_request("m", EVERY_TYPE))
        assert_echoed(outputs, EVERY_TYPE)

    async def test_reply_is_a_valid_protobuf_message(self, echo: EchoModel) -> None:
        stream = InProcess(write_infer_request("m", {"x": np.array([1.5], np.float32)}))
        await make_methods(echo)["Infer"].handle(stream)
        reply = mlmodel.InferResponse.FromString(stream.replies[0])
        assert list(reply.output_tensors.tensors["x again"].float_tensor.data) == [1.5]

    async def test_extra_and_deadline_are_passed_on(self, echo: EchoModel) -> None:
        extra = Struct()
        extra.update({"depth": 2, "names": ["a", None]})
        request = write_infer_request("m", {}, extra.SerializeToString())
        await infer(echo, request, timeout=5.0)
        assert echo.arguments["extra"] == {"depth": 2, "names": ["a", None]}
        assert 4 < echo.arguments["timeout"] <= 5
        await infer(echo, write_infer_request("m", {}))
        assert echo.arguments == {"extra": {}, "timeout": None}

    @pytest.mark.parametrize(
        "damaged",
        [
            b"\xff",
            b"hello",
            b"\x0a\x7fm",
            write_infer_request("m", {"x": np.zeros(9)})[:-3],
            write_infer_request("m", {}, b"\xff\xff"),
            b"\x0a\x02\xff\xff",
        ],
    )
    async def test_malformed_bytes_are_refused(self, damaged: bytes, echo: EchoModel) -> None:
        with pytest.raises(InvalidRequest):
            await infer(echo, damaged)

    async def test_too_much_extra_is_refused(self, echo: EchoModel) -> None:
        extra = Struct()
        extra.update({"list": [1] * 20_000})
        with pytest.raises(InvalidRequest, match="extra has more than 2000 values"):
            await infer(echo, write_infer_request("m", {}, extra.SerializeToString()))

    async def test_unknown_models_are_not_found(self, echo: EchoModel) -> None:
        with pytest.raises(NotFound, match="there is no rdk:service:mlmodel/other"):
            await infer(echo, write_infer_request("other", {}))

    async def test_unsupported_output_type_is_named(self, echo: EchoModel) -> None:
        request = write_infer_request("m", {"half": np.zeros(1, np.float32)})
        with pytest.raises(CogworkError, match='tensor "half" has type float16'):
            await infer(echo, request)

    def test_all_mlmodel_methods_are_served(self) -> None:
        assert make_methods().keys() == {"Infer", "Metadata", "GetStatus"}


def assert_echoed(outputs: Tensors, given: Tensors) -> None:
    assert outputs.keys() == {f"{name} again" for name in given}
    for name, tensor in given.items():
        assert outputs[f"{name} again"].dtype == tensor.dtype, name
        assert np.array_equal(outputs[f"{name} again"], tensor), name


@pytest.mark.parametrize("channel", CHANNELS)
class TestSdkModels:
    """The SDK's own client with a plain SDK model."""

    async def test_sdk_client_infers(self, channel: str, echo: EchoModel) -> None:
        async with served(echo, by=channel) as sdk_channel:
            outputs = await MLModelClient("m", sdk_channel).infer(
                EVERY_TYPE, extra={"a": 1}, timeout=5
            )
        assert_echoed(outputs, EVERY_TYPE)
        assert echo.arguments["extra"] == {"a": 1}
        assert 0 < echo.arguments["timeout"] < 5.5  # rounded on its way

    async def test_sdk_client_gets_metadata_and_status(self, channel: str, echo: EchoModel) -> None:
        async with served(echo, by=channel) as sdk_channel:
            client = MLModelClient("m", sdk_channel)
            metadata = await client.metadata(extra={"b": True}, timeout=5)
            assert await client.get_status() == {"is": "fine"}
        assert (metadata.name, list(metadata.input_info[0].shape)) == ("echo", [-1, 3])
        assert echo.arguments["extra"] == {"b": True}

    async def test_sdk_client_gets_errors(self, channel: str, echo: EchoModel) -> None:
        async with served(echo, by=channel) as sdk_channel:
            with refused() as error:
                await MLModelClient("m", sdk_channel).infer({"fail": np.zeros(1)})
        assert "it cannot" in error.words

    async def test_sdk_client_may_send_an_empty_request(
        self, channel: str, echo: EchoModel
    ) -> None:
        async with served(echo, by=channel) as sdk_channel:
            assert await MLModelClient("m", sdk_channel).infer({}) == {}


@contextlib.asynccontextmanager
async def serve_ours(model: MLModel) -> AsyncIterator[str]:
    table = HandlerTable()
    table.add(SERVICE, lambda: make_methods(model).values())
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@contextlib.asynccontextmanager
async def serve_sdk(model: MLModel) -> AsyncIterator[str]:
    server = Server([MLModelRPCService(ResourceManager([model]))])
    protocols: list[Any] = []
    make = server._protocol_factory

    def make_and_keep() -> Any:
        protocols.append(make())
        return protocols[-1]

    server._protocol_factory = make_and_keep  # type: ignore[method-assign]
    await server.start("127.0.0.1", 0)
    listening: Any = server._server
    host, port = listening.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
        # The server does not close connections, and since Python 3.12 it waits for them.
        for protocol in protocols:
            protocol.connection.close()
        await server.wait_closed()
        await run_others()  # they close one turn of the loop later


SERVERS = {"ours": serve_ours, "theirs": serve_sdk}


@contextlib.asynccontextmanager
async def fast_client(by: str, model: MLModel, name: str = "m") -> AsyncIterator[FastMLModelClient]:
    async with SERVERS[by](model) as address, grpc.aio.insecure_channel(address) as channel:
        yield FastMLModelClient(name, SdkChannel(channel), channel)


@pytest.mark.parametrize("by", SERVERS)
class TestFastClient:
    async def test_fast_client_returns_the_same_tensors(self, by: str, echo: EchoModel) -> None:
        given = {**EVERY_TYPE, "scalar": np.array(3.0), "none": np.zeros((0, 3), np.float32)}
        async with fast_client(by, echo) as client:
            assert_echoed(await client.infer(given, extra={"c": "d"}, timeout=5), given)
        assert echo.arguments["extra"] == {"c": "d"}
        assert 0 < echo.arguments["timeout"] < 5.5  # rounded on its way

    async def test_fast_client_inherits_other_calls(self, by: str, echo: EchoModel) -> None:
        async with fast_client(by, echo) as client:
            assert (await client.metadata()).name == "echo"
            assert await client.get_status() == {"is": "fine"}

    async def test_fast_client_raises_grpc_errors(self, by: str, echo: EchoModel) -> None:
        async with fast_client(by, echo) as client:
            with pytest.raises(GRPCError):
                await client.infer({"fail": np.zeros(1)})
        async with fast_client(by, echo, "other") as client:
            with pytest.raises(GRPCError) as error:
                await client.infer({})
        assert error.value.status is Status.NOT_FOUND

    async def test_fast_client_respects_its_deadline(self, by: str, echo: EchoModel) -> None:
        async with fast_client(by, echo) as client:
            with pytest.raises(GRPCError) as error:
                await client.infer({"wait": np.zeros(1)}, timeout=0.1)
        assert error.value.status is Status.DEADLINE_EXCEEDED


async def test_fast_client_sends_call_metadata(echo: EchoModel) -> None:
    seen: list[Any] = []

    def recording_middleware(_: Method, handle: Handler) -> Handler:
        async def record_metadata(stream: Stream) -> None:
            seen.append(stream.metadata)
            await handle(stream)

        return record_metadata

    table = HandlerTable(middleware=[recording_middleware])
    table.add(SERVICE, lambda: make_methods(echo).values())
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            client = FastMLModelClient("m", SdkChannel(channel), channel)
            metadata = client.Metadata()
            metadata.add_metadata("dtname", "abc")
            await client.infer({}, metadata=metadata)
            metadata.delete_metadata("dtname")  # the SDK shares one object
    finally:
        await server.stop(None)
    assert dict(seen[0])["dtname"] == "abc"
