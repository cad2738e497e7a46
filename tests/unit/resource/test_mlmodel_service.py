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
from tests.served import CHANNELS, refused, served
from tests.unit.robot.bench import InProcess

from cogwork.core.errors import CogworkError, InvalidRequest, NotFound
from cogwork.graph.name import Api, ResourceName
from cogwork.resource import sdk
from cogwork.resource.mlmodel_client import FastMLModelClient
from cogwork.resource.mlmodel_service import mlmodel_methods
from cogwork.resource.tensors import read_infer_reply, write_infer_request
from cogwork.wire.channel import SdkChannel
from cogwork.wire.grpc import grpc_server
from cogwork.wire.handlers import Handler, HandlerTable, Method, Stream

assert sdk.VERSION  # it comes before anything else of the SDK
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


class Echo(MLModel):
    """As somebody writes it who has only read the SDK's documentation."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.told: dict[str, Any] = {}

    async def infer(
        self,
        input_tensors: Tensors,
        *,
        extra: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Tensors:
        self.told = {"extra": extra, "timeout": timeout}
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
        self.told = {"extra": extra, "timeout": timeout}
        return Metadata(name="echo", input_info=[TensorInfo(name="x", shape=[-1, 3])])

    async def get_status(self, *, timeout: float | None = None, **kwargs: Any) -> Mapping[str, Any]:
        return {"is": "fine"}


@pytest.fixture
def echo() -> Echo:
    return Echo("m")


def methods(*models: MLModel) -> dict[str, Method]:
    known = {ResourceName(API, each.name): each for each in models}

    def find(name: ResourceName) -> object:
        if name not in known:
            raise NotFound(f"there is no {name}")
        return known[name]

    return {each.path.rpartition("/")[2]: each for each in mlmodel_methods(API, find)}


async def infer(model: MLModel, request: bytes, **options: Any) -> Tensors:
    """Through the handler table: bytes to bytes."""
    stream = InProcess(request, **options)
    await methods(model)["Infer"].handle(stream)
    (reply,) = stream.replies
    return read_infer_reply(reply)


class TestInfer:
    async def test_tensors_go_through_as_they_are(self, echo: Echo) -> None:
        outputs = await infer(echo, write_infer_request("m", EVERY_TYPE))
        assert_echoed(outputs, EVERY_TYPE)

    async def test_the_reply_is_what_protobuf_reads(self, echo: Echo) -> None:
        stream = InProcess(write_infer_request("m", {"x": np.array([1.5], np.float32)}))
        await methods(echo)["Infer"].handle(stream)
        reply = mlmodel.InferResponse.FromString(stream.replies[0])
        assert list(reply.output_tensors.tensors["x again"].float_tensor.data) == [1.5]

    async def test_extra_and_the_deadline_are_passed_on(self, echo: Echo) -> None:
        extra = Struct()
        extra.update({"depth": 2, "names": ["a", None]})
        request = write_infer_request("m", {}, extra.SerializeToString())
        await infer(echo, request, timeout=5.0)
        assert echo.told["extra"] == {"depth": 2, "names": ["a", None]}
        assert 4 < echo.told["timeout"] <= 5
        await infer(echo, write_infer_request("m", {}))
        assert echo.told == {"extra": {}, "timeout": None}

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
    async def test_malformed_bytes_are_refused(self, damaged: bytes, echo: Echo) -> None:
        with pytest.raises(InvalidRequest):
            await infer(echo, damaged)

    async def test_too_much_extra_is_refused(self, echo: Echo) -> None:
        extra = Struct()
        extra.update({"list": [1] * 20_000})
        with pytest.raises(InvalidRequest, match="extra has more than 2000 values"):
            await infer(echo, write_infer_request("m", {}, extra.SerializeToString()))

    async def test_unknown_models_are_not_found(self, echo: Echo) -> None:
        with pytest.raises(NotFound, match="there is no rdk:service:mlmodel/other"):
            await infer(echo, write_infer_request("other", {}))

    async def test_what_no_message_carries_is_named(self, echo: Echo) -> None:
        request = write_infer_request("m", {"half": np.zeros(1, np.float32)})
        with pytest.raises(CogworkError, match='tensor "half" has type float16'):
            await infer(echo, request)

    def test_every_method_of_the_api_is_there(self) -> None:
        assert methods().keys() == {"Infer", "Metadata", "GetStatus"}


def assert_echoed(outputs: Tensors, given: Tensors) -> None:
    assert outputs.keys() == {f"{name} again" for name in given}
    for name, tensor in given.items():
        assert outputs[f"{name} again"].dtype == tensor.dtype, name
        assert np.array_equal(outputs[f"{name} again"], tensor), name


@pytest.mark.parametrize("channel", CHANNELS)
class TestModelsOfTheSdk:
    """Its own client, and a class that knows nothing of us."""

    async def test_they_infer(self, channel: str, echo: Echo) -> None:
        async with served(echo, by=channel) as to_it:
            outputs = await MLModelClient("m", to_it).infer(EVERY_TYPE, extra={"a": 1}, timeout=5)
        assert_echoed(outputs, EVERY_TYPE)
        assert echo.told["extra"] == {"a": 1}
        assert 0 < echo.told["timeout"] < 5.5  # rounded on its way

    async def test_they_describe_themselves(self, channel: str, echo: Echo) -> None:
        async with served(echo, by=channel) as to_it:
            client = MLModelClient("m", to_it)
            metadata = await client.metadata(extra={"b": True}, timeout=5)
            assert await client.get_status() == {"is": "fine"}
        assert (metadata.name, list(metadata.input_info[0].shape)) == ("echo", [-1, 3])
        assert echo.told["extra"] == {"b": True}

    async def test_their_errors_arrive(self, channel: str, echo: Echo) -> None:
        async with served(echo, by=channel) as to_it:
            with refused() as told:
                await MLModelClient("m", to_it).infer({"fail": np.zeros(1)})
        assert "it cannot" in told.words

    async def test_an_empty_request_is_one(self, channel: str, echo: Echo) -> None:
        async with served(echo, by=channel) as to_it:
            assert await MLModelClient("m", to_it).infer({}) == {}


@contextlib.asynccontextmanager
async def by_ours(model: MLModel) -> AsyncIterator[str]:
    table = HandlerTable()
    table.add(SERVICE, lambda: methods(model).values())
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@contextlib.asynccontextmanager
async def by_theirs(model: MLModel) -> AsyncIterator[str]:
    server = Server([MLModelRPCService(ResourceManager([model]))])
    protocols: list[Any] = []
    make = server._protocol_factory

    def kept() -> Any:
        protocols.append(make())
        return protocols[-1]

    server._protocol_factory = kept  # type: ignore[method-assign]
    await server.start("127.0.0.1", 0)
    listening: Any = server._server
    host, port = listening.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
        # It leaves them to its clients, and since Python 3.12 it waits for them, too.
        for protocol in protocols:
            protocol.connection.close()
        await server.wait_closed()
        await asyncio.sleep(0)  # they close a turn of the loop later


SERVERS = {"ours": by_ours, "theirs": by_theirs}


@contextlib.asynccontextmanager
async def fast_client(by: str, model: MLModel, name: str = "m") -> AsyncIterator[FastMLModelClient]:
    async with SERVERS[by](model) as address, grpc.aio.insecure_channel(address) as channel:
        yield FastMLModelClient(name, SdkChannel(channel), channel)


@pytest.mark.parametrize("by", SERVERS)
class TestFastClient:
    async def test_it_gives_what_the_sdk_s_own_gives(self, by: str, echo: Echo) -> None:
        given = {**EVERY_TYPE, "scalar": np.array(3.0), "none": np.zeros((0, 3), np.float32)}
        async with fast_client(by, echo) as client:
            assert_echoed(await client.infer(given, extra={"c": "d"}, timeout=5), given)
        assert echo.told["extra"] == {"c": "d"}
        assert 0 < echo.told["timeout"] < 5.5  # rounded on its way

    async def test_the_other_calls_are_the_sdk_s(self, by: str, echo: Echo) -> None:
        async with fast_client(by, echo) as client:
            assert (await client.metadata()).name == "echo"
            assert await client.get_status() == {"is": "fine"}

    async def test_errors_are_those_of_the_sdk_s_client(self, by: str, echo: Echo) -> None:
        async with fast_client(by, echo) as client:
            with pytest.raises(GRPCError):
                await client.infer({"fail": np.zeros(1)})
        async with fast_client(by, echo, "other") as client:
            with pytest.raises(GRPCError) as error:
                await client.infer({})
        assert error.value.status is Status.NOT_FOUND

    async def test_a_deadline_ends_it(self, by: str, echo: Echo) -> None:
        async with fast_client(by, echo) as client:
            with pytest.raises(GRPCError) as error:
                await client.infer({"wait": np.zeros(1)}, timeout=0.1)
        assert error.value.status is Status.DEADLINE_EXCEEDED


async def test_the_metadata_of_a_call_arrives(echo: Echo) -> None:
    seen: list[Any] = []

    def noting(_: Method, handle: Handler) -> Handler:
        async def note(stream: Stream) -> None:
            seen.append(stream.metadata)
            await handle(stream)

        return note

    table = HandlerTable(middleware=[noting])
    table.add(SERVICE, lambda: methods(echo).values())
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            client = FastMLModelClient("m", SdkChannel(channel), channel)
            metadata = client.Metadata()
            metadata.add_metadata("dtname", "abc")
            await client.infer({}, metadata=metadata)
            metadata.delete_metadata("dtname")  # the SDK has one for all
    finally:
        await server.stop(None)
    assert dict(seen[0])["dtname"] == "abc"
