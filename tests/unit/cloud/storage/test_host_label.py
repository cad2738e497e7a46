from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.cloud.storage.host_label import label_candidates

PART = "6f1ed002-ab5d-4b0e-8d0a-a4ee8a1a3a3f"
SUFFIX = "[a-z2-7]{6}"


def first(name: str, part: str = PART) -> str:
    return next(label_candidates(name, part))


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("press-main", "press-main"),
        ("Press 4", "press-4"),
        ("Säge Süd", "sage-sud"),
        ("１号 №", None),
        ("ﬁne", "fine"),
        (" -- a__b -- ", "a-b"),
        ("x" * 50, "x" * 50),
    ],
)
def test_name_that_ascii_spells_is_its_label(name: str, label: str | None) -> None:
    if label is None:
        assert re.fullmatch(f"[a-z0-9-]+-{SUFFIX}", first(name))
    else:
        assert first(name) == label


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("机器人一-main", "main"),
        ("Пресс", "machine"),
        ("Straße", "strae"),
        ("!", "machine"),
        ("x" * 51, "x" * 43),
    ],
)
def test_name_that_loses_letters_has_a_suffix(name: str, stem: str) -> None:
    assert re.fullmatch(f"{stem}-{SUFFIX}", first(name))
    assert first(name) == first(name)
    assert first(name) != first(name, "another part")


def test_candidates_never_end() -> None:
    found = list(itertools.islice(label_candidates("press", PART), 100))
    assert found[0] == "press"
    assert len(set(found)) == 100


@given(st.text(min_size=1, max_size=100))
def test_labels_are_valid_in_dns(name: str) -> None:
    for label in itertools.islice(label_candidates(name, PART), 3):
        assert re.fullmatch("[a-z0-9]([a-z0-9-]*[a-z0-9])?", label)
        assert len(f"{label}-abcdefghij") <= 63
