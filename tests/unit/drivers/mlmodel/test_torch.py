from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cogwork.core.clock import SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.mlmodel.attributes import TorchAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed
from cogwork.drivers.mlmodel.model_cache import ModelCache
from cogwork.drivers.mlmodel.model_info import validate_inputs
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.mlmodel import MlmodelVision
from cogwork.graph.name import Api, ResourceName

if TYPE_CHECKING:
    from tests.unit.drivers.mlmodel.torch_networks import Records

    from cogwork.drivers.mlmodel import torch as driver

# Users still have TorchScript files, although torch has deprecated them.
pytestmark = [
    pytest.mark.long,
    *(
        pytest.mark.filterwarnings(
            f"ignore:`torch\\.jit\\.{name}` is deprecated:DeprecationWarning"
        )
        for name in ("load", "save", "script", "trace", "trace_method")
    ),
]

Networks = Any
"""The module `torch_networks`, which needs torch."""
Load = Callable[[Path], "driver.TorchEngine"]


@pytest.fixture(scope="session")
def networks() -> Networks:
    """Import torch, which takes a while, only for the tests that use it."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'cogwork[torch]'")
    # The reader of programs creates a temporary directory once per process.
    importlib.import_module("cogwork.drivers.mlmodel.torch_program").import_reader()
    networks = importlib.import_module("tests.unit.drivers.mlmodel.torch_networks")
    networks.torch.manual_seed(1)
    return networks


@pytest.fixture
def load(networks: Networks) -> Load:
    from cogwork.drivers.mlmodel.torch import TorchEngine

    return lambda path: TorchEngine(str(path), threads=1)


@pytest.fixture(scope="session")
def conv(networks: Networks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an exported program, for tests that modify its parts."""
    path = tmp_path_factory.mktemp("torch") / "conv.pt2"
    networks.program(path, networks.Conv(), networks.torch.zeros(2, 3, 8, 8))
    return path


@pytest.fixture
def input_images() -> NDArray[np.float32]:
    """Return read-only images, as they come from the wire."""
    made = np.random.default_rng(1).random((5, 3, 8, 8), np.float32)
    made.flags.writeable = False
    return made


def run_module(module: Any, *inputs: NDArray[Any]) -> Any:
    import torch

    with torch.inference_mode():
        return module(*(torch.from_numpy(each.copy()) for each in inputs))


@pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)
def test_program_is_loaded_in_a_process_that_has_tensorflow(conv: Path) -> None:
    """Two copies of LLVM would crash it."""
    code = (
        "import sys, tensorflow; from cogwork.drivers.mlmodel.torch import TorchEngine; "
        "TorchEngine(sys.argv[1], threads=1)"
    )
    subprocess.run([sys.executable, "-c", code, str(conv)], check=True, timeout=120)


class TestResults:
    def test_scripted_model_agrees_with_torch(
        self, networks: Networks, load: Load, tmp_path: Path, input_images: NDArray[np.float32]
    ) -> None:
        path = tmp_path / "model.anything"
        bare = networks.script(path, networks.Conv())
        outputs = load(path).run({"image": input_images})
        for name, tensor in run_module(bare, input_images).items():
            assert np.array_equal(outputs[name], tensor.numpy())
        assert outputs.keys() == {"features", "scores"}

    def test_traced_model_agrees_with_torch(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        bare = networks.trace(tmp_path / "t.pt", networks.Pair(), *[networks.torch.ones(2, 3)] * 2)
        engine = load(tmp_path / "t.pt")
        outputs = engine.run({"x": x, "y": x})
        expected = run_module(bare, x, x)
        assert [each.name for each in engine.info.inputs] == ["x", "y"]
        assert np.array_equal(outputs["output_0"], expected[0].numpy())
        assert np.array_equal(outputs["output_1"], expected[1].numpy())

    @pytest.mark.parametrize("batch", [1, 2, 5])
    def test_exported_program_agrees_with_its_module_at_any_batch_size(
        self,
        networks: Networks,
        load: Load,
        conv: Path,
        tmp_path: Path,
        input_images: NDArray[np.float32],
        batch: int,
    ) -> None:
        bare = networks.torch.export.load(conv).module()
        outputs = load(conv).run({"image": input_images[:batch]})
        for name, tensor in run_module(bare, input_images[:batch]).items():
            assert np.array_equal(outputs[name], tensor.numpy())

    def test_concurrent_runs_agree_with_sequential_runs(
        self, load: Load, conv: Path, input_images: NDArray[np.float32]
    ) -> None:
        engine = load(conv)
        alone = [engine.run({"image": input_images[i : i + 1]})["scores"] for i in range(5)]
        with ThreadPoolExecutor(4) as pool:
            runs = pool.map(
                lambda i: (i, engine.run({"image": input_images[i : i + 1]})["scores"]),
                [i % 5 for i in range(200)],
            )
            assert all(np.array_equal(scores, alone[i]) for i, scores in runs)

    def test_several_threads_can_load_at_once(self, load: Load, conv: Path) -> None:
        with ThreadPoolExecutor(4) as pool:
            engines = list(pool.map(load, [conv] * 4))
        assert all(engine.info == engines[0].info for engine in engines)

    def test_input_written_by_the_model_is_not_changed(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        networks.script(tmp_path / "w.pt", networks.Writer())
        x = np.full((2, 3), 255, np.float32)
        outputs = load(tmp_path / "w.pt").run({"x": x})
        assert outputs["output"] == 6
        assert np.all(x == 255)

    def test_output_that_is_an_input_is_copied(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        networks.script(tmp_path / "s.pt", networks.Same())
        x = np.ones((2, 3), np.float32)
        outputs = load(tmp_path / "s.pt").run({"x": x})
        assert not np.shares_memory(outputs["output"], x)

    def test_non_contiguous_tensors_are_accepted(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        networks.script(tmp_path / "d.pt", networks.Double())
        engine = load(tmp_path / "d.pt")
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for view in (x[:, ::-1], x.T, x[0, 0], x[:0]):
            assert np.array_equal(engine.run({"x": np.asarray(view)})["output"], view * 2)


class TestModelInfo:
    def test_exported_program_describes_inputs_and_outputs(self, load: Load, conv: Path) -> None:
        facts = load(conv).info
        assert facts.kind == "torch.export"
        assert [str(each) for each in facts.inputs] == ['"image" (float32 ?x3x8x8)']
        assert [str(each) for each in facts.outputs] == [
            '"features" (float32 ?x4x6x6)',
            '"scores" (float32 ?x2)',
        ]

    def test_script_without_metadata_accepts_any_tensor(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        networks.script(tmp_path / "d.pt", networks.Double())
        engine = load(tmp_path / "d.pt")
        assert engine.info.kind == "TorchScript"
        assert [str(each) for each in engine.info.inputs] == ['"x" (any shape)']
        assert [str(each) for each in engine.info.outputs] == ['"output" (any shape)']
        for tensor in (np.ones((1, 2, 3), np.float32), np.ones(4, np.int64)):
            taken = validate_inputs(engine.info.inputs, {"x": tensor})
            output = engine.run(taken)["output"]
            assert (output.dtype, output.shape) == (tensor.dtype, tensor.shape)

    def test_script_without_metadata_is_tried_with_images(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        networks.script(tmp_path / "c.pt", networks.Conv())
        info = load(tmp_path / "c.pt").info
        assert [str(each) for each in info.inputs] == ['"image" (any shape)']
        assert [str(each) for each in info.outputs] == [
            '"features" (float32 1x4x?x?)',
            '"scores" (float32 1x2)',
        ]
        assert "imgsz" not in info.properties

    @pytest.mark.parametrize("side", [224, 416])
    def test_only_size_that_a_script_accepts_is_found(
        self, networks: Networks, load: Load, tmp_path: Path, side: int
    ) -> None:
        networks.script(tmp_path / "c.pt", networks.Classifier(side))
        info = load(tmp_path / "c.pt").info
        assert [str(each) for each in info.outputs] == ['"output" (float32 1x5)']
        assert info.properties["imgsz"] == [side, side]

    async def test_vision_uses_a_script_without_metadata(
        self, networks: Networks, tmp_path: Path
    ) -> None:
        from cogwork.drivers.mlmodel.torch import TorchModel

        networks.script(tmp_path / "c.pt", networks.Classifier(224))
        name = ResourceName(Api.parse("rdk:service:mlmodel"), "model")
        attributes = TorchAttributes(model_path=str(tmp_path / "c.pt"), num_threads=1)
        model = await TorchModel.new(name, attributes, {}, ModelCache(SystemClock()))
        wanted = MlmodelVisionAttributes(
            mlmodel_name="model", remap_output_names={"output": "probability"}
        )
        vision = await MlmodelVision.new(
            ResourceName(Api.parse("rdk:service:vision"), "vision"), wanted, {name: model}
        )
        try:
            assert (vision.is_detector, vision.is_classifier) == (False, True)
        finally:
            await vision.close()
            await model.close()

    def test_metadata_describes_inputs_and_a_trial_run_outputs(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        note = {
            "inputs": [{"name": "picture", "shape": [-1, 3, 8, 8]}],
            "outputs": ["maps", "likelihood"],
            "labels": ["cat", "dog"],
            "description": "pets",
        }
        networks.script(tmp_path / "n.pt", networks.Conv(), {"cogwork.json": note})
        engine = load(tmp_path / "n.pt")
        assert [str(each) for each in engine.info.inputs] == ['"picture" (float32 ?x3x8x8)']
        assert [str(each) for each in engine.info.outputs] == [
            '"maps" (float32 ?x4x6x6)',
            '"likelihood" (float32 ?x2)',
        ]
        assert engine.info.labels is not None
        assert engine.info.labels.names == {0: "cat", 1: "dog"}
        assert engine.info.description == "pets"
        with pytest.raises(InvalidRequest, match=r"takes .*picture"):
            validate_inputs(engine.info.inputs, {"picture": np.zeros((1, 3, 8, 9), np.float32)})

    def test_exported_program_may_contain_metadata(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        note = {"outputs": ["sum"], "labels": ["a"]}
        networks.program(
            tmp_path / "p.pt2",
            networks.Double(),
            networks.torch.ones(2, 3),
            notes={"cogwork.json": note},
        )
        facts = load(tmp_path / "p.pt2").info
        assert [each.name for each in facts.outputs] == ["sum"]
        assert facts.labels is not None

    def test_metadata_written_by_ultralytics_is_read(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        notes = {
            "description": "YOLO",
            "task": "detect",
            "stride": 32,
            "batch": 1,
            "imgsz": [8, 8],
            "names": {"0": "gear", "1": "nut"},
        }
        networks.script(tmp_path / "y.torchscript", networks.Conv(), {"config.txt": notes})
        facts = load(tmp_path / "y.torchscript").info
        assert [str(each) for each in facts.inputs] == ['"image" (float32 1x3x8x8)']
        assert facts.outputs[0].shape == (1, 4, 6, 6)
        assert facts.labels is not None
        assert facts.labels.get(1) == "nut"
        assert (facts.properties["stride"], facts.properties["task"]) == (32, "detect")

    @pytest.mark.parametrize(
        ("network", "names"),
        [
            ("Double", ["output"]),
            ("Detector", ["boxes", "scores"]),
            ("Nested", ["both_0", "both_1"]),
            ("Optional", ["output"]),
        ],
    )
    def test_outputs_are_named_by_the_model(
        self, networks: Networks, load: Load, tmp_path: Path, network: str, names: list[str]
    ) -> None:
        networks.script(tmp_path / "o.pt", getattr(networks, network)())
        assert list(load(tmp_path / "o.pt").run({"x": np.ones(2, np.float32)})) == names

    def test_unsupported_types_are_cast(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        example = networks.torch.ones(2, 3, dtype=networks.torch.bfloat16)
        networks.program(tmp_path / "t.pt2", networks.Types(), example)
        engine = load(tmp_path / "t.pt2")
        dtypes = [each.dtype.name for each in engine.info.outputs]
        assert dtypes == ["float32", "float32", "uint8"]
        assert engine.info.inputs[0].dtype == np.float32
        outputs = engine.run({"x": np.array([[0.5, 0, 2]], np.float32)})
        assert [each.dtype.name for each in outputs.values()] == dtypes
        assert outputs["output_1"].tolist() == [[0.5, 0, 2]]
        assert outputs["output_2"].tolist() == [[1, 0, 1]]

    async def test_model_without_metadata_reports_any_shape(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        from cogwork.drivers.mlmodel.torch import TorchModel

        networks.script(tmp_path / "d.pt", networks.Double())
        name = ResourceName(Api.parse("rdk:service:mlmodel"), "model")
        attributes = TorchAttributes(model_path=str(tmp_path / "d.pt"), num_threads=1)
        model = await TorchModel.new(name, attributes, {}, ModelCache(SystemClock()))
        try:
            metadata = await model.metadata()
            assert [(i.name, i.data_type, list(i.shape)) for i in metadata.input_info] == [
                ("x", "float32", [])
            ]
            assert [(i.name, list(i.shape)) for i in metadata.output_info] == [("output", [])]
            outputs = await asyncio.gather(
                *(model.infer({"x": np.full(1, i, "f4")}) for i in range(8))
            )
            assert [each["output"].tolist() for each in outputs] == [[2.0 * i] for i in range(8)]
        finally:
            await model.close()


class TestFaults:
    @pytest.mark.parametrize("kind", ["empty", "text", "half", "zip"])
    @pytest.mark.parametrize("source", ["script", "program"])
    def test_file_that_is_not_a_model_is_refused_with_advice(
        self,
        networks: Networks,
        load: Load,
        conv: Path,
        tmp_path: Path,
        kind: str,
        source: str,
    ) -> None:
        path = tmp_path / "model.pt"
        if source == "script":
            networks.script(path, networks.Double())
        else:
            path.write_bytes(conv.read_bytes())
        whole = path.read_bytes()
        faulty = {
            "empty": b"",
            "text": b"hello",
            "half": whole[: len(whole) // 2],
            "zip": b"PK\x05\x06" + bytes(18),
        }
        path.write_bytes(faulty[kind])
        with pytest.raises(BadModel, match=r"is not a model.*torch\.export\.save") as caught:
            load(path)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize(
        ("missing", "source"),
        [
            ("models/model.json", "program"),
            ("data/weights/weight_0", "program"),
            ("data/weights/model_weights_config.json", "program"),
            ("archive_version", "program"),
            ("data.pkl", "script"),
            ("constants.pkl", "script"),
        ],
    )
    def test_file_with_a_missing_record_is_refused(
        self,
        networks: Networks,
        load: Load,
        conv: Path,
        tmp_path: Path,
        missing: str,
        source: str,
    ) -> None:
        whole = conv
        if source == "script":
            whole = tmp_path / "whole.pt"
            networks.script(whole, networks.Conv())
        networks.changed(whole, tmp_path / "m.pt", lambda records: records.pop(missing) and None)
        with pytest.raises(BadModel):
            load(tmp_path / "m.pt")

    def test_zip_of_another_kind_is_refused(self, load: Load, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "other.pt", "w") as archive:
            archive.writestr("folder/notes.txt", "hello")
            archive.writestr("folder/version", "3")
        with pytest.raises(BadModel, match="does not contain a model"):
            load(tmp_path / "other.pt")

    def test_input_that_is_not_a_tensor_is_refused(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        networks.script(tmp_path / "l.pt", networks.Listed())
        with pytest.raises(BadModel, match=r'its input "images" is a List\[Tensor\]'):
            load(tmp_path / "l.pt")

    def test_output_of_an_unsupported_type_is_refused(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        example = networks.torch.ones(2, 3, 2)
        networks.program(tmp_path / "c.pt2", networks.Complex(), example)
        with pytest.raises(BadModel, match=r'its tensor "output" has the type torch\.complex64'):
            load(tmp_path / "c.pt2")

    @pytest.mark.parametrize(
        ("note", "words"),
        [
            ({"inputs": [{"name": "x"}]}, r"inputs\.0\.shape"),
            ({"inputs": []}, None),
            ({"inputs": [{"name": "x", "shape": [1], "dtype": "text"}]}, "does not match"),
            ({"inputs": [{"name": "x", "shape": [1]}] * 2}, 'which takes "x"'),
            ({"inputs": [{"name": "x", "shape": [2]}], "outputs": ["a", "b"]}, "returns 1 tensors"),
            ("nonsense", "cogwork.json"),
        ],
    )
    def test_metadata_that_does_not_match_is_refused(
        self, networks: Networks, load: Load, tmp_path: Path, note: Any, words: str | None
    ) -> None:
        networks.script(tmp_path / "n.pt", networks.Double(), {"cogwork.json": note})
        if words is None:
            assert load(tmp_path / "n.pt").info.inputs[0].shape is None
        else:
            with pytest.raises(BadModel, match=words):
                load(tmp_path / "n.pt")

    def test_outputs_stay_unknown_when_no_trial_run_succeeds(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        note = {"inputs": [{"name": "x", "shape": [-1, -1, 5, 5]}]}
        networks.script(tmp_path / "n.pt", networks.Conv(), {"cogwork.json": note})
        assert load(tmp_path / "n.pt").info.outputs == ()

    def test_failed_run_is_reported_in_one_line(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        networks.script(tmp_path / "c.pt", networks.Conv())
        with pytest.raises(RunFailed, match=r"on these tensors: [^\n]*channels[^\n]*$"):
            load(tmp_path / "c.pt").run({"image": np.zeros((1, 2, 8, 8), np.float32)})

    def test_batch_beyond_the_limits_of_the_program_is_refused(
        self, load: Load, conv: Path
    ) -> None:
        with pytest.raises(RunFailed, match="to be <= 16, but got 20"):
            load(conv).run({"image": np.zeros((20, 3, 8, 8), np.float32)})


class Payload:
    """Creates a directory when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "it_ran"
    yield path
    assert not path.exists()


class TestUntrustedCode:
    def test_payload_runs_when_it_is_unpickled(self, tmp_path: Path) -> None:
        pickle.loads(pickle.dumps(Payload(tmp_path / "ran")))
        assert (tmp_path / "ran").exists()

    @pytest.mark.parametrize("form", ["pickle", "torch.save", "module", "state_dict"])
    def test_pickled_objects_are_refused(
        self, networks: Networks, load: Load, tmp_path: Path, mark: Path, form: str
    ) -> None:
        path = tmp_path / "model.pt"
        forms: dict[str, Callable[[], bytes]] = {
            "pickle": lambda: pickle.dumps(Payload(mark), protocol=2),
            "torch.save": lambda: networks.saved(Payload(mark)),
            "module": lambda: networks.saved(networks.Conv()),
            "state_dict": lambda: networks.saved(networks.Conv().state_dict()),
        }
        path.write_bytes(forms[form]())
        with pytest.raises(BadModel, match=r"pickled Python objects.*torch\.jit\.script\(model\)"):
            load(path)

    @pytest.mark.parametrize("record", ["data.pkl", "constants.pkl"])
    def test_pickle_inside_a_script_does_not_run(
        self, networks: Networks, load: Load, tmp_path: Path, mark: Path, record: str
    ) -> None:
        networks.script(tmp_path / "s.pt", networks.Conv())

        def change(records: Records) -> None:
            records[record] = pickle.dumps(Payload(mark), protocol=2)

        networks.changed(tmp_path / "s.pt", tmp_path / "evil.pt", change)
        with pytest.raises(BadModel):
            load(tmp_path / "evil.pt")

    def test_pickled_sample_inputs_of_a_program_are_not_read(
        self, networks: Networks, load: Load, conv: Path, tmp_path: Path, mark: Path
    ) -> None:
        def change(records: Records) -> None:
            records["data/sample_inputs/model.pt"] = networks.saved(Payload(mark))

        networks.changed(conv, tmp_path / "evil.pt2", change)
        load(tmp_path / "evil.pt2").run({"image": np.zeros((1, 3, 8, 8), np.float32)})

    @pytest.mark.parametrize("path_name", ["weight_1", "opaque_obj_0", "custom_obj_0"])
    @pytest.mark.parametrize("folder", ["weights", "constants"])
    def test_pickled_weights_of_a_program_are_refused(
        self,
        networks: Networks,
        load: Load,
        conv: Path,
        tmp_path: Path,
        mark: Path,
        folder: str,
        path_name: str,
    ) -> None:
        def change(records: Records) -> None:
            config = f"data/{folder}/model_{folder}_config.json"
            told = json.loads(records[config])
            meta = {"path_name": path_name, "is_param": False, "use_pickle": True}
            told["config"]["head.bias"] = {**meta, "tensor_meta": None}
            records[config] = json.dumps(told).encode()
            records[f"data/{folder}/{path_name}"] = networks.saved(Payload(mark))

        networks.changed(conv, tmp_path / "evil.pt2", change)
        with pytest.raises(BadModel, match="pickled Python objects"):
            load(tmp_path / "evil.pt2")

    def test_old_program_format_with_a_pickle_is_refused(
        self, networks: Networks, load: Load, conv: Path, tmp_path: Path, mark: Path
    ) -> None:
        def change(records: Records) -> None:
            for part in ("weights", "constants"):
                del records[f"data/{part}/model_{part}_config.json"]
                records[f"data/{part}/model.pt"] = networks.saved(Payload(mark))

        networks.changed(conv, tmp_path / "evil.pt2", change)
        with pytest.raises(BadModel):
            load(tmp_path / "evil.pt2")

    @pytest.mark.parametrize("place", ["formula", "target", "name", "operator", "tree", "key"])
    def test_python_code_in_a_program_is_refused(
        self,
        networks: Networks,
        load: Load,
        conv: Path,
        tmp_path: Path,
        mark: Path,
        place: str,
    ) -> None:
        code = f"__import__('os').mkdir({str(mark)!r})"
        tree = {"type": "collections.defaultdict", "children_spec": []}
        context = json.dumps({"default_factory_module": "antigravity", "dict_context": []})

        def change(records: Records) -> None:
            text = records["models/model.json"].decode()
            model = json.loads(text)
            nodes = model["graph_module"]["graph"]["nodes"]
            if place == "formula":
                model = json.loads(text.replace("Symbol(", f"({code} or Symbol)("))
            elif place == "target":
                nodes[0]["target"] = "torch.os.mkdir"
            elif place == "name":
                model = json.loads(text.replace('"image"', json.dumps(f"image={code}")))
            elif place == "operator":
                nodes[0]["inputs"].append({"name": "", "arg": {"as_operator": "torch.os.mkdir"}})
            elif place == "tree":
                signature = model["graph_module"]["module_call_graph"][0]["signature"]
                signature["out_spec"] = json.dumps([1, {**tree, "context": context}])
            else:
                model["range_constraints"][code] = {"min_val": 1, "max_val": 2}
            records["models/model.json"] = json.dumps(model).encode()

        networks.changed(conv, tmp_path / "evil.pt2", change)
        with pytest.raises(BadModel, match="torch might run as code"):
            load(tmp_path / "evil.pt2")

    def test_guard_code_of_a_program_is_not_run(
        self, networks: Networks, load: Load, conv: Path, tmp_path: Path, mark: Path
    ) -> None:
        def change(records: Records) -> None:
            model = json.loads(records["models/model.json"])
            model["guards_code"] = [f"__import__('os').mkdir({str(mark)!r}) is None"]
            records["models/model.json"] = json.dumps(model).encode()

        networks.changed(conv, tmp_path / "evil.pt2", change)
        load(tmp_path / "evil.pt2").run({"image": np.zeros((1, 3, 8, 8), np.float32)})

    def test_compiled_library_is_refused(
        self, networks: Networks, load: Load, conv: Path, tmp_path: Path
    ) -> None:
        networks.changed(
            conv,
            tmp_path / "a.pt2",
            lambda r: r.update({"data/aotinductor/model/x.so": b"\x7fELF"}),
        )
        with pytest.raises(BadModel, match="compiled library"):
            load(tmp_path / "a.pt2")

    @pytest.mark.parametrize("network", ["Saver", "Mapper"])
    def test_script_that_accesses_files_is_refused(
        self, networks: Networks, load: Load, tmp_path: Path, network: str
    ) -> None:
        networks.script(tmp_path / "f.pt", getattr(networks, network)())
        with pytest.raises(BadModel, match="accesses files"):
            load(tmp_path / "f.pt")

    def test_deeply_nested_attributes_are_refused_in_linear_time(
        self, networks: Networks, load: Load, tmp_path: Path
    ) -> None:
        networks.script(tmp_path / "f.pt", networks.Double())
        depth = 20_000
        nested = b"getattr(" * depth + b"a" + b', "0")' * depth

        def change(records: Records) -> None:
            records["code/nested.py"] = nested

        networks.changed(tmp_path / "f.pt", tmp_path / "deep.pt", change)
        begun = time.process_time()
        with pytest.raises(BadModel, match="accesses files"):
            load(tmp_path / "deep.pt")
        assert time.process_time() - begun < 5

    @pytest.mark.parametrize(
        "call",
        [
            b"ops.aten.save",
            b"(torch).save",
            b"(torch #.\n .  #\n save)",
            b'getattr(torch, "save")',
            b'getattr(torch, "s" "ave")',
            b'getattr(torch, "s\\141ve")',
            b'getattr((torch), "sa" "ve")',
            b'getattr(getattr(ops, "aten"), "sa" "ve")',
        ],
    )
    def test_obfuscated_file_access_in_a_script_is_refused(
        self, networks: Networks, load: Load, tmp_path: Path, call: bytes
    ) -> None:
        networks.script(tmp_path / "f.pt", networks.Saver())

        def change(records: Records) -> None:
            for name in records:
                if name.startswith("code/") and name.endswith(".py"):
                    records[name] = records[name].replace(b"torch.save", call)

        networks.changed(tmp_path / "f.pt", tmp_path / "evil.pt", change)
        with pytest.raises(BadModel, match="accesses files"):
            load(tmp_path / "evil.pt")
