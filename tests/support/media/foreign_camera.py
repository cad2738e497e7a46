"""Cameras as others write them with the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.camera import Camera  # noqa: E402
from viam.media.video import CameraMimeType, NamedImage  # noqa: E402
from viam.proto.common import ResponseMetadata  # noqa: E402
from viam.proto.component.camera import GetPropertiesResponse  # noqa: E402


class ForeignCamera(Camera):
    """Returns the given data, each as an image of that name."""

    def __init__(self, name: str = "foreign", captured_at: float = 0.0, **images: Any) -> None:
        super().__init__(name)
        self.images: list[tuple[str, Any]] = list(images.items())
        self.captured_at = captured_at
        self.asked: list[Sequence[str]] = []
        self.frames: Any = ["others call anything so"]
        self.held: asyncio.Event | None = None
        """Where it is set, pictures come once the event is."""
        self._news = asyncio.Event()

    async def wait_for_requests(self, times: int) -> None:
        async with asyncio.timeout(60):
            while len(self.asked) < times:
                self._news.clear()
                await self._news.wait()

    async def get_images(
        self,
        *,
        filter_source_names: Sequence[str] | None = None,
        extra: dict[str, Any] | None = None,
        timeout: float | None = None,
        **kwargs: Any,
    ) -> tuple[list[NamedImage], ResponseMetadata]:
        self.asked.append(list(filter_source_names or ()))
        self._news.set()
        images, metadata = self.images, ResponseMetadata()
        metadata.captured_at.FromNanoseconds(int(self.captured_at * 1e9))
        if self.held is not None:
            await self.held.wait()
        return [
            _named_image(name, data)
            for name, data in images
            if not filter_source_names or name in filter_source_names
        ], metadata

    async def get_point_cloud(
        self, *, extra: dict[str, Any] | None = None, timeout: float | None = None, **kwargs: Any
    ) -> tuple[bytes, str]:
        raise NotImplementedError

    async def get_properties(
        self, *, timeout: float | None = None, **kwargs: Any
    ) -> GetPropertiesResponse:
        return GetPropertiesResponse()


def _named_image(name: str, data: Any) -> NamedImage:
    # Use an unknown type, so that the SDK does not parse the size of invalid images.
    image = NamedImage(name, b"", CameraMimeType.CUSTOM("image/unknown"))
    image._data = data
    image._mime_type = CameraMimeType.JPEG  # as the SDK calls everything
    return image
