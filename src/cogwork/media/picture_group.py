"""The frames since the last key frame: what is needed to show the newest picture."""

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
            # Too much to send again; the next key frame begins another group.
            self.clear()
        else:
            self._frames.append(frame)

    def clear(self) -> None:
        self._frames.clear()
        self._size = 0

    def repeat(self) -> list[EncodedFrame]:
        """Return the frames to send again, of which only the last is to be seen.

        The list is empty until a key frame arrives, and after a group that was too large.
        """
        # All at the time of the last one, for the viewer would show each for its duration. Times
        # must differ, and be after those that were sent.
        return [
            frame._replace(time=self._frames[-1].time + number)
            for number, frame in enumerate(self._frames, 1)
        ]
