"""Every built-in model matches its entry in the table of models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from viam.resource.base import ResourceBase

from cogwork.drivers.builtin_models import builtin_models
from cogwork.drivers.camera import conveyor
from cogwork.drivers.camera.gradient import draw_gradient
from cogwork.graph.name import ResourceName
from cogwork.media.image import encode
from cogwork.media.image_header import PNG
from cogwork.resource.model import Model


def _id(model: Model) -> str:
    return f"{model.api} {model.name.short}"


MODELS = builtin_models()
DEMO = Path(conveyor.__file__).parents[1] / "mlmodel" / "demo"
ELSEWHERE = (
    *("mlmodel", "openvino_cpu", "tensorflow_cpu", "tflite_cpu", "torch_cpu"),
    *("wheeled", "wheeled-odometry", "gpio", "incremental", "single", "serial", "gamepad"),
    "rdk:service:navigation builtin",
)
"""What takes other resources, a device, or seconds to import; each has tests of its own."""
BUILT = [model for model in MODELS if not {model.name.short, _id(model)} & {*ELSEWHERE}]
LEAST: dict[str, dict[str, Any]] = {
    "rdk:component:camera ffmpeg": {"video_path": "there-is-no-such-file.mp4"},
    "rdk:component:camera image_file": {"color_image_file_path": "{picture}"},
    "rdk:service:mlmodel onnx_cpu": {"model_path": str(DEMO / "conveyor.onnx")},
    "rdk:service:vision color_detector": {"detect_color": "#ff0000"},
    "rdk:component:camera transform": {"source": "other", "pipeline": [{"type": "rotate"}]},
}
"""What some models cannot do without."""


@pytest.fixture
def image_path(tmp_path: Path) -> str:
    file = tmp_path / "picture.png"
    file.write_bytes(encode(draw_gradient(64, 48, 0), PNG))
    return str(file)


def test_table_of_models_is_sorted() -> None:
    keys = [(str(model.api), model.name.short) for model in MODELS]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("model", BUILT, ids=_id)
async def test_model_can_be_built_from_minimal_attributes(model: Model, image_path: str) -> None:
    given = {
        key: image_path if value == "{picture}" else value
        for key, value in LEAST.get(_id(model), {}).items()
    }
    dependencies = {ResourceName(model.api, "other"): object()}
    resource = await model.construct(
        ResourceName(model.api, "it"), model.load_attributes()(**given), dependencies
    )
    assert isinstance(resource, ResourceBase)
    assert str(resource.API) == str(model.api)
    assert resource.logger.name == f"rdk.resource_manager.{model.api}/it"
    assert hasattr(resource, "reconfigure") == model.reconfigures
    closable: Any = resource
    await closable.close()


def test_importing_the_table_imports_no_driver() -> None:
    code = "import sys, cogwork.drivers.builtin_models; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    roots = {name.partition(".")[0] for name in done.stdout.split()}
    assert not roots & {"viam", "grpc", "grpclib", "google", "psutil", "numpy", "cv2", "av"}
