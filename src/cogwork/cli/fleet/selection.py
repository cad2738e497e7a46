"""Selects an item by the name or ID that the user gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.table import align_rows
from cogwork.config.check.diagnostics import did_you_mean

T = TypeVar("T")


class SelectionChoice(NamedTuple):
    """An item that can be selected."""

    id: str
    names: tuple[str, ...]
    """All names of the item, the usual name first."""
    details: str = ""
    """A text that distinguishes the item from others of the same name."""


def select(
    kind: str, wanted: str, choices: Iterable[tuple[SelectionChoice, T]], list_command: str
) -> T:
    """Return the value of the only choice with this ID or name.

    `kind` is the user's term for a choice, such as "machine". Raise CommandError.
    """
    listed = list(choices)
    for choice, value in listed:
        if choice.id == wanted:
            return value
    found = [(choice, value) for choice, value in listed if wanted in choice.names]
    if not found:
        names = [name for choice, _ in listed for name in choice.names]
        raise CommandError(_explain_missing(kind, wanted, names, list_command))
    if len(found) > 1:
        raise CommandError(_explain_ambiguous(kind, wanted, [choice for choice, _ in found]))
    return found[0][1]


def select_only(
    kind: str, choices: Sequence[tuple[SelectionChoice, T]], option: str, create_command: str
) -> T:
    """Return the value if there is only one choice, so that the user may omit the name.

    Raise CommandError otherwise.
    """
    if not choices:
        raise CommandError(f"there is no {kind} yet; create one with: {create_command}")
    if len(choices) > 1:
        rows = align_rows(_describe(choice) for choice, _ in choices)
        raise CommandError(
            "\n".join((f"there are several {kind}s; choose one with {option}:", *rows))
        )
    return choices[0][1]


def _explain_missing(kind: str, wanted: str, names: Sequence[str], list_command: str) -> str:
    hint = did_you_mean(wanted, names)
    return f'there is no {kind} "{wanted}"; {hint or f"list them with: {list_command}"}'


def _explain_ambiguous(kind: str, wanted: str, found: Sequence[SelectionChoice]) -> str:
    head = f'"{wanted}" is the name of {len(found)} {kind}s; use the ID of the one you mean:'
    return "\n".join((head, *align_rows(_describe(choice) for choice in found)))


def _describe(choice: SelectionChoice) -> tuple[str, ...]:
    return f"  {choice.id}", choice.names[0], choice.details
