"""A camera whose images cost nothing, so that benchmarks measure everything else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from cogwork.config.schema.fields import Attributes
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import Model

WIDTH, HEIGHT = 1280, 720


async def _create_camera(
    name: ResourceName, attributes: Attributes, dependencies: Dependencies
) -> object:
    del attributes, dependencies
    from cogwork.drivers.camera.attributes import Optics
    from cogwork.drivers.camera.conveyor import Conveyor
    from cogwork.drivers.camera.frame_camera import FrameCamera
    from cogwork.resource.frame import Frame, Image

    conveyor = Conveyor(seed=3, width=WIDTH, height=HEIGHT)
    pixels, _ = conveyor.render(conveyor.scene_at(4.0))

    class Eye(FrameCamera):
        async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]:
            del sources
            # Return a new frame each time, because vision services cache the results of a frame.
            return [Frame(Image(pixels, self.workers), time.time())]

    return Eye(name, Optics.model_construct())


MODEL = Model(
    Api.parse("rdk:component:camera"),
    ModelName.parse("cogwork:bench:eye"),
    Attributes,
    _create_camera,
)


def install_entry_point(directory: Path) -> dict[str, str]:
    """Return the environment variables with which a server finds the model."""
    info = directory / "bench_eye-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-eye\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[cogwork.models]\neye = benchmarks.parts.static_camera:MODEL\n"
    )
    return {"PYTHONPATH": f"{directory}:{Path(__file__).parents[2]}"}
