"""`cogwork model …` as a person runs it."""

from __future__ import annotations

import builtins
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.models.onnx_models import FLOAT, one_node, relu, save_model

import cogwork.drivers.mlmodel
from cogwork.cli.main import main
from cogwork.cli.model.inspect import detect_engine

pytest.importorskip("onnxruntime")

DEMO = Path(cogwork.drivers.mlmodel.__file__).parent / "demo"
NOTES = {"names": "['gear', 'bolt']", "stride": "32", "author": "A. Person"}


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    return save_model(tmp_path / "parts.onnx", relu(["n", 4], notes=NOTES))


def run_model_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["model", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


class TestShow:
    def test_show_describes_inputs_and_outputs(
        self, model_file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, out, err = run_model_command(capsys, "show", str(model_file))
        assert (code, err) == (0, "")
        first, *lines = out.splitlines()
        assert first == f"{model_file}: ONNX, 0.0 MB, run by onnx_cpu"
        words = [" ".join(line.split()) for line in lines]
        assert words[:4] == [
            "name tiny",
            "input x float32 ?x4",
            "output y float32 ?x4",
            "labels gear, bolt",
        ]
        assert set(words[4:6]) == {"stride 32", "author A. Person"}  # in no order
        assert lines[6].split()[:2] == ["loaded", "in"]
        assert lines[7].endswith("on zeros)")

    def test_show_json_describes_the_model(
        self, model_file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, out, _ = run_model_command(
            capsys, "show", "--json", "--threads", "1", str(model_file)
        )
        shown = json.loads(out)
        assert code == 0
        assert shown["inputs"] == [{"name": "x", "data_type": "float32", "shape": [-1, 4]}]
        assert (shown["labels"], shown["notes"]) == (
            ["gear", "bolt"],
            {"stride": 32, "author": "A. Person"},
        )
        assert (shown["tried"], shown["gave"]) == ({"x": [1, 4]}, {"y": [1, 4]})
        assert shown["bytes"] == model_file.stat().st_size
        assert shown["runs"] >= 1

    def test_show_describes_the_demo_model(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = run_model_command(capsys, "show", str(DEMO / "conveyor.onnx"))
        assert code == 0
        assert "image  uint8 1x240x320x3" in out
        assert "gear, bolt, nut" in out

    def test_show_truncates_long_lists_of_labels(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        names = str([f"part {n}" for n in range(30)])
        save_model(tmp_path / "m.onnx", relu([1], notes={"names": names}))
        _, out, _ = run_model_command(capsys, "show", str(tmp_path / "m.onnx"))
        assert "part 7, and 22 more" in out

    def test_show_reports_a_model_that_fails_on_zeros(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        proto = one_node("MatMul", [("a", FLOAT, ["n", 2]), ("b", FLOAT, ["m", 3])])
        path = save_model(tmp_path / "m.onnx", proto)
        code, out, _ = run_model_command(capsys, "show", str(path))
        assert code == 0
        assert "not run" in out
        assert "the model failed on these tensors" in out
        code, out, _ = run_model_command(capsys, "show", "--json", str(path))
        assert json.loads(out)["runs"] == 0

    @pytest.mark.parametrize("content", [b"", b"cat\ndog\n", b"\x08\x07\x12"])
    def test_show_refuses_a_file_that_is_not_a_model(
        self, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "labels.txt"
        path.write_bytes(content)
        code, out, err = run_model_command(capsys, "show", str(path))
        assert (code, out) == (1, "")
        assert err.startswith(f"{path} is not a model that onnxruntime ")
        assert err.count("\n") == 1

    @pytest.mark.parametrize("options", [[], ["--engine", "onnx_cpu"], ["--json"]])
    def test_show_reports_a_missing_file(
        self, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, out, err = run_model_command(capsys, "show", *options, str(tmp_path / "none.onnx"))
        assert (code, out) == (2, "")
        assert str(tmp_path / "none.onnx") in err
        assert err.endswith(": No such file or directory\n")

    @pytest.mark.parametrize("threads", ["-1", "1000"])
    def test_show_refuses_invalid_thread_counts(
        self, threads: str, model_file: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, out, err = run_model_command(capsys, "show", "--threads", threads, str(model_file))
        assert (code, out) == (1, "")
        assert err.startswith("num_threads: ")
        assert err.count("\n") == 1

    def test_show_without_the_engine_explains_how_to_install_it(
        self, model_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        load = importlib.import_module

        def import_without_onnxruntime(name: str, package: str | None = None) -> Any:
            if name == "onnxruntime":
                raise ModuleNotFoundError("No module named 'onnxruntime'")
            return load(name, package)

        monkeypatch.setattr(importlib, "import_module", import_without_onnxruntime)
        code, out, err = run_model_command(capsys, "show", str(model_file))
        assert (code, out) == (1, "")
        assert err == (
            "onnxruntime cannot be imported (No module named 'onnxruntime'); "
            "install it with `pip install 'cogwork[onnx]'`\n"
        )

    def test_show_without_numpy_explains_how_to_install_it(
        self, model_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        load = builtins.__import__

        def import_without_onnxruntime(name: str, *others: Any) -> Any:
            if name == "numpy":
                raise ModuleNotFoundError("No module named 'numpy'")
            return load(name, *others)

        monkeypatch.delitem(sys.modules, "cogwork.cli.model.inspection", raising=False)
        monkeypatch.setattr(builtins, "__import__", import_without_onnxruntime)
        code, out, err = run_model_command(capsys, "show", str(model_file))
        assert (code, out) == (1, "")
        assert "No module named 'numpy'" in err
        assert "; run: pip install 'cogwork[onnx]'" in err


class TestEngines:
    """The engine is chosen by the content of the file, not by its name."""

    def test_engine_is_detected_for_each_kind_of_file(self, tmp_path: Path) -> None:
        starts = {
            "tflite_cpu": b"\x1c\0\0\0TFL3",
            "torch_cpu": b"PK\x03\x04",
            "onnx_cpu": b"\x08\x08",
        }
        for engine, start in starts.items():
            path = tmp_path / "model.bin"
            path.write_bytes(start + bytes(100))
            assert detect_engine(path) == engine
        assert detect_engine(tmp_path) == "tensorflow_cpu"
        assert detect_engine(Path("m.keras")) == "tensorflow_cpu"
        assert detect_engine(Path("m.xml")) == "openvino_cpu"


class TestDemo:
    def test_demo_model_is_written(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, out, _ = run_model_command(capsys, "demo", str(tmp_path / "a" / "demo"))
        assert code == 0
        written = tmp_path / "a" / "demo"
        for name in ("conveyor.onnx", "conveyor.tflite", "labels.txt"):
            assert name in out
            assert (written / name).read_bytes() == (DEMO / name).read_bytes()
        code, _, _ = run_model_command(capsys, "show", str(written / "conveyor.onnx"))
        assert code == 0

    def test_other_files_in_the_folder_are_kept(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "mine.txt").write_text("mine")
        code, out, _ = run_model_command(capsys, "demo", str(tmp_path))
        assert code == 0
        assert "mine.txt" not in out
        assert (tmp_path / "mine.txt").read_text() == "mine"

    def test_unwritable_folder_is_reported(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "file").write_text("")
        code, out, err = run_model_command(capsys, "demo", str(tmp_path / "file"))
        assert (code, out) == (2, "")
        assert err.startswith(f"cannot write the demo model to {tmp_path / 'file'}: ")
        assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208
