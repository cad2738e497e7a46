from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray
from tests.support.models.real_models import model_path
from tests.unit.drivers.mlmodel.tflite_files import (
    Graph,
    Op,
    Operation,
    Signature,
    Tensor,
    addition,
    file_of,
    flatbuffer,
    one_operation,
    packed_weights,
    running_sum,
)

from cogwork.core.clock import SystemClock
from cogwork.drivers.mlmodel import tflite, tflite_crash_probe
from cogwork.drivers.mlmodel.attributes import TfliteAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed
from cogwork.drivers.mlmodel.flatbuffer import MalformedFlatbuffer
from cogwork.drivers.mlmodel.model_cache import ModelCache
from cogwork.drivers.mlmodel.model_info import DYNAMIC, Quantization, TensorSpec
from cogwork.drivers.mlmodel.tflite import TfliteEngine, TfliteModel
from cogwork.drivers.mlmodel.tflite_file import TfliteFile
from cogwork.graph.name import ResourceName
from cogwork.resource.messages.structs import to_dict

SSD = "ssd_mobilenet_v2_coco_quant_postprocess.tflite"
EFFICIENTNET = "efficientnet_lite0_uint8.tflite"
BLAZEFACE = "face_detection_short_range.tflite"

Load = Callable[[bytes], TfliteEngine]
Tensors = dict[str, NDArray[Any]]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Return a function that loads a model from bytes; models are closed after the test."""
    engines = list[TfliteEngine]()

    def load_engine(content: bytes) -> TfliteEngine:
        path = tmp_path / f"{len(engines)}.tflite"
        path.write_bytes(content)
        engines.append(TfliteEngine(str(path), threads=1))
        return engines[-1]

    yield load_engine
    for engine in engines:
        engine.close()


@pytest.fixture
def skip_crash_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the crash probe, for tests that load many good models."""
    monkeypatch.setattr(tflite, "_probe_for_crash", lambda path, file: None)


def read_real_model(name: str) -> bytes:
    return model_path(name).read_bytes()


def random_inputs(engine: TfliteEngine, seed: int) -> Tensors:
    random = np.random.default_rng(seed)
    return {
        each.name: (random.random(each.shape) * 250).astype(each.dtype)
        for each in engine.info.inputs
    }


def run_bare_litert(content: bytes, tensors: Tensors) -> list[NDArray[Any]]:
    """Run the model with LiteRT as its documentation describes."""
    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    for details, tensor in zip(interpreter.get_input_details(), tensors.values(), strict=True):
        interpreter.set_tensor(details["index"], tensor)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def rows(count: int, value: float = 1) -> NDArray[np.float32]:
    return np.full((count, 2), value, np.float32)


@pytest.mark.parametrize("name", [SSD, EFFICIENTNET, BLAZEFACE])
def test_real_models_agree_with_bare_litert(load: Load, name: str) -> None:
    engine = load(read_real_model(name))
    for seed in range(2):
        tensors = random_inputs(engine, seed)
        outputs = engine.run(tensors)
        assert list(outputs) == [each.name for each in engine.info.outputs]
        for output, expected in zip(
            outputs.values(), run_bare_litert(read_real_model(name), tensors), strict=True
        ):
            np.testing.assert_array_equal(output, expected, strict=True)


def test_detector_without_metadata_uses_the_tensor_names(load: Load) -> None:
    facts = load(read_real_model(SSD)).info
    uint8, float32 = np.dtype(np.uint8), np.dtype(np.float32)
    assert facts.kind == "TensorFlow Lite"
    assert facts.inputs == (
        TensorSpec(
            "normalized_input_image_tensor",
            uint8,
            (1, 300, 300, 3),
            quantization=Quantization(0.0078125, 128),
        ),
    )
    assert facts.outputs == (
        TensorSpec("TFLite_Detection_PostProcess", float32, (1, 20, 4)),
        TensorSpec("TFLite_Detection_PostProcess:1", float32, (1, 20)),
        TensorSpec("TFLite_Detection_PostProcess:2", float32, (1, 20)),
        TensorSpec("TFLite_Detection_PostProcess:3", float32, (1,)),
    )
    assert facts.labels is None


async def test_classifier_is_served_with_the_metadata_of_its_file() -> None:
    name = ResourceName.parse("rdk:service:mlmodel/classifier")
    attributes = TfliteAttributes(model_path=str(model_path(EFFICIENTNET)), num_threads=1)
    model = await TfliteModel.new(name, attributes, {}, ModelCache(SystemClock()))
    try:
        metadata = await model.metadata()
        assert metadata.name == "EfficientNet-lite image classifier (quantized)"
        assert metadata.type == "TensorFlow Lite"
        assert metadata.input_info[0].name == "image"
        assert metadata.output_info[0].description.startswith("Probabilities of the 1000 labels")
        extra = to_dict(metadata.output_info[0].extra)
        assert len(extra["names"]) == 1000
        assert extra["quantization"] == {"scale": 1 / 256, "zero_point": 0}
        outputs = await model.infer({"image": np.zeros((1, 224, 224, 3), np.uint8)})
        assert outputs["probability"].shape == (1, 1000)
        assert (await model.get_status())["runs"] == 1
    finally:
        await model.close()


def test_outputs_stay_valid_after_later_runs(load: Load) -> None:
    engine = load(read_real_model(BLAZEFACE))
    first = engine.run(random_inputs(engine, seed=1))
    kept = {name: output.copy() for name, output in first.items()}
    engine.run(random_inputs(engine, seed=2))
    engine.close()
    for name, output in first.items():
        np.testing.assert_array_equal(output, kept[name])


def test_concurrent_callers_get_their_own_results(load: Load) -> None:
    engine = load(read_real_model(BLAZEFACE))
    asked = [random_inputs(engine, seed) for seed in range(8)]
    expected = [run_bare_litert(read_real_model(BLAZEFACE), tensors) for tensors in asked]
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(engine.run, asked * 4))
    for number, answer in enumerate(answers):
        for output, right in zip(answer.values(), expected[number % 8], strict=True):
            np.testing.assert_array_equal(output, right)


def test_overwritten_file_does_not_affect_a_loaded_model(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(read_real_model(BLAZEFACE))
    engine = TfliteEngine(str(path), threads=1)
    tensors = random_inputs(engine, seed=1)
    path.write_bytes(b"")
    outputs = engine.run(tensors)
    np.testing.assert_array_equal(
        outputs["regressors"], run_bare_litert(read_real_model(BLAZEFACE), tensors)[0]
    )
    engine.close()


def test_stateful_model_has_one_state_for_all_threads(load: Load) -> None:
    engine = load(file_of(running_sum()))
    one = {"x": np.ones((1, 1, 1), np.float32)}
    with ThreadPoolExecutor(4) as threads:
        totals = [float(each["total"].item()) for each in threads.map(engine.run, [one] * 20)]
    assert sorted(totals) == list(range(1, 21))


@pytest.mark.usefixtures("skip_crash_probe")
class TestTensorNames:
    def test_names_come_from_the_signature(self, load: Load) -> None:
        signature = Signature("serving_default", {"a": "left", "b": "right"}, {"location": "sum"})
        engine = load(file_of(addition(), signatures=(signature,)))
        assert [each.name for each in engine.info.inputs] == ["a", "b"]
        outputs = engine.run({"b": rows(2, 3), "a": rows(2)})
        np.testing.assert_array_equal(outputs["location"], rows(2, 4))

    def test_names_come_from_the_default_signature_of_any_subgraph(self, load: Load) -> None:
        other = Signature("another", {"a": "left", "b": "right"}, {"c": "sum"})
        default = Signature("serving_default", {"u": "x"}, {"v": "y"}, graph=1)
        negation = one_operation(Op.NEG, (Tensor("x", shape=(-1,)),), Tensor("y", shape=(-1,)))
        engine = load(file_of(addition(), negation, signatures=(other, default)))
        outputs = engine.run({"u": np.arange(3, dtype=np.float32)})
        assert outputs["v"].tolist() == [0, -1, -2]

    def test_names_come_from_the_metadata_without_a_signature(self, load: Load) -> None:
        metadata = {3: [{2: [{0: "first", 1: "a number"}, {0: "second"}], 3: [{0: "both"}]}]}
        engine = load(file_of(addition(), metadata=flatbuffer(metadata, b"M001")))
        assert [each.name for each in engine.info.inputs] == ["first", "second"]
        assert engine.info.inputs[0].description == "a number"
        assert list(engine.run({"first": rows(2), "second": rows(2)})) == ["both"]

    @pytest.mark.parametrize("told", [["same", "same"], ["", "second"], ["first"]])
    def test_names_come_from_the_tensors_when_the_metadata_is_ambiguous(
        self, load: Load, told: list[str]
    ) -> None:
        metadata = {3: [{2: [{0: name} for name in told]}]}
        engine = load(file_of(addition(), metadata=flatbuffer(metadata, b"M001")))
        assert [each.name for each in engine.info.inputs] == ["left", "right"]

    def test_duplicate_tensor_names_are_made_unique(self, load: Load) -> None:
        negated = Operation(Op.NEG, ("x",), ("y",))
        absolute = Operation(Op.ABS, ("x",), ("z",))
        tensors = (Tensor("x"), Tensor("y"), Tensor("z"))
        content = file_of(Graph(tensors, (negated, absolute), ("x",), ("y", "z")))
        engine = load(_rename(content, b"z", b"y"))
        outputs = engine.run({"x": np.array([1, -2], np.float32)})
        assert {name: output.tolist() for name, output in outputs.items()} == {
            "y": [-1, 2],
            "y:2": [1, 2],
        }


def _rename(content: bytes, name: bytes, other: bytes) -> bytes:
    """In the file, a string follows its length."""
    length = len(name).to_bytes(4, "little")
    assert content.count(length + name + b"\0") == 1
    return content.replace(length + name + b"\0", length + other + b"\0")


@pytest.mark.usefixtures("skip_crash_probe")
class TestShapes:
    def test_dynamic_shapes_may_differ_between_runs(self, load: Load) -> None:
        engine = load(file_of(addition(-1)))
        assert engine.info.inputs[0].shape == (DYNAMIC, 2)
        assert engine.info.outputs[0].shape == (DYNAMIC, 2)
        for count in (1, 5, 0, 5, 2):
            outputs = engine.run({"left": rows(count), "right": rows(count, 2)})
            np.testing.assert_array_equal(outputs["sum"], rows(count, 3))

    def test_shapes_that_do_not_match_fail_only_that_run(self, load: Load) -> None:
        engine = load(file_of(addition(-1)))
        for _ in range(3):
            with pytest.raises(RunFailed, match="failed on these tensors: ") as failed:
                engine.run({"left": rows(2), "right": rows(3)})
            assert str(failed.value).count("failed to prepare") == 1
            outputs = engine.run({"left": rows(2), "right": rows(2)})
            np.testing.assert_array_equal(outputs["sum"], rows(2, 2))

    def test_output_may_be_empty(self, load: Load) -> None:
        where = (Tensor("x", "bool", (4,)),)
        engine = load(file_of(one_operation(Op.WHERE, where, Tensor("y", "int64", (-1, 1)))))
        found = engine.run({"x": np.array([0, 1, 0, 1], np.uint8)})
        assert found["y"].tolist() == [[1], [3]]
        nothing = engine.run({"x": np.zeros(4, np.uint8)})
        np.testing.assert_array_equal(nothing["y"], np.empty((0, 1), np.int64), strict=True)


@pytest.mark.usefixtures("skip_crash_probe")
class TestTypes:
    def test_bool_tensors_are_cast(self, load: Load) -> None:
        engine = load(file_of(one_operation(Op.LOGICAL_NOT, (Tensor("x", "bool"),), BOOLS)))
        assert {each.dtype.name for each in (*engine.info.inputs, *engine.info.outputs)} == {
            "uint8"
        }
        outputs = engine.run({"x": np.array([0, 7], np.uint8)})
        np.testing.assert_array_equal(outputs["y"], np.array([1, 0], np.uint8), strict=True)

    def test_float16_tensors_are_cast(self, load: Load) -> None:
        halves = (Tensor("x", "float16"),)
        engine = load(file_of(one_operation(Op.CAST, halves, Tensor("y", "bool"))))
        outputs = engine.run({"x": np.array([0, 0.5], np.float32)})
        assert outputs["y"].tolist() == [0, 1]

    def test_string_tensors_are_refused(self, load: Load) -> None:
        texts = (Tensor("words", "string"), Tensor("others", "string"))
        with pytest.raises(
            BadModel, match='its tensor "words" has the type text, which the API does not'
        ):
            load(file_of(one_operation(Op.EQUAL, texts, BOOLS)))


BOOLS = Tensor("y", "bool")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty; copy the model again"),
        (b"hello", "is not a TensorFlow Lite file; set model_path to the .tflite file"),
        (
            b"\x08\x07\x12\x07pytorch\x1a",
            "is not a TensorFlow Lite file; set model_path to the .tflite file",
        ),
        (b"version https://git-lfs.github.com/spec/v1\n", "but a Git LFS pointer"),
        (b"PK\3\4\x14\0\0\0", "but a zip archive, like .keras"),
        (b"\x18\0\0\0TFL3", "it ends before byte"),
        (b"\x08\0\0\0TFL3" + bytes(400), "check that the file is complete"),
        (file_of(addition())[:-20], "check that the file is complete"),
        (
            file_of(one_operation("FlexAddV2", (Tensor("x"),), Tensor("y"))),
            "its operation AddV2 is a TensorFlow operation that LiteRT does not support; "
            "convert the model with TFLITE_BUILTINS only",
        ),
        (
            file_of(one_operation("edgetpu-custom-op", (Tensor("x"),), Tensor("y"))),
            'LiteRT does not support its operation "edgetpu-custom-op"; convert the model without',
        ),
        (file_of(packed_weights(unpacked=1 << 28)), "larger than its packed weights"),
    ],
)
@pytest.mark.usefixtures("skip_crash_probe")
def test_unusable_files_are_refused_with_the_reason(load: Load, content: bytes, words: str) -> None:
    with pytest.raises(BadModel) as refused:
        load(content)
    assert words in str(refused.value)
    assert "0.tflite" in str(refused.value)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match="cannot be read: No such file"):
        TfliteEngine(str(tmp_path / "none.tflite"), threads=1)


@pytest.mark.usefixtures("skip_crash_probe")
def test_truncated_file_is_refused(load: Load) -> None:
    whole = read_real_model(BLAZEFACE)
    for size in np.linspace(8, len(whole) - 1, 50).astype(int):
        with pytest.raises(BadModel, match="check that the file is complete"):
            load(whole[:size])


class TestCrashProbe:
    def test_crash_happens_in_the_child_process(
        self, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The crash is simulated: real ones depend on the memory layout.
        die = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
        _replace_probe(monkeypatch, tmp_path, die)
        with pytest.raises(BadModel, match=r"crashes LiteRT \S+ \(SIGSEGV\)"):
            load(file_of(addition()))

    def test_executable_runs_the_probe_as_a_module(
        self, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        executable = tmp_path / "cogwork-server"
        executable.write_text(
            f'#!/bin/sh\n[ "$*" = "-m {tflite_crash_probe.__name__}" ] || exit 2\nkill -SEGV $$\n'
        )
        executable.chmod(0o700)
        monkeypatch.setattr(sys, "frozen", True, raising=False)
        monkeypatch.setattr(sys, "executable", str(executable))
        with pytest.raises(BadModel, match=r"crashes LiteRT \S+ \(SIGSEGV\)"):
            load(file_of(addition()))

    def test_operation_without_inputs_never_reaches_the_server(self, load: Load) -> None:
        no_inputs = Operation(Op.SLICE, (), ("y",))
        damaged = Graph((Tensor("x"), Tensor("y")), (no_inputs,), ("x",), ("y",))
        with pytest.raises(BadModel, match=r"crashes LiteRT \S+|operation 0 has no inputs"):
            load(file_of(damaged))
        with pytest.raises(MalformedFlatbuffer, match="operation 0 has no inputs"):
            TfliteFile(file_of(damaged)).check_operator_inputs()

    def test_probe_times_out(
        self, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tflite, "_PROBE_TIMEOUT", 0.1)
        _replace_probe(monkeypatch, tmp_path, "import time; time.sleep(60)")
        with pytest.raises(BadModel, match=r"did not finish its load test within 0\.1 s"):
            load(file_of(addition()))

    def test_file_modified_after_the_probe_is_refused(
        self, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = tmp_path / "0.tflite"
        write = f"import pathlib; pathlib.Path({str(model)!r}).write_bytes(b'another')"
        _replace_probe(monkeypatch, tmp_path, write)
        with pytest.raises(BadModel, match="was modified while it was loaded; load it again"):
            load(file_of(addition()))


def _replace_probe(monkeypatch: pytest.MonkeyPatch, directory: Path, script: str) -> None:
    path = directory / "trial.py"
    path.write_text(script)
    monkeypatch.setattr(tflite_crash_probe, "__file__", str(path))
