from __future__ import annotations

import pytest

from cogwork.drivers.camera.h264 import with_parameters

PARAMETERS = b"\0\0\0\1\x67\x42\xc0\x1f\0\0\0\1\x68\xce"
PICTURE = b"\0\0\0\1\x65\x88\x84"


def test_parameters_are_added_where_they_are_missing() -> None:
    assert with_parameters(PICTURE, PARAMETERS) == PARAMETERS + PICTURE
    assert with_parameters(PARAMETERS + PICTURE, b"") == PARAMETERS + PICTURE
    assert with_parameters(PICTURE[1:], PARAMETERS) == PARAMETERS + PICTURE[1:]


@pytest.mark.parametrize(
    ("picture", "parameters"),
    [
        (PICTURE, b""),
        (PICTURE, b"\1\x64\0\x1f"),  # as in a file
        (b"\0\0\0\3\x65\x88\x84", PARAMETERS),
        (b"", PARAMETERS),
    ],
)
def test_other_formats_are_refused(picture: bytes, parameters: bytes) -> None:
    assert with_parameters(picture, parameters) is None
