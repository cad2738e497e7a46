from __future__ import annotations

from scripts.models.labels import convert_to_dense


def test_gaps_are_filled() -> None:
    assert convert_to_dense(b"0  cat\n3  great white shark") == (
        b"cat\nn/a_1\nn/a_2\ngreat white shark\n"
    )
