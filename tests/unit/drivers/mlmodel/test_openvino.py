from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from tests.support.models.onnx_models import (
    FLOAT,
    STRING,
    add_constant,
    model,
    one_node,
    product,
    relu,
    save_model,
)
from tests.support.models.real_models import ONNX, model_path, photo_path

import cogwork.drivers.mlmodel
from cogwork.core.clock import SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.mlmodel.attributes import OpenvinoAttributes
from cogwork.drivers.mlmodel.engine import BadModel
from cogwork.drivers.mlmodel.model_cache import ModelCache
from cogwork.graph.name import Api, ResourceName

pytest.importorskip("openvino", reason="OpenVINO is not installed: pip install 'cogwork[openvino]'")
from tests.support.sizes import limit

from cogwork.drivers.mlmodel.openvino import OpenvinoEngine, OpenvinoModel

NAME = ResourceName(Api.parse("rdk:service:mlmodel"), "m")
DEMO = Path(cogwork.drivers.mlmodel.__file__).parent / "demo"
AGREES = 1e-3
"""The largest difference, against the largest value."""
REFUSED_WITHIN = limit(1.0)

Tensors = Mapping[str, NDArray[Any]]
Open = Callable[..., Awaitable[OpenvinoModel]]


@pytest.fixture
async def load() -> AsyncIterator[Open]:
    models = ModelCache(SystemClock())
    async with AsyncExitStack() as stack:

        async def load(path: Path, **attributes: Any) -> OpenvinoModel:
            wanted = OpenvinoAttributes(model_path=str(path), **attributes)
            loaded = await OpenvinoModel.new(NAME, wanted, {}, models)
            stack.push_async_callback(loaded.close)
            return loaded

        yield load


@pytest.fixture
def load_proto(load: Open, tmp_path: Path) -> Callable[[onnx.ModelProto], Awaitable[OpenvinoModel]]:
    return lambda proto: load(save_model(tmp_path / "made.onnx", proto))


Made = Callable[[onnx.ModelProto], Awaitable[OpenvinoModel]]


def run_bare_onnxruntime(path: Path, tensors: Tensors) -> dict[str, NDArray[Any]]:
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(tensors)), strict=True))


def load_photo(name: str, loaded: OpenvinoModel) -> dict[str, NDArray[Any]]:
    """Return a photo of a kind that the model knows: its results for others mean nothing."""
    (wanted,) = loaded.info.inputs
    assert wanted.shape is not None
    read = cv2.imread(str(photo_path(name)))
    assert read is not None
    small = cv2.resize(read, wanted.shape[:1:-1])[:, :, ::-1].astype(np.float32) / 255
    scaled = small * 2 - 1 if wanted.name == "input" else small
    return {wanted.name: np.ascontiguousarray(scaled.transpose(2, 0, 1)[None])}


def largest_difference(got: Tensors, expected: Tensors) -> float:
    assert set(got) == set(expected)
    assert {name: each.shape for name, each in got.items()} == {
        name: each.shape for name, each in expected.items()
    }
    return max(
        float(np.abs(got[name] - tensor).max() / max(np.abs(tensor).max(), 1e-9))
        for name, tensor in expected.items()
    )


@pytest.mark.parametrize("name", ONNX)
async def test_real_models_agree_with_onnxruntime(name: str, load: Open) -> None:
    path = model_path(name)
    loaded = await load(path)
    for shown in ("chelsea.jpg", "coffee.jpg", "astronaut.jpg"):
        tensors = load_photo(shown, loaded)
        expected = run_bare_onnxruntime(path, tensors)
        assert all(each.size for each in expected.values()), "there is nothing to compare"
        far = largest_difference(await loaded.infer(tensors), expected)
        print(f"{name} of {shown}: {far:.1e}")
        assert far < AGREES


async def test_reduced_precision_gives_the_same_class(load: Open) -> None:
    """On processors without a shorter type, the results are equal."""
    path = model_path("efficientnet_lite0_logits.onnx")
    exact, reduced = await load(path), await load(path, precision="reduced")
    assert exact._model is not reduced._model
    for shown in ("chelsea.jpg", "coffee.jpg"):
        tensors = load_photo(shown, exact)
        one, other = [(await each.infer(tensors))["logits"] for each in (exact, reduced)]
        print(f"reduced, {shown}: {np.abs(one - other).max() / np.abs(one).max():.1e}")
        assert one.argmax() == other.argmax()


async def test_metadata_of_the_demo_model_is_read(load: Open) -> None:
    loaded = await load(DEMO / "conveyor.onnx")
    assert loaded.labels is not None
    assert list(loaded.labels.names.values()) == ["gear", "bolt", "nut"]
    metadata = await loaded.metadata()
    assert metadata.type == "OpenVINO"
    assert [each.name for each in metadata.output_info] == ["location", "category", "score"]
    image = np.zeros((1, 240, 320, 3), np.uint8)
    assert (await loaded.infer({"image": image}))["score"].shape == (1, 32)


async def test_tflite_file_can_be_run(load: Open) -> None:
    loaded = await load(DEMO / "conveyor.tflite")
    outputs = await loaded.infer({"image": np.zeros((1, 240, 320, 3), np.uint8)})
    assert outputs.keys() == {"location", "category", "score"}


async def test_outputs_keep_the_names_of_the_file(load_proto: Made) -> None:
    """Layers without effect are dropped, but their names must not replace the output's name."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Identity", ["b"], ["y"]),
    ]
    loaded = await load_proto(model(nodes, [("x", FLOAT, [2])], [("y", FLOAT, [2])]))
    outputs = await loaded.infer({"x": np.array([-1, 1], np.float32)})
    assert {name: each.tolist() for name, each in outputs.items()} == {"y": [0, 1]}
    assert [each.name for each in loaded.info.outputs] == ["y"]


CARRIED = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("name", [*CARRIED, "float32", "float64"])
async def test_supported_types_pass_unchanged(name: str, load_proto: Made) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(name))
    loaded = await load_proto(one_node("Identity", [("x", kind, ["n"])], ("y", kind, ["n"])))
    tensor = np.array([0, 1, 100], name)
    tensor.flags.writeable = False  # as it comes from the wire
    (y,) = (await loaded.infer({"x": tensor})).values()
    assert (y.dtype, y.tolist()) == (tensor.dtype, tensor.tolist())


@pytest.mark.parametrize(
    ("kind", "stands_for", "given", "gives"),
    [("float16", "float32", [0.5, -2, 8], [0.5, -2, 8]), ("bool", "uint8", [0, 1, 7], [0, 1, 1])],
)
async def test_float16_and_bool_are_cast(
    kind: str, stands_for: str, given: list[float], gives: list[float], load_proto: Made
) -> None:
    stored = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    loaded = await load_proto(one_node("Identity", [("x", stored, [3])], ("y", stored, [3])))
    (y,) = (await loaded.infer({"x": np.array(given, stands_for)})).values()
    assert (y.dtype.name, y.tolist()) == (stands_for, gives)


@pytest.mark.parametrize(("kind", "word"), [(TensorProto.BFLOAT16, "bf16"), (STRING, "string")])
async def test_unsupported_types_are_refused(kind: int, word: str, load_proto: Made) -> None:
    with pytest.raises(
        BadModel, match=f'its tensor "x" has the type {word}, which the API does not support'
    ):
        await load_proto(one_node("Identity", [("x", kind, [1])], ("y", kind, [1])))


async def test_dynamic_dimensions_are_accepted_and_others_checked(load_proto: Made) -> None:
    loaded = await load_proto(relu(["n", 4]))
    assert loaded.info.inputs[0].shape == (-1, 4)
    for rows in (1, 5, 2):
        x = np.full((rows, 8), -1, np.float32)[:, ::2]
        assert (await loaded.infer({"x": x}))["y"].tolist() == [[0] * 4] * rows
    with pytest.raises(InvalidRequest, match=r'the model takes "x" \(float32 \?x4\)'):
        await loaded.infer({"x": np.zeros((1, 5), np.float32)})


async def test_bad_files_are_refused_with_one_sentence(load: Open, tmp_path: Path) -> None:
    whole = product().SerializeToString()
    contents = {
        "empty.onnx": b"",
        "text.onnx": b"cat\ndog\n" * 50,
        "half.onnx": whole[: len(whole) // 2],
        "zip.onnx": b"PK\x03\x04" + bytes(60),
        "empty.tflite": b"",
        "cut.tflite": (DEMO / "conveyor.tflite").read_bytes()[:3000],
        "text.xml": b"<net>",
        "rank.onnx": relu(None).SerializeToString(),
        "latin.onnx": whole.replace(b"MatMul", b"MatM\xfcl"),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        began = time.monotonic()
        with pytest.raises(BadModel) as error:
            await load(tmp_path / name)
        assert time.monotonic() - began < REFUSED_WITHIN, name
        words = str(error.value)
        assert words.startswith(f"{tmp_path / name} is not a model that OpenVINO can run: ")
        assert len(words) < 700
    (tmp_path / "model.pt").write_bytes(whole)
    with pytest.raises(BadModel, match=r"supported formats are \.onnx, \.tflite, \.xml"):
        await load(tmp_path / "model.pt")


async def test_overwritten_file_does_not_affect_the_running_model(
    load: Open, tmp_path: Path
) -> None:
    path = save_model(tmp_path / "m.onnx", add_constant(1))
    loaded = await load(path)
    os.truncate(path, 0)
    assert (await loaded.infer({"x": np.zeros(2, np.float32)}))["y"].tolist() == [1, 1]
    assert (await loaded.get_status())["file_changed"]


async def test_concurrent_callers_get_their_own_results(load_proto: Made) -> None:
    loaded = await load_proto(add_constant(0.5))
    many = (loaded.infer({"x": np.full(2, n, np.float32)}) for n in range(60))
    outputs = await asyncio.gather(*many)
    assert [each["y"].tolist() for each in outputs] == [[n + 0.5] * 2 for n in range(60)]


def test_threads_do_not_mix_their_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    engine = OpenvinoEngine(str(save_model(tmp_path / "m.onnx", product(64))), 1, "float32")
    expected = engine.run({"x": np.eye(64, dtype=np.float32)})["y"]

    def rows(start: int) -> bool:
        for n in range(start, start + 200):
            x = np.zeros((1, 64), np.float32)
            x[0, n % 64] = 1
            if not np.allclose(engine.run({"x": x})["y"][0], expected[n % 64], atol=1e-6):
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(rows, range(0, 64, 16))) == [True] * 4
    engine.close()
