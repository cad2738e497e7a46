"""Cameras that draw the results of a vision service on their images.

A vision service must not analyze such images. The API has no field for this, so the machine that
runs such a camera sends the header `cogwork-annotated-by`, with the name of the vision service, in
its replies with these images. Other machines forward the header, so they also know this about a
camera of a remote, and of the remote of a remote.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable
from typing import Any, Final

from cogwork.wire.table.handlers import Stream

HEADER: Final = "cogwork-annotated-by"
_MAX_NAME: Final = 512


def find_annotator(camera: Any) -> str | None:
    """Return the name of the vision service whose results are on the last images of a camera; None
    if they show only what the camera sees."""
    found = getattr(camera, "drawn_by", None)
    return found if isinstance(found, str) and found else None


async def send_annotator(stream: Stream, camera: Any) -> None:
    """Send the header, if the images of this camera are annotated."""
    if (name := find_annotator(camera)) is not None:
        await stream.send_initial_metadata(metadata={HEADER: urllib.parse.quote(name)})


def read_annotator(metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
    """Return the name in the header of a reply; None if there is no such header."""
    for key, value in metadata or ():
        if key == HEADER and isinstance(value, str):
            return urllib.parse.unquote(value)[:_MAX_NAME]
    return None
