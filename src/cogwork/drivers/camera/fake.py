"""A simulated camera: a color gradient, or a conveyor belt with parts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.single_flight import SingleFlight
from cogwork.drivers.camera.attributes import FakeCameraAttributes, IntrinsicParameters, Optics
from cogwork.drivers.camera.conveyor import Conveyor, Scene
from cogwork.drivers.camera.frame_camera import FrameCamera
from cogwork.drivers.camera.gradient import draw_gradient
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.media.image import Pixels
from cogwork.resource.frame import Annotation, Frame, Image
from cogwork.resource.point_cloud import Intrinsics


class FakeCamera(FrameCamera):
    def __init__(self, name: ResourceName, attributes: FakeCameraAttributes, clock: Clock) -> None:
        is_conveyor = _is_conveyor(attributes)
        conveyor = Conveyor(attributes.seed, attributes.width, attributes.height)
        super().__init__(
            name,
            Optics.model_construct(
                intrinsic_parameters=_to_intrinsic_parameters(conveyor.intrinsics)
            ),
            sources=("color", "depth") if is_conveyor else ("",),
            has_depth=is_conveyor,
            frame_rate=attributes.frame_rate if is_conveyor or attributes.animated else None,
        )
        self._attributes = attributes
        self._clock = clock
        self._start = clock.monotonic()
        self._epoch = clock.time()
        self._conveyor = conveyor
        self._latest: SingleFlight[dict[str, Frame]] = SingleFlight()

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeCameraAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeCamera:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]:
        self.check_sources(sources)
        step = self._current_step()
        frames_by_source = await self._latest.get(
            step, lambda: asyncio.wrap_future(self.workers.submit(self._draw_frames, step))
        )
        now = self._clock.time()
        frames = (frames_by_source[source] for source in sources or self.sources)
        return [frame if self._is_moving else frame.with_capture_time(now) for frame in frames]

    async def close(self) -> None:
        await self._latest.aclose()
        await super().close()

    @property
    def _is_moving(self) -> bool:
        return _is_conveyor(self._attributes) or self._attributes.animated

    def _current_step(self) -> int:
        if not self._is_moving:
            return 0
        return int((self._clock.monotonic() - self._start) * self._attributes.frame_rate)

    def _draw_frames(self, step: int) -> dict[str, Frame]:
        seconds = step / self._attributes.frame_rate
        width, height = self._attributes.width, self._attributes.height
        if not _is_conveyor(self._attributes):
            return {"": self._make_frame(draw_gradient(width, height, step), seconds)}
        scene = self._conveyor.scene_at(seconds)
        color, depth = self._conveyor.render(scene)
        annotations = self._ground_truth_annotations(scene) if self._attributes.ground_truth else ()
        return {
            "color": self._make_frame(color, seconds, "color", annotations),
            "depth": self._make_frame(depth, seconds, "depth", annotations),
        }

    def _make_frame(
        self,
        pixels: Pixels,
        seconds: float,
        source: str = "",
        annotations: Sequence[Annotation] = (),
    ) -> Frame:
        image = Image(pixels, self.workers)
        return Frame(image, self._epoch + seconds, source, tuple(annotations))

    def _ground_truth_annotations(self, scene: Scene) -> list[Annotation]:
        width, height = self._attributes.width, self._attributes.height
        return [
            Annotation(
                part.kind.value,
                part.box.x_min / width,
                part.box.y_min / height,
                part.box.x_max / width,
                part.box.y_max / height,
            )
            for part in scene.ground_truth
        ]


def _is_conveyor(attributes: FakeCameraAttributes) -> bool:
    return attributes.scene == "conveyor"


def _to_intrinsic_parameters(intrinsics: Intrinsics) -> IntrinsicParameters:
    return IntrinsicParameters.model_construct(
        width_px=intrinsics.width,
        height_px=intrinsics.height,
        fx=intrinsics.focal_x,
        fy=intrinsics.focal_y,
        ppx=intrinsics.center_x,
        ppy=intrinsics.center_y,
    )
