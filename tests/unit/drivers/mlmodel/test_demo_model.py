"""The demo model gives the same results in every format, and is right about unseen conveyors."""

from __future__ import annotations

import dataclasses
import functools
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scripts.demo_model.data import Image, to_network_input
from scripts.demo_model.evaluation import Detections, evaluate, render_unseen

import cogwork.drivers.mlmodel
from cogwork.drivers.camera.conveyor import Conveyor
from cogwork.resource.labels import parse_labels

pytestmark = pytest.mark.long

DEMO = Path(cogwork.drivers.mlmodel.__file__).parent / "demo"
SHAPES = {"location": (1, 32, 4), "category": (1, 32), "score": (1, 32)}
NAMES = {0: "gear", 1: "bolt", 2: "nut"}

# This is read when onnxruntime is imported, which otherwise sends telemetry.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

Outputs = Mapping[str, NDArray[Any]]
Run = Callable[[NDArray[np.uint8]], Outputs]


def create_onnx_session() -> Any:
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(
        str(DEMO / "conveyor.onnx"), options, providers=["CPUExecutionProvider"]
    )


@functools.cache
def load_onnx_runner() -> Run:
    session = create_onnx_session()
    return lambda image: dict(zip(SHAPES, session.run(list(SHAPES), {"image": image}), strict=True))


def detect(image: Image) -> Detections:
    return Detections(*(load_onnx_runner()(image[None])[name][0] for name in SHAPES))


@functools.cache
def input_images() -> list[NDArray[np.uint8]]:
    """One raw image, one compressed as JPEG, one resized from another aspect ratio."""
    samples = (
        *render_unseen(640, 480, moments=1, seeds=[2001]),
        *render_unseen(640, 480, moments=1, seeds=[2002], jpeg=75),
        *render_unseen(1280, 720, moments=1, seeds=[2003]),
    )
    return [sample.image[None] for sample in samples]


def assert_agrees_with_onnx(run: Run) -> None:
    for picture in input_images():
        expected, got = load_onnx_runner()(picture), run(picture)
        assert {name: tensor.shape for name, tensor in got.items()} == SHAPES
        assert {tensor.dtype for tensor in got.values()} == {np.dtype(np.float32)}
        assert np.all(np.diff(got["score"]) <= 0)
        assert np.count_nonzero(expected["score"] > 0.5) >= 2
        far = np.abs(output_rows(got)[:, None] - output_rows(expected)[None]).max(axis=2)
        assert far.min(axis=0).max() < 1e-3
        assert far.min(axis=1).max() < 1e-3


def output_rows(outputs: Outputs) -> NDArray[np.float32]:
    """Return rows to pair by content: those with almost equal scores may be swapped."""
    return np.column_stack([outputs[name][0] for name in SHAPES])


def test_onnx_file_names_its_tensors_and_labels() -> None:
    session = create_onnx_session()
    (image,) = session.get_inputs()
    assert (image.name, image.type, image.shape) == ("image", "tensor(uint8)", [1, 240, 320, 3])
    outputs = {each.name: (each.type, tuple(each.shape)) for each in session.get_outputs()}
    assert outputs == {name: ("tensor(float)", shape) for name, shape in SHAPES.items()}
    notes = session.get_modelmeta().custom_metadata_map
    assert parse_labels(notes["names"]).names == NAMES
    assert notes["description"]
    assert notes["author"]


def test_label_files_agree() -> None:
    with zipfile.ZipFile(DEMO / "conveyor.tflite") as attached:
        texts = [attached.read("labels.txt").decode(), (DEMO / "labels.txt").read_text()]
    assert [parse_labels(text).names for text in texts] == [NAMES, NAMES]


def test_tflite_agrees_with_onnx() -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = litert.Interpreter(str(DEMO / "conveyor.tflite"), num_threads=2)
    assert [each["name"] for each in interpreter.get_input_details()] == ["image"]
    assert {each["name"] for each in interpreter.get_output_details()} == set(SHAPES)
    runner = interpreter.get_signature_runner("serving_default")
    (details,) = runner.get_input_details().values()
    assert details["dtype"] is np.uint8
    assert_agrees_with_onnx(lambda image: runner(image=image))


def test_saved_model_agrees_with_onnx() -> None:
    tf = pytest.importorskip("tensorflow")
    signature = tf.saved_model.load(str(DEMO / "conveyor_savedmodel")).signatures["serving_default"]
    _, inputs = signature.structured_input_signature
    assert inputs == {"image": tf.TensorSpec([1, 240, 320, 3], tf.uint8, name="image")}
    assert_agrees_with_onnx(
        lambda image: {
            name: each.numpy() for name, each in signature(image=tf.constant(image)).items()
        }
    )


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_torchscript_agrees_with_onnx() -> None:
    torch = pytest.importorskip("torch")
    script = torch.jit.load(str(DEMO / "conveyor.pt"))

    def run(image: NDArray[np.uint8]) -> Outputs:
        with torch.inference_mode():
            found = script(torch.from_numpy(image))
        return {name: each.numpy() for name, each in found.items()}

    assert_agrees_with_onnx(run)


def test_empty_belt_gives_only_zeros() -> None:
    belt = Conveyor(2004)
    empty = dataclasses.replace(belt.scene_at(20), parts=())
    image = to_network_input(belt.render(empty)[0])
    assert all(not tensor.any() for tensor in load_onnx_runner()(image[None]).values())


@pytest.mark.parametrize(
    ("width", "height", "jpeg"), [(640, 480, None), (1280, 720, 75)], ids=["raw", "wide_jpeg"]
)
def test_demo_model_is_accurate_on_unseen_conveyors(
    width: int, height: int, jpeg: int | None
) -> None:
    samples = render_unseen(width, height, moments=2, jpeg=jpeg, seeds=range(3000, 3010))
    result = evaluate(detect, samples)
    assert result.precision >= 0.95, result
    assert result.recall >= 0.95, result


def test_all_formats_together_are_small() -> None:
    assert sum(file.stat().st_size for file in DEMO.rglob("*") if file.is_file()) < 4_000_000
