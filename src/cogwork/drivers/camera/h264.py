"""Which H.264 of a camera viewers can show as it is, and in which form."""

from __future__ import annotations

import re

_START = b"\x00\x00\x01"
_PARAMETERS = re.compile(rb"\x00\x00\x01[\x07\x27\x47\x67]")
"""A sequence parameter set, whatever its importance."""
_SEARCHED = 4096
"""Bytes at the beginning of a picture in which parameters are expected."""


def with_parameters(picture: bytes, parameters: bytes) -> bytes | None:
    """Return a key frame with the parameters of its stream, which cameras may send only once.

    Return None if the frame is not in Annex B format, or if its parameters are not known.
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
