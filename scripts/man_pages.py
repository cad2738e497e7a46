"""Writes the man pages of all programs, for the wheel.

python -m scripts.man_pages build/man
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from cogwork import __version__
from cogwork.cli.command_tree import HELP, Argument, Command, programs, walk

ROOT = Path(__file__).parents[1]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the man pages.")
    parser.add_argument("directory", type=Path)
    directory = parser.parse_args(argv).directory
    directory.mkdir(parents=True, exist_ok=True)
    pages = programs()
    for page in pages:
        others = [other.name for other in pages if other is not page]
        (directory / f"{page.name}.1").write_text(man_page(page, others), encoding="utf-8")
    return 0


def man_page(program: Command, see_also: Sequence[str]) -> str:
    return "\n".join(_lines(program, see_also)) + "\n"


def _lines(program: Command, see_also: Sequence[str]) -> Iterator[str]:
    name, version = escape(program.name), escape(__version__)
    yield f'.TH "{name.upper()}" "1" "" "Cogwork {version}" "Cogwork"'
    yield from (".SH NAME", f"{name} \\- {escape(program.phrase)}")
    yield from (".SH SYNOPSIS", f".B {escape(program.usage)}")
    yield from (".SH DESCRIPTION", escape(program.sentence))
    if program.notes:
        yield from (".PP", escape(program.notes))
    if program.options:
        yield ".SH OPTIONS"
        yield from _arguments(program.options)
    leaves = [command for command in walk(program) if not command.commands]
    if program.commands:
        yield ".SH COMMANDS"
        for command in leaves:
            yield from _command(command)
    yield ".SH SEE ALSO"
    yield ", ".join(f"\\fB{escape(other)}\\fR(1)" for other in see_also)


def _command(command: Command) -> Iterator[str]:
    yield from (f'.SS "{escape(command.usage)}"', escape(command.sentence))
    yield from _arguments([each for each in command.arguments if not HELP.intersection(each.flags)])
    if command.notes:
        yield from (".PP", escape(command.notes))


def _arguments(arguments: Sequence[Argument]) -> Iterator[str]:
    for argument in arguments:
        yield from (".TP", f".B {escape(argument.usage)}", escape(argument.meaning))


def escape(text: str) -> str:
    """Return text that roff prints unchanged: dashes can be copied, and no line is a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    sys.exit(main())
