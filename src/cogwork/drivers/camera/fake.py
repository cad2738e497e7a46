"""A camera without a lens: colours, or a conveyor belt with parts on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.newest import Newest
from cogwork.drivers.camera.attributes import FakeCameraAttributes, IntrinsicParameters, Optics
from cogwork.drivers.camera.conveyor import Conveyor, Scene
from cogwork.drivers.camera.frame_camera import FrameCamera
from cogwork.drivers.camera.gradient import gradient
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame, Mark, Picture
from cogwork.resource.image import Pixels
from cogwork.resource.point_cloud import Intrinsics


class FakeCamera(FrameCamera):
    def __init__(self, name: ResourceName, attributes: FakeCameraAttributes, clock: Clock) -> None:
        belt = _is_belt(attributes)
        conveyor = Conveyor(attributes.seed, attributes.width, attributes.height)
        super().__init__(
            name,
            Optics.model_construct(intrinsic_parameters=_lens(conveyor.intrinsics)),
            sources=("color", "depth") if belt else ("",),
            has_depth=belt,
            frame_rate=attributes.frame_rate if belt or attributes.animated else None,
        )
        self._attributes = attributes
        self._clock = clock
        self._start = clock.monotonic()
        self._epoch = clock.time()
        self._conveyor = conveyor
        self._newest: Newest[dict[str, Frame]] = Newest()

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
        step = self._step()
        pictures = await self._newest.of(
            step, lambda: asyncio.wrap_future(self.workers.submit(self._draw, step))
        )
        now = self._clock.time()
        frames = (pictures[source] for source in sources or self.sources)
        return [frame if self._moves else frame.seen_at(now) for frame in frames]

    async def close(self) -> None:
        await self._newest.aclose()
        await super().close()

    @property
    def _moves(self) -> bool:
        return _is_belt(self._attributes) or self._attributes.animated

    def _step(self) -> int:
        if not self._moves:
            return 0
        return int((self._clock.monotonic() - self._start) * self._attributes.frame_rate)

    def _draw(self, step: int) -> dict[str, Frame]:
        seconds = step / self._attributes.frame_rate
        width, height = self._attributes.width, self._attributes.height
        if not _is_belt(self._attributes):
            return {"": self._frame(gradient(width, height, step), seconds)}
        scene = self._conveyor.scene(seconds)
        colours, depth = self._conveyor.render(scene)
        marks = self._marks(scene) if self._attributes.ground_truth else ()
        return {
            "color": self._frame(colours, seconds, "color", marks),
            "depth": self._frame(depth, seconds, "depth", marks),
        }

    def _frame(
        self, pixels: Pixels, seconds: float, source: str = "", marks: Sequence[Mark] = ()
    ) -> Frame:
        picture = Picture(pixels, self.workers)
        return Frame(picture, self._epoch + seconds, source, tuple(marks))

    def _marks(self, scene: Scene) -> list[Mark]:
        width, height = self._attributes.width, self._attributes.height
        return [
            Mark(
                part.kind.value,
                part.box.x_min / width,
                part.box.y_min / height,
                part.box.x_max / width,
                part.box.y_max / height,
            )
            for part in scene.truth
        ]


def _is_belt(attributes: FakeCameraAttributes) -> bool:
    return attributes.scene == "conveyor"


def _lens(intrinsics: Intrinsics) -> IntrinsicParameters:
    return IntrinsicParameters.model_construct(
        width_px=intrinsics.width,
        height_px=intrinsics.height,
        fx=intrinsics.focal_x,
        fy=intrinsics.focal_y,
        ppx=intrinsics.center_x,
        ppy=intrinsics.center_y,
    )
