"""The commands as values: what is declared, and nothing else."""

from __future__ import annotations

import argparse

import pytest

from cogwork.cli import command_tree
from cogwork.cli.command_tree import Command, find_program, programs, walk
from cogwork.cli.commands import build_parser
from cogwork.server.options import OPTIONS

COGWORK, SERVER = programs()
LEAVES = [command for command in walk(COGWORK) if not command.commands]


@pytest.mark.parametrize("command", LEAVES, ids=lambda command: command.name)
def test_a_command_takes_what_its_usage_says(command: Command) -> None:
    parser = build_parser()
    values = [_value(argument.metavar, argument.choices) for argument in command.positional]
    options = [
        word
        for argument in command.options
        if argument.metavar
        for word in (argument.flags[-1], _value(argument.metavar, argument.choices))
    ]
    assert parser.parse_args([*command.words[1:], *options, *values]).run


def _value(metavar: str | None, choices: tuple[str, ...]) -> str:
    return choices[0] if choices else "1" if metavar in ("N", "PORT", "SECONDS") else "text"


def test_every_command_says_what_it_does() -> None:
    assert all(command.summary for command in walk(COGWORK))


def test_the_usage_of_a_command() -> None:
    usages = {command.name: command.usage for command in walk(COGWORK)}
    assert usages["cogwork config diff"] == "cogwork config diff [--json] OLD NEW"
    assert "[--history [RESOURCE]]" in usages["cogwork status"]
    assert usages["cogwork copy"].endswith(" FROM... TO")
    assert usages["cogwork"] == "cogwork [--version] COMMAND"


def test_the_server_has_every_option() -> None:
    assert len(SERVER.options) == len(OPTIONS)
    assert SERVER.usage == "cogwork-server -config FILE [OPTION]..."


def test_programs_are_found_by_the_name_of_their_file() -> None:
    assert find_program("/opt/cogwork/bin/cogwork-server") == SERVER
    assert find_program("cogwork") == COGWORK
    assert find_program("ls") is None


def test_what_is_suppressed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = argparse.ArgumentParser(description="A program.")
    parser.add_argument("--hidden", help=argparse.SUPPRESS)
    monkeypatch.setattr(command_tree, "build_parser", lambda: parser)
    assert [argument.flags for argument in programs()[0].arguments] == [("-h", "--help")]
