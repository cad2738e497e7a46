"""`cogwork demo` and `cogwork model inspect` as a person runs them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import psutil
import pytest
from tests.support.machine.running import DEADLINE
from tests.support.media.pictures import encode_pixels
from tests.support.models.onnx_models import save_model
from tests.support.models.vision_models import constant, detector, echo, solid

from cogwork.cli.demo.run import (
    DEMO_MODEL,
    DemoEngine,
    DemoUnavailable,
    build_config,
    write_config,
)
from cogwork.cli.demo.run import _wait_until_ready as wait
from cogwork.cli.main import main
from cogwork.drivers.camera.conveyor import Conveyor
from cogwork.media.image_header import read_header


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Demo:
    """Runs the command and reads its output."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cogwork.cli.main", "demo", str(directory), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COGWORK_HOME": str(directory / "home")},
        )
        self.children: list[psutil.Process] = []

    def wait_for_line(self, pattern: str) -> str:
        """Return the first line that matches."""
        assert self.process.stdout is not None
        wanted = re.compile(pattern)
        stop = threading.Timer(2 * DEADLINE, self.process.kill)
        stop.start()
        try:
            for line in self.process.stdout:
                if wanted.search(line):
                    self.children = psutil.Process(self.process.pid).children(recursive=True)
                    return line
        finally:
            stop.cancel()
            stop.join()
        raise AssertionError(f"it ended without {pattern!r}")

    def wait_for_exit(self) -> tuple[int, str, str]:
        """Return the exit code, the remaining output and the standard error."""
        out, err = self.process.communicate(timeout=2 * DEADLINE)
        return self.process.returncode, out, err


@contextlib.contextmanager
def start_demo(directory: Path, *arguments: str) -> Iterator[Demo]:
    command = Demo(directory, *arguments)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.send_signal(signal.SIGINT)
        command.process.communicate(timeout=DEADLINE)


def test_demo_detects_parts_and_writes_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory, port = tmp_path / "new" / "folder", free_port()
    with start_demo(directory, "--seconds", "3", "--port", str(port)) as command:
        line = command.wait_for_line(r"\d (gear|bolt|nut)")
        assert re.search(r"\d+\.\d frames/s   inference +\d+\.\d ms   \d (bolt|gear|nut)", line)
        code, out, err = command.wait_for_exit()
    assert (code, err) == (0, "")
    assert "to run it again: cogwork-server -config " in out
    assert not any(child.is_running() for child in command.children)
    header = read_header((directory / "boxes.jpg").read_bytes())
    assert (header.width, header.height) == (640, 480)
    assert main(["config", "check", str(directory / "machine.json")]) == 0
    assert "cogwork demo" in (directory / "machine.json").read_text()
    assert f"localhost:{port}" in (directory / "machine.json").read_text()
    assert {"labels.txt", "conveyor.onnx"} <= {
        each.name for each in (directory / "demo-model").iterdir()
    }
    capsys.readouterr()


def test_ctrl_c_ends_the_demo_and_its_server(tmp_path: Path) -> None:
    with start_demo(tmp_path, "--port", str(free_port())) as command:
        command.wait_for_line("frames/s")
        (server,) = [each for each in command.children if "cogwork.server.main" in each.cmdline()]
        command.process.send_signal(signal.SIGINT)
        code, out, err = command.wait_for_exit()
    assert (code, err) == (130, "")
    assert "to run it again" in out
    assert not server.is_running()


def test_demo_can_run_again_in_the_same_folder(tmp_path: Path) -> None:
    write_config(tmp_path, DemoEngine("openvino", "openvino_cpu", "conveyor.onnx"), "localhost:1")
    with start_demo(tmp_path, "--seconds", "1.5", "--port", str(free_port())) as command:
        command.wait_for_line("frames/s")
        assert command.wait_for_exit()[0] == 0


@pytest.mark.parametrize("text", ['{"components": []}', "", "// mine\n{}"])
def test_foreign_machine_json_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    file = tmp_path / "machine.json"
    file.write_text(text)
    assert main(["demo", str(tmp_path)]) == 2
    assert f"{file} exists and is not from a demo" in capsys.readouterr().err
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_invalid_folder_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["demo", str(tmp_path / "file" / "folder")]) == 2
    assert ": Not a directory" in capsys.readouterr().err


def test_port_in_use_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["demo", str(tmp_path), "--port", str(port)]) == 2
    assert f"port {port} is in use; choose another or omit --port" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_wait_fails_at_once_when_the_server_exits() -> None:
    """It does not wait for the timeout."""
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"]) as process:
        process.wait(DEADLINE)
        with pytest.raises(DemoUnavailable, match="the server exited with code 7"):
            wait("localhost:1", process)


def test_demo_reports_when_its_server_ends(tmp_path: Path) -> None:
    with start_demo(tmp_path, "--port", str(free_port())) as command:
        command.wait_for_line("frames/s")
        for child in command.children:
            child.terminate()
        code, _, err = command.wait_for_exit()
    assert code == 1
    assert "Traceback" not in err
    assert "; see " in err


def test_demo_without_an_inference_engine_explains_how_to_install_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["demo", str(tmp_path)]) == 2
    assert "pip install 'cogwork[onnx]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "engine",
    [
        DemoEngine("", "onnx_cpu", "conveyor.onnx"),
        DemoEngine("", "tflite_cpu", "conveyor.tflite"),
        DemoEngine("", "openvino_cpu", "conveyor.onnx"),
        DemoEngine("", "torch_cpu", "conveyor.pt"),
        DemoEngine("", "tensorflow_cpu", "conveyor_savedmodel"),
    ],
    ids=lambda each: each.model,
)
def test_generated_configuration_is_valid_with_every_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], engine: DemoEngine
) -> None:
    file = tmp_path / "machine.json"
    file.write_text(
        json.dumps(build_config(DEMO_MODEL / engine.file, engine.model, "localhost:8080"))
    )
    assert main(["config", "check", str(file)]) == 0, capsys.readouterr().out
    capsys.readouterr()


class TestInspect:
    @pytest.fixture
    def photo(self, tmp_path: Path) -> Path:
        """Return an image of a conveyor that the detector has not been trained on."""
        belt = Conveyor(1234)
        file = tmp_path / "belt.png"
        file.write_bytes(encode_pixels(".png", belt.render(belt.scene_at(4.0))[0]))
        return file

    def inspect(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
        code = main(["model", "inspect", *arguments])
        told = capsys.readouterr()
        return code, told.out, told.err

    def test_inspect_describes_the_model_and_writes_the_image(
        self, tmp_path: Path, photo: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        picture = tmp_path / "seen.jpg"
        model = DEMO_MODEL / "conveyor.onnx"
        code, out, err = self.inspect(capsys, str(model), "--image", str(photo), "-o", str(picture))
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[0] == f"{model}, run by onnx_cpu"
        assert any(re.match(r"  input +image  uint8 1x240x320x3", line) for line in lines)
        assert "  detector     yes: named" in lines
        assert any(re.match("  classifier   no: ", line) for line in lines)
        assert any(re.match(r"  preprocess +320x240, stretched, NHWC, RGB", x) for x in lines)
        found = [line for line in lines if re.match(r"  found +(gear|bolt|nut) 0\.\d\d at ", line)]
        assert len(found) >= 2
        assert f"  image        {picture}" in lines
        boxes = cv2.imread(str(picture))
        plain = cv2.imread(str(photo))
        assert boxes is not None
        assert plain is not None
        assert boxes.shape == plain.shape
        assert np.abs(boxes.astype(int) - plain).max() > 100
        # The suggested entry for machine.json is valid.
        entry = json.loads(out.partition("Add this to machine.json:\n")[2])
        (tmp_path / "machine.json").write_text(json.dumps(entry))
        assert main(["config", "check", str(tmp_path / "machine.json")]) == 0
        capsys.readouterr()

    def test_inspect_json_describes_the_model_and_its_results(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        model = save_model(tmp_path / "net.v1.onnx", echo("red", "green", "blue"))
        image = tmp_path / "image.png"
        image.write_bytes(encode_pixels(".png", solid(255, 204, 153, 300, 200)))
        code, out, err = self.inspect(capsys, str(model), "--image", str(image), "--json")
        assert (code, err) == (0, "")
        told: Any = json.loads(out)
        assert told["roles"]["classifier"]["family"] == "named"
        assert list(told["refused"]) == ["detector"]
        assert [each["label"] for each in told["found"]] == ["red", "green"]  # of those it is sure
        assert told["found"][0]["confidence"] == pytest.approx(1, abs=0.01)
        assert told["picture"] == "net.v1-boxes.jpg"
        assert (tmp_path / told["picture"]).exists()
        first, second = told["entry"]["services"]
        assert first["attributes"]["model_path"] == str(model)
        assert second["attributes"]["mlmodel_name"] == first["name"] == "net-v1"
        assert second["attributes"]["input_image_mean_value"] == [0.5, 0.5, 0.5]

    def test_inspect_uses_a_label_file_and_suggests_it(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = save_model(tmp_path / "net.onnx", detector([(0, 0.9)]))
        image = tmp_path / "image.png"
        image.write_bytes(encode_pixels(".png", solid(255, 204, 153, 300, 200)))
        told = ("--image", str(image), "-o", str(tmp_path / "found.jpg"))
        _, out, _ = self.inspect(capsys, str(model), *told)
        assert "found        0 0.90 at" in out
        assert "labels       none: results have class numbers; pass a label file" in out
        labels = tmp_path / "labels.txt"
        labels.write_text("cat\n")
        _, out, _ = self.inspect(capsys, str(model), *told, "--labels", str(labels))
        assert "found        cat 0.90 at" in out
        assert "labels  " not in out
        entry = json.loads(out.partition("Add this to machine.json:\n")[2])
        assert entry["services"][0]["attributes"]["label_path"] == str(labels)

    def test_inspect_says_when_nothing_is_found(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = save_model(tmp_path / "net.onnx", detector([(0, 0.3)], "cat"))
        image = tmp_path / "image.png"
        image.write_bytes(encode_pixels(".png", solid(255, 204, 153, 300, 200)))
        told = ("--image", str(image), "-o", str(tmp_path / "found.jpg"))
        code, out, _ = self.inspect(capsys, str(model), *told)
        assert code == 0
        assert "found        nothing with a confidence of at least 0.4" in out

    def test_inspect_refuses_an_output_without_an_image(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = save_model(tmp_path / "net.onnx", detector([(0, 0.9)], "cat"))
        code, out, err = self.inspect(capsys, str(model), "-o", str(tmp_path / "found.jpg"))
        assert (code, out) == (2, "")
        assert "-o needs --image" in err

    def test_inspect_without_an_image_runs_no_detection(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = save_model(tmp_path / "net.onnx", detector([(0, 0.9)], "cat"))
        code, out, _ = self.inspect(capsys, str(model), "--json")
        told: Any = json.loads(out)
        assert (code, told["found"]) == (0, None)
        assert "picture" not in told
        assert sorted(each.name for each in tmp_path.iterdir()) == ["net.onnx"]

    def test_inspect_explains_why_a_model_has_no_role(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = save_model(tmp_path / "net.onnx", constant({"wave": np.zeros((1, 7, 5, 3), "f4")}))
        code, out, err = self.inspect(capsys, str(model))
        assert (code, err) == (1, "")
        assert re.search(r"  detector +no: .*wave", out)
        assert re.search(r"  classifier +no: .*wave", out)
        assert "machine.json" not in out

    def test_inspect_reports_a_role_that_fails_at_the_first_run(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The file declares a detector, but its first outputs contradict that."""
        odd = constant(
            {
                "location": np.zeros((1, 2, 4), np.float32),
                "category": np.zeros((1, 2), np.float32),
                "score": np.zeros((1, 3), np.float32),
            },
            open_rows=True,
        )
        code, out, _ = self.inspect(capsys, str(save_model(tmp_path / "net.onnx", odd)), "--json")
        told = json.loads(out)
        assert (code, told["roles"], told["entry"]) == (1, {}, None)
        assert told["refused"]["detector"]

    @pytest.mark.parametrize(
        ("image", "words", "expected"),
        [
            ("none.png", "No such file or directory", 2),
            ("text.png", "text", 1),
            (".", "Is a directory", 2),
        ],
    )
    def test_inspect_reports_unreadable_images(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        image: str,
        words: str,
        expected: int,
    ) -> None:
        (tmp_path / "text.png").write_text("<html>")
        model = save_model(tmp_path / "net.onnx", detector([(0, 0.9)], "cat"))
        code, out, err = self.inspect(capsys, str(model), "--image", str(tmp_path / image))
        assert (code, out) == (expected, "")
        assert words in err

    def test_inspect_reports_a_missing_model(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, out, err = self.inspect(capsys, str(tmp_path / "none.onnx"))
        assert (code, out) == (2, "")
        assert "none.onnx: No such file or directory" in err
