from __future__ import annotations

import argparse
from collections.abc import Sequence

import pytest

from cogwork.core.command_line import AddCommand, argument, command, group, option, switch

COLOR = option("-c, --color", None, "the color", choices=("red", "blue"), default="red")
PAINT = command(
    "paint",
    "Paint a wall",
    "house:paint",
    argument("WALL", "the wall"),
    argument("HOW", "the number of coats", dest="coats", nargs="*", parse=int),
    COLOR,
    option("--tool", "TOOL", "a tool", repeated=True),
    option("--hours", "N", "until when", parse=float, nargs="?", const=1.5),
    switch("--dry-run", "do nothing", dest="rehearse"),
    epilog="Exit status: 0.",
)


def parse(words: Sequence[str], *commands: AddCommand) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    subparsers = parser.add_subparsers()
    for add in commands:
        add(subparsers)
    return parser.parse_args(words)


def test_values_have_the_types_and_names_that_are_declared() -> None:
    words = ["paint", "north", "2", "3", "-c", "blue", "--tool", "brush", "--tool", "ladder"]
    assert vars(parse([*words, "--hours", "--dry-run"], PAINT)) == {
        "wall": "north",
        "coats": [2, 3],
        "color": "blue",
        "tool": ["brush", "ladder"],
        "hours": 1.5,
        "rehearse": True,
        "run": "house:paint",
    }


def test_defaults() -> None:
    found = parse(["paint", "north"], PAINT)
    assert (found.color, found.tool, found.hours, found.rehearse) == ("red", [], None, False)


def test_values_of_one_call_do_not_reach_the_next() -> None:
    assert parse(["paint", "north", "--tool", "brush"], PAINT).tool == ["brush"]
    assert parse(["paint", "north"], PAINT).tool == []


def test_group_runs_the_command_that_is_named() -> None:
    house = group("house", "Care for a house", PAINT, command("sell", "Sell it", "house:sell"))
    assert parse(["house", "sell"], house).run == "house:sell"
    assert parse(["house", "paint", "north"], house).run == "house:paint"


@pytest.mark.parametrize("words", [["paint"], ["paint", "north", "-c", "green"]])
def test_wrong_arguments_are_refused(words: list[str]) -> None:
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parse(words, PAINT)


def test_required_option_must_be_given() -> None:
    paint = command("paint", "Paint", "house:paint", option("--wall", "WALL", "", required=True))
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parse(["paint"], paint)
    assert parse(["paint", "--wall", "north"], paint).wall == "north"
