"""`cogwork config history`, `cogwork config show` and `cogwork config restore`."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cogwork.cli.config.secrets import make_redact
from cogwork.cli.confirmation import CannotAsk, confirm
from cogwork.cli.table import align_rows, format_age
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_USAGE,
    print_error,
    print_json,
    print_text,
)
from cogwork.config.source.config_history import ConfigHistory, history_directory
from cogwork.config.source.file_replacement import replace_text
from cogwork.config.source.history_entry import Author, AuthorKind, HistoryEntry, describe_entry
from cogwork.config.text.text_diff import diff_masked, diff_revealed, mask_text
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason, write_reason
from cogwork.core.paths import cogwork_home

_TAB_WIDTH = 4


class _NotPossible(CogworkError):
    """The command cannot be run. The message explains why and what to do."""


def history(arguments: argparse.Namespace) -> int:
    return _report_errors(lambda: _list(Path(arguments.config), as_json=arguments.json))


def show(arguments: argparse.Namespace) -> int:
    def run() -> int:
        entry = _find(_open(Path(arguments.config)), arguments.id)
        redact = make_redact(entry.text)
        text = entry.text if arguments.reveal else mask_text(entry.text, redact)
        if arguments.json:
            print_json({**describe_entry(entry), "text": text})
        else:
            _print_document(text)
        return EXIT_OK

    return _report_errors(run)


def restore(arguments: argparse.Namespace) -> int:
    return _report_errors(
        lambda: _restore(
            Path(arguments.config), arguments.id, yes=arguments.yes, reveal=arguments.reveal
        )
    )


def _list(file: Path, *, as_json: bool) -> int:
    entries = _open(file).entries()
    if as_json:
        print_json([describe_entry(entry) for entry in entries])
        return EXIT_OK
    now = time.time()
    rows = (_format_row(entry, now) for entry in entries)
    for line in align_rows([("ID", "AGE", "REVISION", "AUTHOR", "CHANGE"), *rows]):
        print_text(line)
    return EXIT_OK


def _restore(file: Path, entry_id: str, *, yes: bool, reveal: bool) -> int:
    stored = _open(file)
    entry = _find(stored, entry_id)
    current = _read_current(file)
    if current == entry.text:
        print_text(f"{file} already has the text of entry {entry.id}")
        return EXIT_OK
    redact = make_redact(current, entry.text)
    changes = (
        diff_revealed(current, entry.text) if reveal else diff_masked(current, entry.text, redact)
    )
    print_text(changes.expandtabs(_TAB_WIDTH))
    if not yes and not confirm(f"Restore entry {entry.id} to {file}?"):
        print_error(f"{file} is unchanged")
        return EXIT_FAILURE
    _write(file, entry, stored)
    print_text(f"restored entry {entry.id} to {file}; a running machine reloads it")
    return EXIT_OK


def _write(file: Path, entry: HistoryEntry, stored: ConfigHistory) -> None:
    author = Author(AuthorKind.RESTORE, _user_name(), entry.id)
    try:
        stored.announce(entry.text, author, time.time())
        replace_text(file, entry.text)
    except OSError as error:
        raise _NotPossible(
            f"cannot write {error.filename or file}: {write_reason(error)}; fix that and restore "
            "again"
        ) from None


def _report_errors(run: Callable[[], int]) -> int:
    try:
        return run()
    except (_NotPossible, CannotAsk) as error:
        print_error(str(error))
        return EXIT_USAGE
    except OSError as error:
        print_error(
            f"cannot read the history: {os_reason(error)} ({error.filename}); run the command as "
            "the user of the server"
        )
        return EXIT_USAGE


def _open(file: Path) -> ConfigHistory:
    """Return the history of a file. Raise _NotPossible if it has none, and OSError."""
    home = cogwork_home(os.environ)
    opened = ConfigHistory(history_directory(home, file), print_error)
    if next(opened.entries(), None) is None:
        raise _NotPossible(
            f"{home} has no history of {file}; name the file of the server with --config, set "
            "COGWORK_HOME to the value that the server uses, or start the server once"
        )
    return opened


def _find(opened: ConfigHistory, entry_id: str) -> HistoryEntry:
    is_number = entry_id.isascii() and entry_id.isdigit() and len(entry_id) < 10
    entry = opened.find(int(entry_id)) if is_number else None
    if entry is None:
        raise _NotPossible(f'no entry "{entry_id}"; list them with: cogwork config history')
    return entry


def _read_current(file: Path) -> str:
    if file.exists() and not file.is_file():
        raise _NotPossible(f"{file} is not a regular file; check the path")
    try:
        return file.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise _NotPossible(f"cannot read {file}: {os_reason(error)}; check the path") from None


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user may have no name, as in a container
        return str(os.getuid())


def _print_document(text: str) -> None:
    """Print a text: formatted on a terminal, unchanged otherwise."""
    if sys.stdout.isatty():
        print_text(text.expandtabs(_TAB_WIDTH))
    else:
        sys.stdout.write(text)


def _format_row(entry: HistoryEntry, now: float) -> tuple[str, ...]:
    age = format_age(now - entry.applied_at)
    return str(entry.id), age, entry.revision, str(entry.author), entry.summary
