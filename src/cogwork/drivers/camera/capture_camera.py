"""A camera that reads a device or a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cogwork.core.clock import Clock
from cogwork.drivers.camera.attributes import Optics
from cogwork.drivers.camera.capture import Capture, FrameSource
from cogwork.drivers.camera.frame_camera import FrameCamera
from cogwork.graph.name import ResourceName
from cogwork.resource.frame import Frame
from cogwork.resource.model import logger_of


class CaptureCamera(FrameCamera):
    """A camera that is available before its first frame. Without frames, its calls fail with the
    reason."""

    def __init__(
        self,
        name: ResourceName,
        optics: Optics,
        source: FrameSource,
        clock: Clock,
        *,
        stall: float | None = None,
        frame_rate: float | None = None,
    ) -> None:
        super().__init__(name, optics, frame_rate=frame_rate)
        self._capture = Capture(source, clock, logger_of(name), self.workers, stall=stall)

    @property
    def fault(self) -> str | None:
        return self._capture.fault

    async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]:
        self.check_sources(sources)
        return [await self._capture.latest_frame()]

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return self._capture.status()

    async def close(self) -> None:
        await self._capture.aclose()
        await super().close()
