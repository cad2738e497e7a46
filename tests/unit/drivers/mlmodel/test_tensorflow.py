from __future__ import annotations

import asyncio
import importlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cogwork.core.clock import SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.mlmodel.attributes import TensorflowAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed
from cogwork.drivers.mlmodel.model_cache import ModelCache
from cogwork.drivers.mlmodel.model_info import validate_inputs
from cogwork.graph.name import Api, ResourceName

if TYPE_CHECKING:
    from cogwork.drivers.mlmodel import tensorflow as driver

# Keras saves its variables in a way that NumPy has deprecated.
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings(
        "ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"
    ),
]

Networks = Any
"""The module `tensorflow_networks`, which needs TensorFlow."""
Load = Callable[[Path], "driver.TensorflowEngine"]


@pytest.fixture(scope="session")
def networks() -> Networks:
    """Import TensorFlow, which takes seconds, only for the tests that use it."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    pytest.importorskip(
        "tensorflow", reason="TensorFlow is not installed: pip install 'cogwork[tensorflow]'"
    )
    return importlib.import_module("tests.unit.drivers.mlmodel.tensorflow_networks")


@pytest.fixture(scope="session")
def load(networks: Networks) -> Load:
    from cogwork.drivers.mlmodel.tensorflow import TensorflowEngine

    return lambda path: TensorflowEngine(str(path), threads=1)


@pytest.fixture(scope="session")
def models(networks: Networks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tensorflow")
    networks.save_all(directory)
    return directory


@pytest.fixture
def input_images() -> NDArray[np.float32]:
    """Return read-only images, as they come from the wire."""
    made = np.random.default_rng(1).random((5, 8, 8, 3), np.float32)
    made.flags.writeable = False
    return made


class TestResults:
    @pytest.mark.parametrize("batch", [1, 2, 5])
    def test_saved_model_agrees_with_tensorflow_at_any_batch_size(
        self,
        networks: Networks,
        load: Load,
        models: Path,
        input_images: NDArray[np.float32],
        batch: int,
    ) -> None:
        outputs = load(models / "exported").run({"image": input_images[:batch]})
        bare = networks.tf.saved_model.load(models / "exported").signatures["serving_default"]
        expected = bare(image=networks.tf.constant(input_images[:batch]))
        assert outputs.keys() == expected.keys() == {"flat", "scores"}
        for name, tensor in expected.items():
            assert np.array_equal(outputs[name], tensor.numpy())

    def test_keras_file_agrees_with_its_saved_model(
        self, load: Load, models: Path, input_images: NDArray[np.float32]
    ) -> None:
        given = {"image": input_images}
        exported = load(models / "exported").run(given)
        for name, output in load(models / "named.keras").run(given).items():
            assert np.array_equal(output, exported[name])

    def test_keras_file_agrees_with_keras(
        self, networks: Networks, load: Load, models: Path, input_images: NDArray[np.float32]
    ) -> None:
        bare = networks.keras.saving.load_model(models / "listed.keras")
        outputs = load(models / "listed.keras").run({"image": input_images})
        for number, tensor in enumerate(bare(input_images.copy(), training=False)):
            assert np.allclose(outputs[f"output_{number}"], tensor.numpy(), atol=1e-6)

    def test_concurrent_runs_agree_with_sequential_runs(
        self, load: Load, models: Path, input_images: NDArray[np.float32]
    ) -> None:
        engine = load(models / "exported")
        alone = [engine.run({"image": input_images[i : i + 1]})["scores"] for i in range(5)]
        with ThreadPoolExecutor(4) as pool:
            runs = pool.map(
                lambda i: (i, engine.run({"image": input_images[i : i + 1]})["scores"]),
                [i % 5 for i in range(200)],
            )
            assert all(np.array_equal(scores, alone[i]) for i, scores in runs)

    def test_unsupported_types_are_cast(self, load: Load, models: Path) -> None:
        engine = load(models / "types")
        assert [str(each) for each in engine.info.inputs] == [
            '"flag" (uint8 scalar)',
            '"x" (float32 ?)',
        ]
        assert [str(each) for each in engine.info.outputs] == [
            '"halved" (float32 ?)',
            '"positive" (uint8 ?)',
            '"size" (int32 1)',
        ]
        outputs = engine.run({"flag": np.array(1, np.uint8), "x": np.array([-1, 3], np.float32)})
        assert outputs["halved"].tolist() == [-0.5, 1.5]
        assert outputs["positive"].tolist() == [0, 1]
        assert [outputs[each.name].dtype for each in engine.info.outputs] == [
            each.dtype for each in engine.info.outputs
        ]


class TestModelInfo:
    def test_tensors_are_named_by_the_signature(self, load: Load, models: Path) -> None:
        facts = load(models / "exported").info
        assert facts.kind == "SavedModel"
        assert [str(each) for each in facts.inputs] == ['"image" (float32 ?x8x8x3)']
        assert [str(each) for each in facts.outputs] == [
            '"flat" (float32 ?x72)',
            '"scores" (float32 ?x3)',
        ]

    @pytest.mark.parametrize(
        ("file", "inputs", "outputs"),
        [
            ("named.keras", ["image"], ["flat", "scores"]),
            ("listed.keras", ["image"], ["output_0", "output_1"]),
            ("row.keras", ["row"], ["output_0"]),
            ("two_inputs.keras", ["left", "right"], ["output_0"]),
            ("two_named_inputs.keras", ["left", "right"], ["output_0"]),
        ],
    )
    def test_keras_tensors_are_named_as_in_the_saved_model(
        self, load: Load, models: Path, file: str, inputs: list[str], outputs: list[str]
    ) -> None:
        engine = load(models / file)
        assert engine.info.kind == "Keras"
        assert [each.name for each in engine.info.inputs] == inputs
        assert [each.name for each in engine.info.outputs] == outputs
        shapes = {each.name: (2, *(each.shape or ())[1:]) for each in engine.info.inputs}
        given = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        assert list(engine.run(given)) == outputs

    def test_only_signature_is_used_whatever_its_name(self, load: Load, models: Path) -> None:
        assert [each.name for each in load(models / "only").info.inputs] == ["x"]

    def test_outputs_are_in_natural_order(self, load: Load, models: Path) -> None:
        names = [each.name for each in load(models / "many").info.outputs]
        assert names == [f"output_{number}" for number in range(12)]

    def test_open_shape_is_reported_as_unknown(self, load: Load, models: Path) -> None:
        engine = load(models / "open")
        assert [str(each) for each in engine.info.inputs] == ['"x" (any shape)']
        for shape in ((), (2,), (2, 3)):
            tensor = np.ones(shape, np.float32)
            taken = validate_inputs(engine.info.inputs, {"x": tensor})
            assert engine.run(taken)["output_0"].shape == shape

    async def test_model_serves_metadata_and_concurrent_runs(
        self, networks: Networks, load: Load, models: Path, input_images: NDArray[np.float32]
    ) -> None:
        from cogwork.drivers.mlmodel.tensorflow import TensorflowModel

        name = ResourceName(Api.parse("rdk:service:mlmodel"), "model")
        attributes = TensorflowAttributes(model_path=str(models / "exported"), num_threads=1)
        loaded = ModelCache(SystemClock())
        model = await TensorflowModel.new(name, attributes, {}, loaded)
        try:
            metadata = await model.metadata()
            assert [list(each.shape) for each in metadata.output_info] == [[-1, 72], [-1, 3]]
            runs = await asyncio.gather(*(model.infer({"image": input_images}) for _ in range(8)))
            assert all(np.array_equal(run["scores"], runs[0]["scores"]) for run in runs)
            with pytest.raises(InvalidRequest, match="float64"):
                await model.infer({"image": input_images.astype(np.float64)})
        finally:
            await model.close()


class TestFaults:
    def test_several_signatures_are_refused_and_listed(self, load: Load, models: Path) -> None:
        with pytest.raises(BadModel, match="signatures first, second; export it with one named"):
            load(models / "two")

    def test_model_without_a_signature_is_refused(self, load: Load, models: Path) -> None:
        with pytest.raises(BadModel, match="has no signature"):
            load(models / "none")

    def test_string_tensors_are_refused(self, load: Load, models: Path) -> None:
        with pytest.raises(BadModel, match='its tensor "x" has the type string'):
            load(models / "texts")

    @pytest.mark.parametrize("kind", ["empty", "text", "half", "zip", "other"])
    def test_file_that_is_not_a_model_is_refused(
        self, load: Load, models: Path, tmp_path: Path, kind: str
    ) -> None:
        path = tmp_path / ("model.h5" if kind == "other" else "model.keras")
        whole = (models / "row.keras").read_bytes()
        faulty = {
            "empty": b"",
            "text": b"hello",
            "half": whole[: len(whole) // 2],
            "zip": b"PK\x05\x06" + bytes(18),
            "other": whole,
        }
        path.write_bytes(faulty[kind])
        with pytest.raises(BadModel) as caught:
            load(path)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize("file", ["saved_model.pb", "variables/variables.index"])
    @pytest.mark.parametrize("content", [None, b"", b"hello"])
    def test_incomplete_saved_model_folder_is_refused(
        self, load: Load, models: Path, tmp_path: Path, file: str, content: bytes | None
    ) -> None:
        shutil.copytree(models / "exported", tmp_path / "model")
        damaged = tmp_path / "model" / file
        if content is None:
            damaged.unlink()
        else:
            damaged.write_bytes(content)
        with pytest.raises(BadModel):
            load(tmp_path / "model")

    def test_failed_run_is_reported_in_one_line(self, load: Load, models: Path) -> None:
        with pytest.raises(RunFailed, match=r"Incompatible shapes: \[2\] vs. \[3\]$"):
            load(models / "sum").run({"x": np.ones(2, np.float32), "y": np.ones(3, np.float32)})


class TestUntrustedCode:
    def test_lambda_layer_is_refused(self, load: Load, models: Path) -> None:
        with pytest.raises(BadModel, match="Lambda"):
            load(models / "lambda.keras")

    @pytest.mark.parametrize(
        ("module", "name"), [("os", "mkdir"), ("builtins", "exec"), ("subprocess", "Popen")]
    )
    def test_layer_class_from_another_module_is_refused(
        self, load: Load, models: Path, tmp_path: Path, module: str, name: str
    ) -> None:
        mark = tmp_path / "it_ran"
        evil = {
            "module": module,
            "class_name": name,
            "registered_name": None,
            "config": {"path": str(mark), "args": ["mkdir", str(mark)], "name": str(mark)},
        }
        with (
            zipfile.ZipFile(models / "row.keras") as source,
            zipfile.ZipFile(tmp_path / "evil.keras", "w") as target,
        ):
            for each in source.namelist():
                data = source.read(each)
                if each == "config.json":
                    config = json.loads(data)
                    config["config"]["layers"].append(evil)
                    data = json.dumps(config).encode()
                target.writestr(each, data)
        with pytest.raises(BadModel, match="could not be deserialized"):
            load(tmp_path / "evil.keras")
        assert not mark.exists()
