"""The frames since the last key frame, which a new viewer needs to decode the newest one."""

from __future__ import annotations

from cogwork.media.encoded_frames import EncodedFrame

_MAX_FRAMES = 600
_MAX_BYTES = 8 << 20


class PictureGroup:
    def __init__(self) -> None:
        self._frames: list[EncodedFrame] = []
        self._size = 0

    def add(self, frame: EncodedFrame) -> None:
        if frame.is_key:
            self.clear()
        elif not self._frames:
            return
        self._size += len(frame.data)
        if len(self._frames) >= _MAX_FRAMES or self._size > _MAX_BYTES:
            # The group is too large to send again: wait for the next key frame.
            self.clear()
        else:
            self._frames.append(frame)

    def clear(self) -> None:
        self._frames.clear()
        self._size = 0

    def repeat(self) -> list[EncodedFrame]:
        """Return the frames to send to a new viewer, who should see only the last one.

        The list is empty if no key frame has arrived yet, or if the group is too large.
        """
        # A viewer shows each frame until the time of the next one, so the frames get times that are
        # only one tick apart. They begin after the time of the last frame, because a viewer must
        # not get the same time twice.
        return [
            frame._replace(time=self._frames[-1].time + number)
            for number, frame in enumerate(self._frames, 1)
        ]
