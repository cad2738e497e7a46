"""Reads a guide as a list of things to do: files to write, and commands with what they print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```', re.MULTILINE | re.DOTALL
)
_ANYTHING = "…"


@dataclass(frozen=True)
class File:
    path: str
    text: str


@dataclass(frozen=True)
class Command:
    line: str
    output: list[str]

    def printed_as_shown(self, printed: str) -> bool:
        pattern = "\n".join(_pattern(line) for line in self.output)
        return re.fullmatch(pattern, printed.rstrip("\n")) is not None


def _pattern(line: str) -> str:
    """`…` alone stands for any number of lines, within a line for anything in it."""
    if line == _ANYTHING:
        return r"[\s\S]*"
    return r".*".join(re.escape(part) for part in line.split(_ANYTHING))


def steps(guide: Path) -> list[File | Command]:
    found: list[File | Command] = []
    for block in _BLOCK.finditer(guide.read_text()):
        if block["title"]:
            found.append(File(block["title"], block["body"]))
        elif block["kind"] == "console":
            found += _commands(block["body"])
    return found


def _commands(body: str) -> list[Command]:
    commands: list[Command] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], []))
        else:
            commands[-1].output.append(line)
    return commands
