from __future__ import annotations

import pytest

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.fleet.selection import SelectionChoice, select, select_only

CHOICES = [
    (SelectionChoice("id-1", ("press-main", "press"), "in Hall 1"), 1),
    (SelectionChoice("id-2", ("saw-main", "saw"), "in Hall 1"), 2),
    (SelectionChoice("id-3", ("press-main", "press"), "in Hall 2"), 3),
    (SelectionChoice("id-4", ("id-1",), "in Hall 2"), 4),
]


def find(wanted: str) -> int:
    return select("part", wanted, CHOICES, "cogwork fleet machines")


@pytest.mark.parametrize(("wanted", "found"), [("saw", 2), ("saw-main", 2), ("id-3", 3)])
def test_id_and_every_name_select(wanted: str, found: int) -> None:
    assert find(wanted) == found


def test_id_comes_before_a_name_that_looks_like_one() -> None:
    assert find("id-1") == 1


def test_ambiguous_name_lists_the_ids() -> None:
    with pytest.raises(CommandError) as ambiguous:
        find("press")
    assert str(ambiguous.value) == (
        '"press" is the name of 2 parts; use the ID of the one you mean:\n'
        "  id-1  press-main  in Hall 1\n"
        "  id-3  press-main  in Hall 2"
    )


def test_unknown_name_has_a_suggestion_or_the_list() -> None:
    with pytest.raises(CommandError, match=r'no part "sww"; did you mean "saw"\?'):
        find("sww")
    with pytest.raises(CommandError, match='no part "x"; list them with: cogwork fleet machines'):
        find("x")


def test_only_choice_need_not_be_named() -> None:
    assert select_only("location", CHOICES[:1], "--location", "create") == 1
    with pytest.raises(CommandError, match="no location yet; create one with: create"):
        select_only("location", [], "--location", "create")
    with pytest.raises(CommandError, match=r"several locations; choose one with --location:\n  id"):
        select_only("location", CHOICES, "--location", "create")
