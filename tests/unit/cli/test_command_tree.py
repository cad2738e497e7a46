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


EVERY = [command for program in programs() for command in walk(program)]
WITHOUT_JSON = {
    # They print a document that is JSON itself, or a script.
    *("cogwork call", "cogwork completion", "cogwork config schema"),
    # They show a live picture, a terminal or a log until they are stopped.
    *("cogwork camera watch", "cogwork demo", "cogwork module run", "cogwork shell"),
    # They change something, and report it in one line.
    *(
        "cogwork auth remove",
        "cogwork config restore",
        "cogwork copy",
        "cogwork model demo",
        "cogwork module new",
    ),
    *("cogwork fleet config edit", "cogwork fleet config restore", "cogwork fleet key delete"),
    *("cogwork fleet logout", "cogwork fleet machine delete", "cogwork fleet machine rename"),
    "cogwork fleet restart",
}


@pytest.mark.parametrize("command", LEAVES, ids=lambda command: command.name)
def test_command_that_shows_data_has_json(command: Command) -> None:
    has_json = any("--json" in option.flags for option in command.options)
    assert has_json != (command.name in WITHOUT_JSON)


@pytest.mark.parametrize("command", EVERY, ids=lambda command: command.name)
def test_help_of_a_command_reads_well(command: Command) -> None:
    assert command.summary[0].isupper()
    texts = [command.notes, *(argument.help for argument in command.arguments)]
    assert not [text for text in texts if "%(" in text]


def test_help_begins_with_what_the_command_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(["config", "check", "-h"])
    assert "\n\nCheck a configuration file for errors.\n\n" in capsys.readouterr().out


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
