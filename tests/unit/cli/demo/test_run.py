from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.cli.demo.run import DemoEngine, DemoUnavailable, write_config

ONNX = DemoEngine("onnxruntime", "onnx_cpu", "conveyor.onnx")
TFLITE = DemoEngine("ai_edge_litert", "tflite_cpu", "conveyor.tflite")


def test_own_file_is_replaced_for_another_port_and_engine(tmp_path: Path) -> None:
    file = write_config(tmp_path, ONNX, "localhost:8080")
    before = file.read_text()
    assert write_config(tmp_path, TFLITE, "localhost:8081") == file
    after = file.read_text()
    assert ("localhost:8080" in before, "onnx_cpu" in before) == (True, True)
    assert ("localhost:8081" in after, "tflite_cpu" in after) == (True, True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"width": 640', '"width": 320'),
        ("{", '{ // mine\n  "debug": true,'),
        ("}", ""),
        ('"network"', '"net"'),
    ],
)
def test_changed_file_is_kept(tmp_path: Path, old: str, new: str) -> None:
    file = write_config(tmp_path, ONNX, "localhost:8080")
    text = file.read_text().replace(old, new, 1)
    file.write_text(text)
    with pytest.raises(DemoUnavailable, match="so it is kept; run it with: cogwork-server -config"):
        write_config(tmp_path, ONNX, "localhost:8080")
    assert file.read_text() == text
