"""`cogwork config migrate`: write a copy of a configuration of viam-server for this machine."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.cli.config.check import build_registry, read_argument
from cogwork.cli.config.secrets import make_redact
from cogwork.cli.confirmation import CannotAsk, confirm
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_USAGE,
    print_error,
    print_json,
    print_text,
)
from cogwork.config.check import diagnostic_format
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LocatedDiagnostic
from cogwork.config.migration.migrate import Change, Migration, Unparsable, migrate
from cogwork.config.migration.step import StepKind
from cogwork.config.text.file import Unreadable, read_text
from cogwork.core.errors import CogworkError
from cogwork.core.files import atomic
from cogwork.core.os_error_text import write_reason
from cogwork.core.paths import cogwork_home

_STANDARD_OUTPUT = "-"
_PRIVATE = 0o600


class _CannotMigrate(CogworkError):
    """The copy cannot be made. The message explains why and what to do."""


def migrate_file(arguments: argparse.Namespace) -> int:
    try:
        return _migrate(arguments)
    except (_CannotMigrate, CannotAsk) as error:
        print_error(str(error))
        return EXIT_USAGE


def _migrate(arguments: argparse.Namespace) -> int:
    file: str = arguments.file
    output = _choose_output(file, arguments.output)
    if arguments.json and output == _STANDARD_OUTPUT:
        raise _CannotMigrate("with --json, name a file for the copy: add -o FILE")
    try:
        text = read_argument(file)
    except Unreadable as error:
        raise _CannotMigrate(f"cannot read {file}: {error}") from None
    try:
        context = LoadContext(build_registry(), cogwork_home(os.environ), os.environ)
        found = migrate(text, context.in_directory_of(None if file == _STANDARD_OUTPUT else file))
    except Unparsable as error:
        raise _CannotMigrate(_describe_unparsable(file, error.diagnostics)) from None
    if arguments.output is None and found.text == text and output != _STANDARD_OUTPUT:
        target = None
    else:
        target = _write(output, found.text, yes=arguments.yes)
        if target is None:
            return EXIT_FAILURE
    report = _Report(file, target, found, make_redact(text))
    if arguments.json:
        print_json(report.as_json())
    else:
        report.print()
    return EXIT_FAILURE if found.left.has_errors else EXIT_OK


def _choose_output(file: str, wanted: str | None) -> str:
    if wanted is None:
        if file == _STANDARD_OUTPUT:
            return _STANDARD_OUTPUT
        path = Path(file)
        return str(path.with_name(f"{path.stem}.migrated{path.suffix}"))
    if file != _STANDARD_OUTPUT and Path(wanted).resolve() == Path(file).resolve():
        raise _CannotMigrate(f"{file} is not changed in place; name another file with -o")
    return wanted


def _describe_unparsable(file: str, diagnostics: Sequence[LocatedDiagnostic]) -> str:
    faults = (diagnostic_format.as_text(fault, file) for fault in diagnostics)
    return "\n".join((*faults, f"{file} cannot be migrated; fix it first"))


def _write(output: str, text: str, *, yes: bool) -> str | None:
    """Write the copy, which contains secrets, for its owner only. Return its name; None if the
    user declines."""
    if output == _STANDARD_OUTPUT:
        sys.stdout.write(text)
        return output
    path = Path(output)
    try:
        if path.exists() and not _is_same(path, text):
            if not yes and not confirm(f"{output} exists and is different. Overwrite it?"):
                print_error(f"{output} is unchanged")
                return None
            print_error(f"overwriting {output}")
        # Write an identical file, too, so that it gets the mode.
        atomic.write(path.resolve(), text.encode(), _PRIVATE)
    except OSError as error:
        raise _CannotMigrate(
            f"cannot write {output}: {write_reason(error)}; name another file with -o"
        ) from None
    return output


def _is_same(path: Path, text: str) -> bool:
    try:
        return read_text(path) == text
    except Unreadable:
        return False


@dataclass(frozen=True, slots=True)
class _Report:
    file: str
    output: str | None
    """The name of the copy; None if nothing had to be changed."""
    migration: Migration
    redact: Callable[[str], str]

    def print(self) -> None:
        # Only the copy goes to standard output, so that it can be redirected.
        say = print_error if self.output == _STANDARD_OUTPUT else print_text
        for change in self.migration.changes:
            say(f"{self.file}:{change.line}: {self._describe(change)}")
        say(self._summary)
        left = self.migration.left.diagnostics
        if left:
            say("\nleft for you:")
            for fault in left:
                say(f"{self._locate(fault)}: {_describe_fault(fault)}")

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "output": self.output,
            "changes": [
                {
                    "line": change.line,
                    "change": change.step.kind.value,
                    "old": self.redact(change.step.old),
                    "new": self.redact(change.step.new) or None,
                    "reason": self.redact(change.step.reason),
                }
                for change in self.migration.changes
            ],
            "left": [
                diagnostic_format.as_json(fault, self.output or self.file)
                for fault in self.migration.left.diagnostics
            ],
        }

    def _describe(self, change: Change) -> str:
        step = change.step
        done = f"{step.kind.value} {step.old}"
        if step.kind is not StepKind.REMOVED:
            done += f" {'to' if step.kind is StepKind.RENAMED else 'by'} {step.new}"
        return self.redact(f"{done}; {step.reason}")

    @property
    def _summary(self) -> str:
        count = len(self.migration.changes)
        changes = f"{count} change{'' if count == 1 else 's'}"
        if self.output is None:
            return f"{self.file} needs no changes; use it as it is"
        if self.output == _STANDARD_OUTPUT:
            return f"{changes}; what runs is the same"
        return (
            f"wrote {self.output}: {changes}; what runs is the same\n"
            f"to run it: cogwork-server -config {shlex.quote(self.output)}"
        )

    def _locate(self, fault: LocatedDiagnostic) -> str:
        name = self.file if self.output in (None, _STANDARD_OUTPUT) else self.output
        return f"{name}:{fault.excerpt.position.line}" if fault.excerpt else str(name)


def _describe_fault(fault: LocatedDiagnostic) -> str:
    found = fault.diagnostic
    return f"{found.message}; {found.hint}" if found.hint else found.message
