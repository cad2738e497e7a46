"""All programs and their commands as values, for completion and documentation."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from cogwork.agent import main as agent
from cogwork.cli.commands import build_parser
from cogwork.cloud import main as cloud
from cogwork.server.options import EXIT_CODES, OPTIONS, Option

HELP = frozenset(("-h", "-help", "--help"))
_OPTIONS_IN_USAGE = 8


@dataclass(frozen=True, slots=True)
class Argument:
    """An option, or a positional argument if it has no flags."""

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    """The placeholder of the value; None for a switch."""
    choices: tuple[str, ...] = ()
    required: bool = False
    repeated: bool = False
    optional_value: bool = False

    @property
    def usage(self) -> str:
        """The option with all its flags, as in help texts."""
        if not self.flags:
            return self.value
        return ", ".join(self.flags) + (f" {self.value}" if self.metavar else "")

    @property
    def synopsis(self) -> str:
        """The option as in the usage line of a command."""
        text = " ".join((*self.flags[:1], self.value)).strip()
        text += "..." if self.repeated else ""
        return text if self.required else f"[{text}]"

    @property
    def meaning(self) -> str:
        choices = f"one of {', '.join(self.choices)}" if self.choices else ""
        return "; ".join(part for part in (self.help, choices) if part)

    @property
    def value(self) -> str:
        return f"[{self.metavar}]" if self.optional_value else self.metavar or ""


@dataclass(frozen=True, slots=True)
class Command:
    words: tuple[str, ...]
    """The name of the program and of its commands: `("cogwork", "config", "check")`."""
    summary: str
    notes: str = ""
    """Text after the list of arguments."""
    arguments: tuple[Argument, ...] = ()
    commands: tuple[Command, ...] = ()

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def phrase(self) -> str:
        """The summary in lower case and without a period, to follow the name of the command."""
        return self.summary[:1].lower() + self.summary[1:].removesuffix(".")

    @property
    def sentence(self) -> str:
        return self.summary[:1].upper() + self.summary[1:].removesuffix(".") + "."

    @property
    def usage(self) -> str:
        """The usage line. If there are many options, only the required ones are listed."""
        options = [option for option in self.options if not HELP.intersection(option.flags)]
        required = [option for option in options if option.required]
        summed_up = len(options) > _OPTIONS_IN_USAGE
        words = [option.synopsis for option in (required if summed_up else options)]
        words += ["[OPTION]..."] * summed_up
        words += [argument.synopsis for argument in self.positional]
        words += ["COMMAND"] * bool(self.commands)
        return " ".join((self.name, *words))

    @property
    def options(self) -> list[Argument]:
        return [argument for argument in self.arguments if argument.flags]

    @property
    def positional(self) -> list[Argument]:
        return [argument for argument in self.arguments if not argument.flags]


def programs() -> tuple[Command, ...]:
    """Return cogwork, cogwork-server, cogwork-agent and cogwork-cloud."""
    return (
        _from_parser(build_parser(), ("cogwork",)),
        _server(),
        _from_parser(agent.build_parser(), ("cogwork-agent",)),
        _from_parser(cloud.build_parser(), ("cogwork-cloud",)),
    )


def find_program(path: str) -> Command | None:
    """Return the program with this file name, or None."""
    name = PurePath(path).name
    return next((program for program in programs() if program.name == name), None)


def walk(command: Command) -> Iterator[Command]:
    """Yield the command and all its subcommands, in the order of their declaration."""
    yield command
    for inner in command.commands:
        yield from walk(inner)


def _from_parser(
    parser: argparse.ArgumentParser, words: tuple[str, ...], summary: str | None = None
) -> Command:
    # argparse has no public way to list the declared arguments.
    actions = parser._actions  # noqa: SLF001
    shown = [action for action in actions if action.help != argparse.SUPPRESS]
    return Command(
        words,
        summary or parser.description or "",
        parser.epilog or "",
        tuple(_from_action(action) for action in shown if not _has_commands(action)),
        tuple(_commands(words, [action for action in shown if _has_commands(action)])),
    )


def _has_commands(action: argparse.Action) -> bool:
    return isinstance(action, argparse._SubParsersAction)  # noqa: SLF001


def _commands(words: tuple[str, ...], actions: Sequence[argparse.Action]) -> Iterator[Command]:
    for action in actions:
        assert isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
        summaries = {each.dest: each.help for each in action._choices_actions}  # noqa: SLF001
        for name, parser in action.choices.items():
            yield _from_parser(parser, (*words, name), summaries.get(name))


def _from_action(action: argparse.Action) -> Argument:
    takes_value = action.nargs != 0
    metavar = action.metavar or action.dest.upper()
    return Argument(
        action.help or "",
        tuple(action.option_strings),
        str(metavar) if takes_value else None,
        tuple(map(str, action.choices or ())),
        required=action.required,
        repeated=action.nargs in (argparse.ONE_OR_MORE, argparse.ZERO_OR_MORE),
        optional_value=bool(action.option_strings) and action.nargs == argparse.OPTIONAL,
    )


def _server() -> Command:
    exits = "; ".join(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items())
    return Command(
        ("cogwork-server",),
        "Run the machine that FILE describes, and follow FILE when it changes.",
        "An option is written -x or --x, its value -x=VALUE or -x VALUE. A switch is turned off by "
        f"-x=false. Exit codes: {exits}.",
        tuple(map(_from_option, OPTIONS)),
    )


def _from_option(option: Option) -> Argument:
    flags = ("-h", "-help") if option.name == "help" else (f"-{option.name}",)
    remarks = ["on by default"] * (option.default is True) + ["no effect yet"] * bool(
        option.unsupported_reason
    )
    text = f"{option.description} ({', '.join(remarks)})" if remarks else option.description
    return Argument(text, flags, option.placeholder, required=option.name == "config")
