"""Transformation of foreign PCD files, and errors of invalid ones."""

from __future__ import annotations

import pytest

from cogwork.core.errors import InvalidRequest
from cogwork.resource.pcd_transform import transform_cloud
from cogwork.spatial.pose import Pose, Quaternion

IDENTITY = Pose((0.0, 0.0, 0.0), Quaternion.identity())


def cloud(count: str = "1", points: str = "1", row: str = "1 2 3 4") -> bytes:
    return (
        "FIELDS x y z ring\nSIZE 4 4 4 1\nTYPE F F F U\n"
        f"COUNT 1 1 1 {count}\nPOINTS {points}\nDATA ascii\n{row}\n"
    ).encode()


def test_ascii_cloud_becomes_binary() -> None:
    assert transform_cloud(cloud(), IDENTITY).endswith(b"DATA binary\n\0\0\x80?\0\0\0@\0\0@@\x04")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (cloud(row="1 2 3 256"), "the points of the PCD file cannot be parsed"),
        (cloud(row="1 2 3 -1"), "the points of the PCD file cannot be parsed"),
        (cloud(count="99999999999999999999"), "the header of the PCD file is invalid"),
        (cloud(points="9" * 400), "the limit is 33554432"),
    ],
)
def test_numbers_out_of_range_are_refused(given: bytes, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        transform_cloud(given, IDENTITY)


def test_carriage_returns_in_a_header_are_kept() -> None:
    first = transform_cloud(
        cloud().replace(b"SIZE 4", b"SIZE\r4").replace(b"DATA ", b"DATA\r"), IDENTITY
    )
    assert first.count(b"DATA") == 1
    assert transform_cloud(first, IDENTITY) == first
