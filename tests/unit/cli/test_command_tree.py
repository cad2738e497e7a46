"""The command tree contains exactly what is declared."""

from __future__ import annotations

import argparse

import pytest

from cogwork.cli import command_tree
from cogwork.cli.command_tree import Command, find_program, programs, walk
from cogwork.cli.commands import build_parser
from cogwork.server.options import OPTIONS

COGWORK, SERVER, AGENT, CLOUD = programs()
LEAVES = [command for command in walk(COGWORK) if not command.commands]


@pytest.mark.parametrize("command", LEAVES, ids=lambda command: command.name)
def test_parser_accepts_the_documented_usage(command: Command) -> None:
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


def test_every_command_has_a_summary() -> None:
    assert all(command.summary for program in programs() for command in walk(program))


def test_usage_of_commands() -> None:
    usages = {command.name: command.usage for command in walk(COGWORK)}
    assert usages["cogwork config diff"] == "cogwork config diff [--json] OLD NEW"
    assert "[--history [RESOURCE]]" in usages["cogwork status"]
    assert usages["cogwork copy"].endswith(" FROM... TO")
    assert usages["cogwork"] == "cogwork [--version] COMMAND"


def test_server_has_every_option() -> None:
    assert len(SERVER.options) == len(OPTIONS)
    assert SERVER.usage == "cogwork-server -config FILE [OPTION]..."


def test_program_is_found_by_its_file_name() -> None:
    assert find_program("/opt/cogwork/bin/cogwork-server") == SERVER
    assert find_program("cogwork") == COGWORK
    assert find_program("cogwork-agent") == AGENT
    assert find_program("cogwork-cloud") == CLOUD
    assert find_program("ls") is None


def test_suppressed_arguments_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = argparse.ArgumentParser(description="A program.")
    parser.add_argument("--hidden", help=argparse.SUPPRESS)
    monkeypatch.setattr(command_tree, "build_parser", lambda: parser)
    assert [argument.flags for argument in programs()[0].arguments] == [("-h", "--help")]
