from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.drivers.mlmodel.tflite_files import (
    Signature,
    addition,
    file_of,
    packed_weights,
    running_sum,
)

from cogwork.drivers.mlmodel.flatbuffer import MalformedFlatbuffer
from cogwork.drivers.mlmodel.tflite_file import TfliteFile

WHOLE = file_of(
    packed_weights(),
    running_sum(),
    signatures=(Signature("sum", {"x": "x"}, {"total": "total"}, graph=1),),
    metadata=b"told",
)


def test_signatures_and_metadata_are_found_by_name() -> None:
    file = TfliteFile(WHOLE)
    assert file.signatures == {"sum": 1}
    assert bytes(file.find_metadata("TFLITE_METADATA") or b"") == b"told"
    assert file.find_metadata("another") is None


def test_model_with_a_variable_is_stateful() -> None:
    assert TfliteFile(file_of(running_sum())).is_stateful()
    assert not TfliteFile(file_of(addition())).is_stateful()


def test_weights_that_unpack_to_a_larger_size_are_refused() -> None:
    TfliteFile(WHOLE).check_unpacked_weights()
    with pytest.raises(MalformedFlatbuffer, match="tensor 2 is larger than its packed weights"):
        TfliteFile(file_of(packed_weights(unpacked=5))).check_unpacked_weights()


@given(
    st.lists(
        st.tuples(st.integers(8, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=8
    ),
    st.integers(0, len(WHOLE)),
)
def test_damaged_file_is_read_or_refused_as_malformed(
    damage: list[tuple[int, int]], size: int
) -> None:
    content = bytearray(WHOLE)
    for at, value in damage:
        content[at] = value
    for damaged in (content, content[:size]):
        with contextlib.suppress(MalformedFlatbuffer):
            file = TfliteFile(bytes(damaged))
            file.is_stateful()
            file.check_unpacked_weights()
            file.find_metadata("TFLITE_METADATA")
