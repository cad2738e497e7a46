"""`cogwork completion`: completion for bash, zsh and fish.

The script for a shell only calls `cogwork completion SHELL --words …` to get the candidates, so the
script does not change when Cogwork is updated.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cogwork.cli.command_tree import Argument, Command, find_program
from cogwork.config.schema.codes import CODES

SCRIPTS = Path(__file__).parent / "completions"
FILES = ":files"
DIRECTORIES = ":directories"
"""Printed instead of candidates, to let the shell complete paths."""
_PATHS = {
    **dict.fromkeys(("FILE", "OLD", "NEW", "FROM", "TO", "DIR|FILE"), FILES),
    **dict.fromkeys(("DIR", "DIRECTORY"), DIRECTORIES),
}


@dataclass(frozen=True, slots=True)
class CompletionCandidate:
    word: str
    help: str = ""

    @property
    def is_request(self) -> bool:
        return self.word in (FILES, DIRECTORIES)


def completion(arguments: argparse.Namespace) -> int:
    if arguments.words is None:
        print((SCRIPTS / f"cogwork.{arguments.shell}").read_text(encoding="utf-8"), end="")
        return 0
    words = arguments.words
    if arguments.shell == "bash":
        # Bash splits words at ":" and "=", so its script passes the whole line instead.
        words = split_line(words[0])
    for candidate in complete(words):
        print(_FORMATS[arguments.shell](candidate))
    return 0


def split_line(line: str) -> list[str]:
    """Split a line up to the cursor into words. The last word is incomplete and may be empty."""
    for quote in ("", "\\", '"', "'"):
        try:
            words = shlex.split(line + quote)
        except ValueError:
            continue
        return [*words, ""] if not quote and line[-1:].isspace() else words
    return line.split(" ")


def complete(words: Sequence[str]) -> list[CompletionCandidate]:
    """Return the candidates for the last word."""
    *before, current = words or [""]
    program = find_program(before[0]) if before else None
    if program is None:
        return []
    command, position, option = _parse_words(program, before[1:])
    flag, equals, value = current.partition("=")
    if option is None and equals:
        option, current = _find_option(command, flag), value
    if option is not None:
        found = _list_values(option)
    elif current.startswith("-"):
        found = _list_flags(command, current)
    elif command.commands:
        found = [CompletionCandidate(each.words[-1], each.summary) for each in command.commands]
    else:
        found = _complete_positional(command, position)
    return [each for each in found if each.is_request or each.word.startswith(current)]


def _parse_words(program: Command, words: Sequence[str]) -> tuple[Command, int, Argument | None]:
    """Parse the words of a command line.

    Return the command, the number of its positional arguments so far, and the option whose value
    comes next.
    """
    command, position, option = program, 0, None
    for word in words:
        inner = {each.words[-1]: each for each in command.commands}
        if option is not None:
            option = None
        elif word.startswith("-") and word != "-":
            found = None if "=" in word else _find_option(command, word)
            option = found if found and found.metavar and not found.optional_value else None
        elif word in inner:
            command, position = inner[word], 0
        else:
            position += 1
    return command, position, option


def _find_option(command: Command, flag: str) -> Argument | None:
    written = {flag, flag.removeprefix("-")}
    return next((each for each in command.options if written.intersection(each.flags)), None)


def _list_flags(command: Command, current: str) -> list[CompletionCandidate]:
    # The options of cogwork-server have one dash, but two are accepted.
    dash = "-" if current.startswith("--") else ""
    flags = ((each.flags[-1], each.help) for each in command.options)
    return [CompletionCandidate(f if f.startswith("--") else dash + f, text) for f, text in flags]


def _complete_positional(command: Command, position: int) -> list[CompletionCandidate]:
    expected = command.positional
    if not expected:
        return _list_flags(command, "")
    if position < len(expected):
        return _list_values(expected[position])
    return _list_values(expected[-1]) if any(each.repeated for each in expected) else []


def _list_values(argument: Argument) -> list[CompletionCandidate]:
    if argument.metavar in _PATHS:
        return [CompletionCandidate(_PATHS[argument.metavar])]
    if argument.metavar == "CODE":
        return [CompletionCandidate(code.id, code.title) for code in CODES.values()]
    return [CompletionCandidate(choice) for choice in argument.choices]


def _format_for_zsh(candidate: CompletionCandidate) -> str:
    escaped = candidate.word.replace(":", "\\:")
    return candidate.word if candidate.is_request else f"{escaped}:{candidate.help}"


_FORMATS: dict[str, Callable[[CompletionCandidate], str]] = {
    "bash": lambda candidate: candidate.word,
    "zsh": _format_for_zsh,
    "fish": lambda candidate: f"{candidate.word}\t{candidate.help}".rstrip("\t"),
}
