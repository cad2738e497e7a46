from __future__ import annotations

from collections.abc import Iterator

import pytest
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.fleet.config.part_config import history_rows
from cogwork.cli.fleet.config.revisions import find_revision, iterate_revisions, read_text


def part(text: str, name: str = "press-main") -> pb.RobotPart:
    found = pb.RobotPart(name=name, robot_config_json=text)
    found.created_on.FromSeconds(100)
    return found


def edit(old: pb.RobotPart, seconds: int, key: str) -> pb.RobotPartHistoryEntry:
    entry = pb.RobotPartHistoryEntry(old=old, edited_by=pb.AuthenticatorInfo(value=key))
    entry.when.FromSeconds(seconds)
    return entry


FIRST, SECOND = '{"components": [{"name": "a"}]}', '{"components": [{"name": "b"}]}'
HISTORY = [
    edit(part(SECOND, "press"), 400, "carl"),
    edit(part(FIRST, "press"), 300, "bea"),
    edit(part("{}", "press"), 200, "anna"),
]


def test_edit_makes_the_revision_after_the_state_it_replaced() -> None:
    revisions = [*iterate_revisions(part(SECOND), HISTORY)]
    assert [(each.number, each.text, each.made_at, each.editor) for each in revisions] == [
        (3, SECOND, 400, "carl"),
        (2, SECOND, 300, "bea"),
        (1, FIRST, 200, "anna"),
        (0, "{}", 100, ""),
    ]
    assert [each.change for each in revisions] == [
        "renamed press to press-main",
        "added b; removed a",
        "added a",
        "created",
    ]


def test_history_names_who_saved_as_far_as_known() -> None:
    _, *rows = history_rows(iterate_revisions(part(SECOND), HISTORY), {"bea": "Bea's laptop"}, 460)
    assert [row[:3] for row in rows] == [
        ("3", "1m", "carl"),
        ("2", "2m", "Bea's laptop"),
        ("1", "4m", "anna"),
        ("0", "6m", "-"),
    ]


def test_part_without_edits_has_its_first_revision() -> None:
    (only,) = iterate_revisions(part("{}"), [])
    assert (only.number, only.change) == (0, "created")


@pytest.mark.parametrize("wanted", ["4", "-1", "x", "", "01"])
def test_unknown_revision_names_the_newest(wanted: str) -> None:
    with pytest.raises(CommandError, match="the newest is 3"):
        find_revision(iterate_revisions(part(SECOND), HISTORY), wanted)


def test_configuration_without_its_text_is_written_out() -> None:
    found = pb.RobotPart()
    found.robot_config.update({"debug": True})
    assert read_text(found) == '{\n  "debug": true\n}\n'


def test_revisions_keep_their_numbers_when_the_oldest_are_gone() -> None:
    edits = []
    for entry, number in zip(HISTORY, (1207, 1206, 1205), strict=True):
        edits.append(pb.RobotPartHistoryEntry())
        edits[-1].CopyFrom(entry)
        edits[-1].old.user_supplied_info.update({"revision": number})
    found = [*iterate_revisions(part(SECOND), edits)]
    assert [each.number for each in found] == [1208, 1207, 1206, 1205]
    assert (found[-1].change, found[-1].made_at) == ("the oldest that the cloud has", None)


def test_only_as_much_is_read_as_needed() -> None:
    def read() -> Iterator[pb.RobotPartHistoryEntry]:
        entry = edit(part(FIRST), 300, "bea")
        entry.old.user_supplied_info.update({"revision": 7})
        yield entry
        raise AssertionError("the next page is not needed")

    assert find_revision(iterate_revisions(part(SECOND), read()), "8").text == SECOND
