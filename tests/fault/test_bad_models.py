"""Invalid model files and tensors: their users get errors, and other clients are not affected."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
import pytest
import pytest_asyncio
from grpclib import GRPCError
from grpclib.const import Status
from numpy.typing import NDArray
from tests.contract.conftest import grpc_core
from tests.support.machine.running import Config, with_free_port
from tests.support.machine.watched import FAKES, LONGEST_TURN, MIB, WatchedServer, run_watched
from tests.support.models.onnx_models import relu, save_model
from tests.support.sizes import FULL, limit, size
from tests.support.waiting import poll

import cogwork.drivers.mlmodel
from cogwork.resource.sdk import clean_import as sdk
from cogwork.resource.sdk.mlmodel_client import FastMLModelClient
from cogwork.wire.clients.channel import SdkChannel
from cogwork.wire.transports.grpc_options import GRPC_OPTIONS

pytestmark = pytest.mark.asyncio(loop_scope="module")

assert sdk.VERSION  # it comes before anything else of the SDK
pytest.importorskip("onnxruntime")

__all__ = ["grpc_core"]

DEMO = Path(cogwork.drivers.mlmodel.__file__).parent / "demo"
CHANGED_WITHIN = limit(2.0)
"""Seconds until bad files are refused and gone again, once their engine is imported."""
IMPORTED_WITHIN = 30.0
ANSWERED_WITHIN = limit(1.0)
AT_ONCE = size(ci=20, full=100)
ENGINES = {
    "onnx_cpu": "onnxruntime",
    "tflite_cpu": "ai_edge_litert",
    "openvino_cpu": "openvino",
    **({"torch_cpu": "torch", "tensorflow_cpu": "tensorflow"} if FULL else {}),
}
"""The last two take many seconds to import."""
SUFFIXES = {
    "onnx_cpu": ".onnx",
    "tflite_cpu": ".tflite",
    "openvino_cpu": ".onnx",
    "torch_cpu": ".pt",
    "tensorflow_cpu": ".keras",
}

Tensors = dict[str, NDArray[Any]]


def service(name: str, engine: str, path: Path) -> dict[str, Any]:
    attributes = {"model_path": str(path)}
    return {
        "name": name,
        "api": "rdk:service:mlmodel",
        "model": engine,
        "attributes": attributes,
    }


def config(*services: dict[str, Any]) -> Config:
    return with_free_port({**FAKES, "services": [*FAKES["services"], *services]})


def write_bad_files(folder: Path, engine: str) -> dict[str, Path]:
    suffix = SUFFIXES[engine]
    whole = {
        "onnx_cpu": (DEMO / "conveyor.onnx").read_bytes(),
        "tflite_cpu": (DEMO / "conveyor.tflite").read_bytes(),
        "openvino_cpu": (DEMO / "conveyor.onnx").read_bytes(),
        "torch_cpu": (DEMO / "conveyor.pt").read_bytes(),
        "tensorflow_cpu": b"PK\x03\x04" + bytes(100),
    }[engine]
    contents = {
        "corrupt": whole[:40] + bytes(255 - each for each in whole[40:3000]) + whole[3000:],
        "truncated": whole[: len(whole) // 2],
        "empty": b"",
        "labels": b"gear\nbolt\nnut\n",
        "picture": b"\xff\xd8\xff\xe0" + bytes(1000),
    }
    files = {f"{kind}-{engine}": folder / f"{kind}-{engine}{suffix}" for kind in contents}
    for file, content in zip(files.values(), contents.values(), strict=True):
        file.write_bytes(content)
    return files


async def wait_until_unhealthy(server: WatchedServer, names: set[str]) -> dict[str, str]:
    """Return their reasons, once all of them are unhealthy."""

    async def find_unhealthy() -> dict[str, str]:
        return {
            each["name"].rpartition("/")[2]: each["reason"]
            for each in (await server.server.status())["resources"]
            if each["state"] == "unhealthy"
        }

    found = await poll(find_unhealthy, lambda found: names <= found.keys(), IMPORTED_WITHIN)
    return {name: found[name] for name in names}


async def wait_until_gone(server: WatchedServer, names: set[str]) -> None:
    async def find_names() -> set[str]:
        resources = (await server.server.status())["resources"]
        return {each["name"].rpartition("/")[2] for each in resources}

    await poll(find_names, lambda found: not names & found, IMPORTED_WITHIN)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Services with valid models."""
    directory = tmp_path_factory.mktemp("models")
    models = {"good": relu(), "any-size": relu(["n"])}
    return [
        service(name, "onnx_cpu", save_model(directory / f"{name}.onnx", each))
        for name, each in models.items()
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(
    good: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WatchedServer]:
    async with run_watched(tmp_path_factory.mktemp("server"), config(*good)) as server:
        yield server


async def test_invalid_model_files_are_refused_without_affecting_others(
    server: WatchedServer, good: list[dict[str, Any]], tmp_path: Path
) -> None:
    engines = [each for each, library in ENGINES.items() if importlib.util.find_spec(library)]
    for engine in engines:
        # The first user waits for the import of the library.
        first = tmp_path / f"first{SUFFIXES[engine]}"
        first.write_bytes(b"no model")
        server.server.save(config(*good, service("first", engine, first)))
        await wait_until_unhealthy(server, {"first"})
        files = write_bad_files(tmp_path, engine)
        attack = partial(configure, server, good, engine, files)
        phase = await server.attack(engine, attack, longest=CHANGED_WITHIN)
        assert phase.took < CHANGED_WITHIN, engine
        assert phase.busy < LONGEST_TURN
        assert phase.bystander.failed == 0, phase.bystander.failures
    async with connect(server, "good") as client:
        outputs = await client.infer({"x": np.ones((1, 4), np.float32)}, timeout=60)
    assert outputs["y"].tolist() == [[1.0] * 4]


@contextlib.asynccontextmanager
async def connect(server: WatchedServer, name: str) -> AsyncIterator[FastMLModelClient]:
    address = f"127.0.0.1:{server.server.port}"
    async with grpc.aio.insecure_channel(address, options=GRPC_OPTIONS) as channel:
        yield FastMLModelClient(name, SdkChannel(channel), channel)


def floats(*shape: int) -> NDArray[np.float32]:
    return np.zeros(shape, np.float32)


LARGE = 31 * MIB // 4
"""Values of a tensor of 31 MiB."""
WRONG: dict[str, tuple[Tensors, str]] = {
    "no tensors": ({}, 'the input "x" (float32 ?x4) is missing'),
    "another name": ({"image": floats(1, 4)}, '"image" is not an input of the model'),
    "another type": ({"x": np.zeros((1, 4))}, 'the input "x" is float64 1x4'),
    "another shape": ({"x": floats(1, 5)}, 'the input "x" is float32 1x5'),
    "31 MiB": ({"x": floats(LARGE)}, f'the input "x" is float32 {LARGE}'),
    "31 MiB beside": ({"x": floats(1, 4), "y": floats(LARGE)}, '"y" is not an input'),
    "31 MiB of int16": ({"x": np.zeros(LARGE, np.int16)}, 'the input "x" is int16'),
    "many": ({f"x{n}": floats(1) for n in range(1000)}, '"x0", "x1", "x2"'),
}


async def configure(
    server: WatchedServer, good: list[dict[str, Any]], engine: str, files: dict[str, Path]
) -> None:
    """Add services for files that are refused, and remove them."""
    services = [service(name, engine, path) for name, path in files.items()]
    server.server.save(config(*good, *services))
    reasons = await wait_until_unhealthy(server, set(files))
    for name, reason in reasons.items():
        assert str(files[name]) in reason, reason
        assert "Traceback" not in reason
        assert len(reason) < 800
    server.server.save(config(*good))
    await wait_until_gone(server, set(files))


async def expect_refused_tensors(client: FastMLModelClient, tensors: Tensors, words: str) -> None:
    with pytest.raises(GRPCError) as error:
        await client.infer(tensors, timeout=60)
    assert error.value.status is Status.INVALID_ARGUMENT
    assert words in (error.value.message or "")


async def test_invalid_tensors_are_refused_without_affecting_others(server: WatchedServer) -> None:
    since = len(server.server.err.lines)
    async with connect(server, "good") as client:
        await client.infer({"x": floats(1, 4)}, timeout=60)
        for kind, (tensors, words) in WRONG.items():
            attack = partial(expect_refused_tensors, client, tensors, words)
            phase = await server.attack(kind, attack, longest=ANSWERED_WITHIN)
            assert phase.took < ANSWERED_WITHIN, kind
            assert phase.busy < LONGEST_TURN, kind
            assert phase.bystander.failed == 0, phase.bystander.failures

        async def infer_at_once() -> None:
            small = {"x": floats(1, 5)}
            many = (client.infer(small, timeout=60) for _ in range(AT_ONCE * 10))
            told = {str(each) for each in await asyncio.gather(*many, return_exceptions=True)}
            assert len(told) == 1

        phase = await server.attack("all at once", infer_at_once)
        assert phase.busy < LONGEST_TURN
    assert server.server.err.lines[since:] == []


async def test_tensors_as_large_as_a_message_are_handled(server: WatchedServer) -> None:
    async with connect(server, "any-size") as client:
        await client.infer({"x": floats(1)}, timeout=60)
        for kind, x in (
            ("NaN", np.array([np.nan, np.inf, -1], np.float32)),
            ("31 MiB", np.ones(LARGE, np.float32)),
        ):

            async def infer(x: NDArray[np.float32] = x) -> None:
                outputs = await client.infer({"x": x}, timeout=60)
                assert np.array_equal(outputs["y"], np.maximum(x, 0), equal_nan=True)

            phase = await server.attack(kind, infer)
            assert phase.busy < LONGEST_TURN
            assert phase.bystander.failed == 0, phase.bystander.failures

        async def infer_too_much() -> None:
            with pytest.raises(GRPCError) as error:
                await client.infer({"x": floats(8 * MIB)}, timeout=60)
            assert error.value.status is Status.RESOURCE_EXHAUSTED

        phase = await server.attack("more than a message", infer_too_much)
        assert phase.busy < LONGEST_TURN
        assert (await client.infer({"x": floats(2)}, timeout=60))["y"].tolist() == [0, 0]
