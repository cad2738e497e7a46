"""Preparation of a camera's H.264 key frames for viewers that decode them directly."""

from __future__ import annotations

import re

_START = b"\x00\x00\x01"
_PARAMETERS = re.compile(rb"\x00\x00\x01[\x07\x27\x47\x67]")
"""The start of a sequence parameter set (SPS), with any value of `nal_ref_idc`."""
_SEARCHED = 4096
"""Bytes at the beginning of a frame in which to search for parameter sets."""


def with_parameters(picture: bytes, parameters: bytes) -> bytes | None:
    """Return a key frame that begins with the parameter sets of its stream.

    Cameras may send the parameter sets only once. Return None if the frame is not in Annex B
    format, or if the parameter sets are unknown.
    """
    if not _is_annex_b(picture):
        return None
    if _PARAMETERS.search(picture, 0, _SEARCHED):
        return picture
    if not (_is_annex_b(parameters) and _PARAMETERS.search(parameters)):
        return None
    return parameters + picture


def _is_annex_b(data: bytes) -> bool:
    return data.startswith((_START, b"\x00" + _START))
