"""`cogwork completion`: completion for bash, zsh and fish.

The script for a shell only calls `cogwork completion SHELL --words …` to get the candidates, so the
script does not change when Cogwork is updated. Names of resources come from the running machine.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cogwork.cli import machine_names
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
    line = _parse_words(program, before[1:])
    command, option = line.command, line.option
    flag, equals, value = current.partition("=")
    if option is None and equals:
        option, current = _find_option(command, flag), value
    if option is not None:
        found = _list_values(line, option, current)
    elif current.startswith("-"):
        found = _list_flags(command, current)
    elif command.commands:
        found = [CompletionCandidate(each.words[-1], each.summary) for each in command.commands]
    else:
        found = _list_values(line, line.optional, current) if line.optional is not None else []
        found = found or _complete_positional(line, current)
    return [each for each in found if each.is_request or each.word.startswith(current)]


@dataclass(slots=True)
class _ParsedLine:
    """The words before the one that is completed."""

    command: Command
    positional: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    """The values of options by their last flag, such as `--output`."""
    option: Argument | None = None
    """The option whose value comes next."""

    optional: Argument | None = None
    """The option whose value may come next."""

    @property
    def address(self) -> str | None:
        return self.options.get("--address")


def _parse_words(program: Command, words: Sequence[str]) -> _ParsedLine:
    line = _ParsedLine(program)
    for word in words:
        inner = {each.words[-1]: each for each in line.command.commands}
        if line.option is not None:
            line.options[line.option.flags[-1]] = word
            line.option = None
        elif word.startswith("-") and word != "-":
            flag, equals, value = word.partition("=")
            found = _find_option(line.command, flag)
            if found is not None and equals:
                line.options[found.flags[-1]] = value
            elif found is not None and found.optional_value:
                line.optional = found
                continue
            elif found is not None and found.metavar:
                line.option = found
        elif word in inner:
            line.command, line.positional = inner[word], []
        else:
            line.positional.append(word)
        line.optional = None
    return line


def _find_option(command: Command, flag: str) -> Argument | None:
    written = {flag, flag.removeprefix("-")}
    return next((each for each in command.options if written.intersection(each.flags)), None)


def _list_flags(command: Command, current: str) -> list[CompletionCandidate]:
    # The options of cogwork-server have one dash, but two are accepted.
    dash = "-" if current.startswith("--") else ""
    flags = ((each.flags[-1], each.help) for each in command.options)
    return [CompletionCandidate(f if f.startswith("--") else dash + f, text) for f, text in flags]


def _complete_positional(line: _ParsedLine, current: str) -> list[CompletionCandidate]:
    expected, position = line.command.positional, len(line.positional)
    if not expected:
        return _list_flags(line.command, "")
    if position < len(expected):
        return _list_values(line, expected[position], current)
    if any(each.repeated for each in expected):
        return _list_values(line, expected[-1], current)
    return []


def _list_values(line: _ParsedLine, argument: Argument, current: str) -> list[CompletionCandidate]:
    if argument.metavar in _PATHS:
        return [CompletionCandidate(_PATHS[argument.metavar])]
    if argument.metavar == "CODE":
        return [CompletionCandidate(code.id, code.title) for code in CODES.values()]
    list_names = _NAMES.get((line.command.name, argument.metavar or ""))
    if list_names is not None:
        return [CompletionCandidate(*each) for each in list_names(line, current)]
    return [CompletionCandidate(choice) for choice in argument.choices]


_ListNames = Callable[[_ParsedLine, str], list[machine_names.NamedItem]]


def _list_resources(subtype: str | None = None) -> _ListNames:
    return lambda line, _: machine_names.list_resources(line.address, subtype)


def _list_modules(line: _ParsedLine, _: str) -> list[machine_names.NamedItem]:
    return machine_names.list_modules(line.address)


def _list_methods(line: _ParsedLine, current: str) -> list[machine_names.NamedItem]:
    return machine_names.list_methods(line.address, line.positional[0], current)


def _list_model_names(*_: object) -> list[machine_names.NamedItem]:
    """Return the built-in models and APIs. Packages are not asked, because that runs their code."""
    from cogwork.drivers.builtin_models import builtin_models

    models = builtin_models()
    words = sorted({word for each in models for word in (each.api.subtype, each.name.short)})
    return [machine_names.NamedItem(word, "") for word in words]


_NAMES: dict[tuple[str, str], _ListNames] = {
    ("cogwork call", "RESOURCE"): _list_resources(),
    ("cogwork call", "METHOD"): _list_methods,
    ("cogwork camera snap", "NAME"): _list_resources("camera"),
    ("cogwork camera watch", "NAME"): _list_resources("camera"),
    ("cogwork status", "RESOURCE"): _list_resources(),
    ("cogwork shell", "NAME"): _list_resources("shell"),
    ("cogwork copy", "NAME"): _list_resources("shell"),
    ("cogwork module restart", "NAME"): _list_modules,
    ("cogwork models", "WORD"): _list_model_names,
}
"""By command and placeholder: the names for an argument, most of them from a running machine."""


def _format_for_zsh(candidate: CompletionCandidate) -> str:
    escaped = candidate.word.replace(":", "\\:")
    return candidate.word if candidate.is_request else f"{escaped}:{candidate.help}"


_FORMATS: dict[str, Callable[[CompletionCandidate], str]] = {
    "bash": lambda candidate: candidate.word,
    "zsh": _format_for_zsh,
    "fish": lambda candidate: f"{candidate.word}\t{candidate.help}".rstrip("\t"),
}
