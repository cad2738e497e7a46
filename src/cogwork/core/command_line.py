"""Commands declared as a table: each with its name, help, arguments and the function that runs it.

    group(
        "key",
        "Create and delete keys",
        command("create", "Create a key", "keys:create", argument("NAME", "its name"), JSON),
        command("delete", "Delete a key", "keys:delete", argument("KEY", "its name or ID")),
    )

Each of these calls returns a function that adds the declared command or argument to argparse.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[Any]  # noqa: SLF001 - argparse exports no other type

AddArgument = Callable[[argparse.ArgumentParser], None]
AddCommand = Callable[["Subparsers"], None]
Parse = Callable[[str], Any]
"""Converts the text of an argument, or raises ArgumentTypeError."""
Run = str | Callable[[argparse.Namespace], int]
"""The function that runs a command, or its path `module:function`, which is imported on demand."""


def group(name: str, summary: str, *commands: AddCommand) -> AddCommand:
    """Declare a command that consists of other commands."""

    def add(parsers: Subparsers) -> None:
        parser = parsers.add_parser(name, help=summary)
        inner = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
        for add_command in commands:
            add_command(inner)

    return add


def command(
    name: str, summary: str, run: Run, *arguments: AddArgument, epilog: str | None = None
) -> AddCommand:
    def add(parsers: Subparsers) -> None:
        parser = parsers.add_parser(name, help=summary, epilog=epilog)
        for add_argument in arguments:
            add_argument(parser)
        parser.set_defaults(run=run)

    return add


def argument(
    name: str,
    meaning: str,
    *,
    dest: str | None = None,
    parse: Parse = str,
    nargs: str | None = None,
    default: object = None,
    choices: Sequence[str] | None = None,
) -> AddArgument:
    """Declare a positional argument.

    `name` is its placeholder in the help; the lower-case `name` is its `dest`.
    """

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            dest or name.lower(),
            metavar=name,
            help=meaning,
            type=parse,
            nargs=nargs,
            default=default,
            choices=choices,
        )

    return add


def option(
    flags: str,
    placeholder: str | None,
    meaning: str,
    *,
    parse: Parse = str,
    nargs: str | None = None,
    const: object = None,
    default: object = None,
    choices: Sequence[str] | None = None,
    required: bool = False,
    repeated: bool = False,
) -> AddArgument:
    """Declare an option with a value.

    `flags` are written as `-o, --output`. Without a placeholder, the help shows the choices. The
    values of a repeated option form a list.
    """

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            *flags.split(", "),
            action="append" if repeated else "store",
            metavar=placeholder,
            help=meaning,
            type=parse,
            nargs=nargs,
            const=const,
            default=[] if repeated else default,
            choices=choices,
            required=required,
        )

    return add


def add_descriptions(parser: argparse.ArgumentParser) -> None:
    """Begin the help of each command with the sentence that the list of commands has for it."""
    # argparse has no public way to list the declared commands.
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for each in action._choices_actions:  # noqa: SLF001
                inner = action.choices[each.dest]
                inner.description = inner.description or f"{each.help}."
                add_descriptions(inner)


def switch(flags: str, meaning: str, *, dest: str | None = None) -> AddArgument:
    """Declare an option without a value."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(*flags.split(", "), action="store_true", help=meaning, dest=dest)

    return add
