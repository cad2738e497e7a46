from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import warnings
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from grpclib.const import Status
from numpy.typing import NDArray
from onnx import TensorProto, helper
from tests.support.machine.served import Serve, refused
from tests.support.models.onnx_models import (
    FLOAT,
    INT64,
    STRING,
    add_constant,
    model,
    one_node,
    product,
    relu,
    save_model,
    save_with_external_data,
)
from tests.support.models.real_models import ONNX, model_path
from tests.support.paths import REPOSITORY
from tests.support.sizes import limit
from tests.support.waiting import pass_time

from cogwork.core.clock import SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.mlmodel.attributes import OnnxAttributes
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed
from cogwork.drivers.mlmodel.file_metadata import (
    list_onnx_data_files,
    parse_file_metadata,
    read_onnx_properties,
)
from cogwork.drivers.mlmodel.model_cache import ModelCache
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.sdk import clean_import as sdk

onnxruntime = pytest.importorskip("onnxruntime")
from cogwork.drivers.mlmodel.onnx import OnnxModel  # noqa: E402

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.services.mlmodel import MLModelClient  # noqa: E402
from viam.utils import struct_to_dict  # noqa: E402

NAME = ResourceName(Api.parse("rdk:service:mlmodel"), "m")
REFUSED_WITHIN = limit(1.0)
"""Seconds."""
MUTANTS = 150

Tensors = Mapping[str, NDArray[Any]]
Open = Callable[..., Awaitable[OnnxModel]]


@pytest.fixture
async def load() -> AsyncIterator[Open]:
    models = ModelCache(SystemClock())
    async with AsyncExitStack() as stack:

        async def load(path: Path, **attributes: Any) -> OnnxModel:
            wanted = OnnxAttributes(model_path=str(path), **attributes)
            loaded = await OnnxModel.new(NAME, wanted, {}, models)
            stack.push_async_callback(loaded.close)
            return loaded

        yield load


@pytest.fixture
def load_proto(load: Open, tmp_path: Path) -> Callable[[onnx.ModelProto], Awaitable[OnnxModel]]:
    return lambda proto: load(save_model(tmp_path / "made.onnx", proto))


Made = Callable[[onnx.ModelProto], Awaitable[OnnxModel]]


def run_bare_onnxruntime(path: Path, tensors: Tensors) -> dict[str, NDArray[Any]]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(tensors)), strict=True))


def assert_same(got: Tensors, expected: Tensors) -> None:
    assert set(got) == set(expected)
    for name, tensor in expected.items():
        assert got[name].dtype == tensor.dtype, name
        assert got[name].shape == tensor.shape, name
        assert np.array_equal(got[name], tensor, equal_nan=tensor.dtype.kind == "f"), name


def noise(shape: tuple[int, ...], dtype: Any = np.float32) -> NDArray[Any]:
    return np.asarray(np.random.default_rng(1).random(shape) * 3, dtype)


@pytest.mark.parametrize("name", ONNX)
async def test_real_models_agree_with_bare_onnxruntime(name: str, load: Open, serve: Serve) -> None:
    path = model_path(name)
    loaded = await load(path)
    (wanted,) = loaded.info.inputs
    assert wanted.shape is not None
    tensors = {wanted.name: noise(wanted.shape)}
    expected = run_bare_onnxruntime(path, tensors)
    assert_same(await loaded.infer(tensors), expected)
    async with serve(loaded) as channel:
        assert_same(await MLModelClient("m", channel).infer(tensors), expected)


async def test_metadata_of_a_real_yolo_is_read(load: Open) -> None:
    loaded = await load(model_path("yolov2tiny_v8layout_w8.onnx"))
    assert loaded.labels is not None
    assert (len(loaded.labels), loaded.labels.get(15)) == (80, "cat")
    metadata = await loaded.metadata()
    told: Any = struct_to_dict(metadata.output_info[0].extra)
    assert told["imgsz"] == [416, 416]
    assert told["stride"] == 32
    assert told["names"][15] == "cat"
    assert metadata.type == "ONNX"


CARRIED = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


class TestTypes:
    @pytest.mark.parametrize("name", [*CARRIED, "float32", "float64"])
    async def test_supported_types_pass_unchanged(
        self, name: str, load_proto: Made, serve: Serve
    ) -> None:
        dtype = np.dtype(name)
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        loaded = await load_proto(one_node("Identity", [("x", kind, ["n"])], ("y", kind, ["n"])))
        (x,) = loaded.info.inputs
        assert (x.dtype, x.shape) == (dtype, (-1,))
        limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        tensor = np.array([limits.min, 0, 1, limits.max], dtype)
        assert_same(await loaded.infer({"x": tensor}), {"y": tensor})
        async with serve(loaded) as channel:
            assert_same(await MLModelClient("m", channel).infer({"x": tensor}), {"y": tensor})
        assert (await loaded.metadata()).input_info[0].data_type == name

    @pytest.mark.parametrize(
        ("kind", "stands_for", "given", "gives"),
        [
            ("float16", "float32", [0.5, -65504, 0.1], [0.5, -65504, np.float16(0.1)]),
            ("bool", "uint8", [0, 1, 7], [0, 1, 1]),
        ],
    )
    async def test_float16_and_bool_are_cast(
        self, kind: str, stands_for: str, given: list[float], gives: list[float], load_proto: Made
    ) -> None:
        stored = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        loaded = await load_proto(one_node("Identity", [("x", stored, [3])], ("y", stored, [3])))
        info = (await loaded.metadata()).input_info[0]
        assert info.data_type == stands_for
        outputs = await loaded.infer({"x": np.array(given, stands_for)})
        assert_same(outputs, {"y": np.array(gives, stands_for)})
        with pytest.raises(InvalidRequest, match=f'the model takes "x" \\({stands_for} 3\\)'):
            await loaded.infer({"x": np.array(given, kind)})

    async def test_value_beyond_float16_becomes_infinite(self, load_proto: Made) -> None:
        stored = TensorProto.FLOAT16
        loaded = await load_proto(one_node("Identity", [("x", stored, [1])], ("y", stored, [1])))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            outputs = await loaded.infer({"x": np.array([1e6], np.float32)})
        assert np.isposinf(outputs["y"]).all()

    @pytest.mark.parametrize(
        ("proto", "words"),
        [
            (
                one_node("Identity", [("x", STRING, [1])], ("y", STRING, [1])),
                'its tensor "x" has the type tensor(string), which the API does not support',
            ),
            (
                one_node("Cast", [("x", FLOAT, [1])], ("text", STRING, [1]), to=STRING),
                'its tensor "text" has the type tensor(string), which the API does not support',
            ),
            (
                one_node("Cast", [("x", FLOAT, [1])], ("y", TensorProto.BFLOAT16, [1]), to=16),
                'its tensor "y" has the type tensor(bfloat16), which the API does not support',
            ),
        ],
    )
    async def test_unsupported_types_are_refused(
        self, proto: onnx.ModelProto, words: str, load_proto: Made
    ) -> None:
        with pytest.raises(BadModel) as error:
            await load_proto(proto)
        assert words in str(error.value)


class TestTensors:
    async def test_dynamic_dimensions_accept_any_size(self, load_proto: Made) -> None:
        loaded = await load_proto(relu(["batch", 3, "h", "w"]))
        assert loaded.info.inputs[0].shape == (-1, 3, -1, -1)
        assert list((await loaded.metadata()).input_info[0].shape) == [-1, 3, -1, -1]
        for shape in ((1, 3, 2, 5), (4, 3, 7, 1), (0, 3, 2, 2)):
            x = noise(shape) - 1
            assert_same(await loaded.infer({"x": x}), {"y": np.maximum(x, 0)})
        words = r'the input "x" is float32 1x4x2x2; the model takes "x" \(float32 \?x3x\?x\?\)'
        with pytest.raises(InvalidRequest, match=words):
            await loaded.infer({"x": noise((1, 4, 2, 2))})

    @pytest.mark.parametrize("extents", [None, []])
    async def test_scalar_and_unknown_shapes_are_accepted(
        self, extents: list[int] | None, load_proto: Made
    ) -> None:
        """For a scalar, onnxruntime reports an unknown shape, and does not check it."""
        loaded = await load_proto(relu(extents))
        assert str(loaded.info.inputs[0]) == '"x" (any shape)'
        x = np.array(-2.0, np.float32)
        assert_same(await loaded.infer({"x": x}), {"y": np.zeros((), np.float32)})
        with pytest.raises(RunFailed, match=r"Unexpected input data type.*double"):
            await loaded.infer({"x": np.array(1.0)})

    async def test_unknown_shape_accepts_every_tensor(self, load_proto: Made) -> None:
        loaded = await load_proto(relu(None))
        for shape in ((), (3,), (2, 1, 2)):
            x = noise(shape)
            assert_same(await loaded.infer({"x": x}), {"y": x})

    async def test_dimension_beyond_int32_is_reported_as_unknown(self, load_proto: Made) -> None:
        loaded = await load_proto(relu([2**40, 4]))
        assert list((await loaded.metadata()).input_info[0].shape) == [-1, 4]
        with pytest.raises(InvalidRequest, match="1099511627776x4"):
            await loaded.infer({"x": noise((1, 4))})

    async def test_tensors_may_have_any_name(self, load_proto: Made, serve: Serve) -> None:
        names = ("images:0", "schräg und/leer", "z")
        nodes = [
            helper.make_node("Add", list(names[:2]), ["sum"]),
            helper.make_node("Sub", [names[2], names[0]], ["difference:1"]),
            helper.make_node("Shape", [names[0]], ["size"]),
        ]
        loaded = await load_proto(
            model(
                nodes,
                [(name, FLOAT, [2]) for name in names],
                [("size", INT64, [1]), ("sum", FLOAT, [2]), ("difference:1", FLOAT, [2])],
            )
        )
        a, b, c = (np.array(pair, np.float32) for pair in ((1, 2), (3, 4), (7, 9)))
        expected = {"size": np.array([2]), "sum": a + b, "difference:1": c - a}
        tensors = dict(zip(names, (a, b, c), strict=True))
        assert_same(await loaded.infer(tensors), expected)
        metadata = await loaded.metadata()
        assert [each.name for each in metadata.input_info] == list(names)
        assert [each.name for each in metadata.output_info] == list(expected)
        async with serve(loaded) as channel:
            assert_same(await MLModelClient("m", channel).infer(tensors), expected)

    async def test_input_may_be_an_output(self, load_proto: Made) -> None:
        loaded = await load_proto(model([], [("x", FLOAT, [2])], [("x", FLOAT, [2])]))
        assert_same(await loaded.infer({"x": noise((2,))}), {"x": noise((2,))})

    async def test_nan_and_infinity_pass_unchanged(self, load_proto: Made, serve: Serve) -> None:
        loaded = await load_proto(relu([4]))
        x = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
        expected = run_bare_onnxruntime(Path(path_of(loaded)), {"x": x})
        assert_same(await loaded.infer({"x": x}), expected)
        async with serve(loaded) as channel:
            assert_same(await MLModelClient("m", channel).infer({"x": x}), expected)

    async def test_a_million_values_pass_over_the_api(self, load_proto: Made, serve: Serve) -> None:
        loaded = await load_proto(relu(["n"]))
        x = noise((1_000_000,))
        async with serve(loaded) as channel:
            assert_same(await MLModelClient("m", channel).infer({"x": x}), {"y": x})

    async def test_non_contiguous_tensors_are_accepted(self, load_proto: Made) -> None:
        loaded = await load_proto(relu([3, 4]))
        for x in (noise((4, 3)).T, noise((6, 8))[::2, ::2], np.asfortranarray(noise((3, 4)))):
            assert_same(await loaded.infer({"x": x}), {"y": np.ascontiguousarray(x)})

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({}, 'the input "x" (float32 ?x4) is missing'),
            (
                {"image": noise((1, 4))},
                '"image" is not an input of the model; the input "x" (float32 ?x4) is missing',
            ),
            (
                {"x": noise((1, 4)), "mask": noise((1,))},
                '"mask" is not an input of the model; it takes "x" (float32 ?x4)',
            ),
            (
                {"x": noise((1, 4), np.float64)},
                'the input "x" is float64 1x4; the model takes "x" (float32 ?x4)',
            ),
            (
                {"x": noise((1, 5))},
                'the input "x" is float32 1x5; the model takes "x" (float32 ?x4)',
            ),
            ({"x": noise((4,))}, 'the input "x" is float32 4; the model takes "x" (float32 ?x4)'),
            (
                {"x": np.array(1, np.float32)},
                'the input "x" is float32 scalar; the model takes "x" (float32 ?x4)',
            ),
        ],
    )
    async def test_inputs_that_do_not_match_are_refused_with_what_is_expected(
        self, given: Tensors, words: str, load_proto: Made, serve: Serve
    ) -> None:
        loaded = await load_proto(relu())
        with pytest.raises(InvalidRequest) as error:
            await loaded.infer(given)
        assert str(error.value) == words
        async with serve(loaded) as channel:
            with refused() as told:
                await MLModelClient("m", channel).infer(dict(given))
        assert (told.status, told.words) == (Status.INVALID_ARGUMENT, words)

    async def test_long_input_names_are_truncated_in_errors(self, load_proto: Made) -> None:
        loaded = await load_proto(relu())
        with pytest.raises(InvalidRequest) as error:
            await loaded.infer({f"{n}" * 5000: noise((1,)) for n in range(100)})
        assert len(str(error.value)) < 700

    async def test_error_of_the_engine_is_reported_as_run_failure(
        self, load_proto: Made, capfd: pytest.CaptureFixture[str]
    ) -> None:
        proto = model(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            [("x", FLOAT, ["a", "b"])],
            [("y", FLOAT, ["a", 2])],
            {"w": noise((3, 2))},
        )
        loaded = await load_proto(proto)
        with pytest.raises(RunFailed) as error:
            await loaded.infer({"x": noise((2, 5))})
        assert str(error.value).startswith("the model failed on these tensors: Non-zero")
        assert "dimension mismatch" in str(error.value)
        assert_same(await loaded.infer({"x": noise((1, 3))}), {"y": noise((1, 3)) @ noise((3, 2))})
        assert capfd.readouterr() == ("", "")

    @pytest.mark.parametrize("many", [2**45, 2**62, -5])
    async def test_allocation_failure_is_reported_as_run_failure(
        self, many: int, load_proto: Made, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """The message leaves out source locations of the engine."""
        loaded = await load_proto(one_node("Expand", [("x", FLOAT, [1]), ("n", INT64, [1])]))
        with pytest.raises(RunFailed) as error:
            await loaded.infer({"x": noise((1,)), "n": np.array([many])})
        assert "onnxruntime_src" not in str(error.value)
        assert "[ONNXRuntimeError]" not in str(error.value)
        assert capfd.readouterr() == ("", "")


class TestFileMetadata:
    async def test_metadata_of_the_file_is_reported(self, load: Open, tmp_path: Path) -> None:
        notes = {
            "names": "{0: 'gear', 2: 'nut'}",
            "imgsz": "[240, 320]",
            "stride": "32",
            "author": "A. Person",
            "description": "Finds parts",
        }
        loaded = await load(save_model(tmp_path / "m.onnx", relu(notes=notes)))
        assert loaded.labels is not None
        assert dict(loaded.labels.names) == {0: "gear", 2: "nut"}
        metadata = await loaded.metadata()
        assert (metadata.name, metadata.description) == ("tiny", "Finds parts")
        extra = struct_to_dict(metadata.output_info[0].extra)
        assert extra["names"] == ["gear", "1", "nut"]
        assert (extra["imgsz"], extra["stride"], extra["author"]) == ([240, 320], 32, "A. Person")

    async def test_label_file_overrides_labels_of_the_model(
        self, load: Open, tmp_path: Path
    ) -> None:
        file = tmp_path / "labels.txt"
        file.write_text("cat\ndog\n")
        path = save_model(tmp_path / "m.onnx", relu(notes={"names": "['gear']"}))
        loaded = await load(path, label_path=str(file))
        (output,) = (await loaded.metadata()).output_info
        assert struct_to_dict(output.extra) == {"labels": str(file), "names": ["cat", "dog"]}
        assert [each.name for each in output.associated_files] == [str(file)]

    @pytest.mark.parametrize(
        "text",
        [
            "{[]: 1}",
            "9" * 400,
            "-" * 4000 + "1",
            "[" * 80 + "]" * 80,
            r"'\ud800'",
            r"{'\ud800': 1}",
            "1e999",
            "[1, 1e999]",
            "{1: 2}",
            "{1, 2}",
            "b'x'",
            "1j",
            "lambda: 1",
            "[" + "1, " * 50_000 + "]",
        ],
    )
    async def test_value_that_is_not_a_plain_literal_stays_text(
        self, text: str, load: Open, tmp_path: Path
    ) -> None:
        assert parse_file_metadata({"note": text}).properties == {"note": text}
        loaded = await load(save_model(tmp_path / "m.onnx", relu(notes={"note": text})))
        extra = (await loaded.metadata()).output_info[0].extra
        assert extra.FromString(extra.SerializeToString())["note"] == text

    async def test_unreadable_label_names_are_ignored(self, load: Open, tmp_path: Path) -> None:
        loaded = await load(
            save_model(tmp_path / "m.onnx", relu(notes={"names": "{1: 2, 'a': []}"}))
        )
        assert loaded.labels is None
        assert (await loaded.infer({"x": noise((1, 4))})).keys() == {"y"}

    def test_metadata_is_read_without_the_engine(self, tmp_path: Path) -> None:
        notes = {"a": "1", "ü": "ö", "empty": ""}
        assert (
            read_onnx_properties(str(save_model(tmp_path / "m.onnx", relu(notes=notes)))) == notes
        )
        for damaged in (b"", b"\x72\xff", b"hello", b"\x72\x02\x0a\x00"):
            (tmp_path / "bad.onnx").write_bytes(damaged)
            assert read_onnx_properties(str(tmp_path / "bad.onnx")) == {}


def write_damaged_files(folder: Path) -> dict[str, Path]:
    whole = product().SerializeToString()
    with zipfile.ZipFile(folder / "zip", "w") as archive:
        archive.writestr("model.onnx", whole)
    contents = {
        "empty": b"",
        "text": b"a label\nanother label\n" * 100,
        "tflite": b"\x1c\0\0\0TFL3" + bytes(200),
        "zeros": bytes(1000),
        "half": whole[: len(whole) // 2],
        "all but a byte": whole[:-1],
        "start": whole[:20],
        "latin names": whole.replace(b"tiny", b"t\xefny").replace(b"\x01x", b"\x01\xef"),
        "no such op": one_node("Nope", [("x", FLOAT, [1])]).SerializeToString(),
        "no such output": model(
            [helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, [1])], [("z", FLOAT, [1])]
        ).SerializeToString(),
        "unknown version": relu().SerializeToString().replace(b"\x10\x11", b"\x10\x7f"),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {name: folder / name for name in (*contents, "zip")}


class TestBadFiles:
    async def test_damaged_files_are_refused_with_one_sentence(
        self, load: Open, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        for name, path in write_damaged_files(tmp_path).items():
            began = time.monotonic()
            with pytest.raises(BadModel) as error:
                await load(path)
            assert time.monotonic() - began < REFUSED_WITHIN, name
            words = str(error.value)
            start = f"{path} is not a model that onnxruntime {onnxruntime.__version__} can run: "
            assert words.startswith(start), name
            assert words.endswith("; check that the file is complete, or export it again"), name
            assert len(words) < 600
        assert capfd.readouterr() == ("", "")

    async def test_missing_and_irregular_files_are_refused(
        self, load: Open, tmp_path: Path
    ) -> None:
        (tmp_path / "circle").symlink_to(tmp_path / "circle")
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "link").symlink_to("nowhere")
        for path, words in (
            (tmp_path / "missing.onnx", "No such file or directory"),
            (tmp_path / "circle", "cannot be read"),
            (tmp_path / "pipe", "is neither a file nor a folder"),
            (tmp_path / "folder", "is not a model that onnxruntime"),
            (Path("a\0b"), r"cannot be read: (lstat: )?embedded null"),
        ):
            with pytest.raises(BadModel, match=words):
                await load(path)

    async def test_missing_weights_are_refused(self, load: Open, tmp_path: Path) -> None:
        path = save_with_external_data(tmp_path / "apart.onnx", product())
        (tmp_path / "apart.data").unlink()
        with pytest.raises(BadModel, match=r"apart\.data"):
            await load(path)

    async def test_truncated_weights_are_refused(self, load: Open, tmp_path: Path) -> None:
        path = save_with_external_data(tmp_path / "apart.onnx", product())
        os.truncate(tmp_path / "apart.data", 100)
        with pytest.raises(BadModel, match=r"apart\.onnx is not a model"):
            await load(path)

    async def test_weights_outside_the_folder_are_refused(self, load: Open, tmp_path: Path) -> None:
        """A model must not read files outside of its folder."""
        inside = tmp_path / "inside"
        inside.mkdir()
        path = save_with_external_data(inside / "apart.onnx", product())
        (inside / "apart.data").rename(tmp_path / "m.data")
        path.write_bytes(path.read_bytes().replace(b"apart.data", b"..//m.data"))
        assert list_onnx_data_files(str(path)) == {"..//m.data"}
        with pytest.raises(BadModel):
            await load(path)

    def test_mutated_files_do_not_crash_the_process(self, tmp_path: Path) -> None:
        """Run them in a child process, which would crash."""
        done = subprocess.run(
            [sys.executable, "-c", MUTATE, str(MUTANTS)],
            cwd=REPOSITORY,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert re.fullmatch(r"\d+ mutants ran, \d+ were refused; .*\n", done.stdout), done.stdout
        print(done.stdout)


MUTATE = """
import random, sys, tempfile, time
from pathlib import Path
from tests.support.models.onnx_models import product, relu
from cogwork.drivers.mlmodel.engine import BadModel, RunFailed
from cogwork.drivers.mlmodel.model_info import validate_inputs
from cogwork.drivers.mlmodel.metadata_proto import build_metadata
from cogwork.drivers.mlmodel.onnx import OnnxEngine
import numpy as np

rng = random.Random(7)
seeds = [each.SerializeToString() for each in (
    product(8), relu(notes={"names": "['a', 'b']", "stride": "32"}))]
path = Path(tempfile.mkdtemp()) / "mutant.onnx"
ran = refused = 0
slowest = 0.0
for number in range(int(sys.argv[1])):
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(data))
        match rng.randrange(4):
            case 0: data[at] ^= 1 << rng.randrange(8)
            case 1: data[at] = rng.choice((0, 127, 128, 255))
            case 2: del data[at : at + rng.randrange(1, 9)]
            case 3: data[at:at] = data[: rng.randrange(1, 9)]
    path.write_bytes(data)
    began = time.monotonic()
    print(number, file=sys.stderr, flush=True)
    try:
        engine = OnnxEngine(str(path), 1)
    except BadModel:
        refused += 1
    else:
        build_metadata(engine.info, None, engine.info.labels).SerializeToString()
        shapes = {each.name: [2 if e < 0 else e for e in each.shape or ()]
            for each in engine.info.inputs}
        if all(np.prod(shape, dtype=float) < 1e6 for shape in shapes.values()):
            tensors = {each.name: np.ones(shapes[each.name], each.dtype)
                for each in engine.info.inputs}
            try:
                engine.run(validate_inputs(engine.info.inputs, tensors))
                ran += 1
            except RunFailed:
                refused += 1
        engine.close()
    slowest = max(slowest, time.monotonic() - began)
print(f"{ran} mutants ran, {refused} were refused; the slowest took {slowest * 1000:.0f} ms")
"""


def path_of(loaded: OnnxModel) -> str:
    return loaded._model.version.path


class TestReplacedFiles:
    """A running model continues unchanged when its file is replaced."""

    async def is_file_changed(self, loaded: OnnxModel) -> Any:
        return (await loaded.get_status())["file_changed"]

    async def run_model(self, loaded: OnnxModel) -> float:
        return float((await loaded.infer({"x": np.zeros(2, np.float32)}))["y"][0])

    async def test_file_overwritten_in_place_is_noticed(self, load: Open, tmp_path: Path) -> None:
        path = save_model(tmp_path / "m.onnx", add_constant(1))
        old = await load(path)
        assert not await self.is_file_changed(old)
        path.write_bytes(add_constant(2).SerializeToString())
        assert await self.is_file_changed(old)
        assert await self.run_model(old) == 1
        new = await load(path)
        assert (await self.run_model(new), await self.run_model(old)) == (2, 1)
        assert not await self.is_file_changed(new)

    async def test_file_replaced_by_one_of_equal_size_and_time_is_noticed(
        self, load: Open, tmp_path: Path
    ) -> None:
        """This happens when an archive is extracted."""
        path, other = tmp_path / "m.onnx", tmp_path / "other"
        for file, number in ((path, 1), (other, 2)):
            save_model(file, add_constant(number))
            os.utime(file, (1_700_000_000, 1_700_000_000))
        old = await load(path)
        other.rename(path)
        assert await self.is_file_changed(old)
        new = await load(path)
        assert (await self.run_model(new), await self.run_model(old)) == (2, 1)

    async def test_removed_file_is_noticed(self, load: Open, tmp_path: Path) -> None:
        path = save_model(tmp_path / "m.onnx", add_constant(1))
        old = await load(path)
        path.unlink()
        assert await self.is_file_changed(old)
        assert await self.run_model(old) == 1

    async def test_truncated_weights_do_not_affect_the_running_model(
        self, load: Open, tmp_path: Path
    ) -> None:
        """If the weights were memory-mapped, the process would crash here."""
        path = save_with_external_data(tmp_path / "apart.onnx", product(256))
        loaded = await load(path)
        x = noise((1, 256))
        before = await loaded.infer({"x": x})
        os.truncate(tmp_path / "apart.data", 0)
        assert_same(await loaded.infer({"x": x}), before)
        assert "apart.data" not in Path("/proc/self/maps").read_text()


async def test_status_describes_the_loaded_model(load: Open, tmp_path: Path) -> None:
    path = save_model(tmp_path / "m.onnx", relu())
    loaded, _ = await load(path), await load(path)
    await loaded.infer({"x": noise((1, 4))})
    assert dict(await loaded.get_status()) == {
        "file": str(path),
        "bytes": path.stat().st_size,
        "kind": "ONNX",
        "runs": 1,
        "services": 2,
        "file_changed": False,
    }


async def test_idle_threads_do_not_spin(load: Open, tmp_path: Path) -> None:
    loaded = await load(save_model(tmp_path / "m.onnx", product(256)), num_threads=2)
    x = noise((64, 256))
    await loaded.infer({"x": x})
    began, computed = time.monotonic(), time.process_time()
    for _ in range(20):
        await loaded.infer({"x": x})
        await pass_time(0.01)  # what idle threads do with it is measured
    assert time.process_time() - computed < 0.6 * (time.monotonic() - began)
