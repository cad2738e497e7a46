"""The revisions of fragments: storage, and the operation that lists them."""

from __future__ import annotations

from typing import Final

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.fragment_lookup import CurrentFragment
from cogwork.cloud.fleet.editor import describe_editor
from cogwork.cloud.fleet.fragments.fragment_view import FragmentView, find_fragment, require_member
from cogwork.cloud.fleet.history_page import (
    KEPT_REVISIONS,
    KEPT_TIME,
    REMOVED_AT_ONCE,
    read_page,
    read_page_token,
)
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.operations.operation import Call, CloudOperation, reading, to_timestamp
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select_one
from cogwork.cloud.storage.tables import FragmentRevisionRow

_MAX_PAGE: Final = 100
_DEFAULT_PAGE: Final = 10

_REMOVE_OLDEST: Final = """
DELETE FROM fragment_revision WHERE fragment_id = ? AND revision IN (
    SELECT old.revision FROM fragment_revision AS old
    JOIN fragment_revision AS next
    ON next.fragment_id = old.fragment_id AND next.revision = old.revision + 1
    WHERE old.fragment_id = ? AND old.revision < ? AND next.edited_at < ?
    AND NOT EXISTS (
        SELECT 1 FROM fragment_tag
        WHERE fragment_tag.fragment_id = old.fragment_id AND fragment_tag.revision = old.revision
    )
    AND NOT EXISTS (
        SELECT 1 FROM config_reference
        WHERE target_type = 'fragment' AND target_id = old.fragment_id
        AND version = CAST(old.revision AS TEXT)
    )
    ORDER BY old.revision LIMIT ?
)
"""
"""Deletes the oldest revisions, except those in use by number or tag. The age of a revision counts
from its replacement."""


def get_fragment_history(
    tx: Transaction, call: Call, request: pb.GetFragmentHistoryRequest
) -> pb.GetFragmentHistoryResponse:
    """List edits, newest first, each with the state before it. Only members may see them."""
    fragment = find_fragment(tx, call, request.id)
    require_member(tx, call, fragment.organization_id)
    limit = min(request.page_limit, _MAX_PAGE) if request.page_limit > 0 else _DEFAULT_PAGE

    def read_next(newest: int) -> FragmentRevisionRow | None:
        return select_newest(tx, request.id, newest)

    token = request.page_token
    newest = read_page_token(token) - 1 if token else fragment.revision
    page = read_page(read_next, newest, limit)
    view = FragmentView(tx, call, fragment.organization_id)
    olders = [*page.rows[1:], read_next(page.rows[-1].revision - 1)] if page.rows else []
    return pb.GetFragmentHistoryResponse(
        history=[
            _describe_edit(tx, view, fragment, row, older)
            for row, older in zip(page.rows, olders, strict=True)
        ],
        next_page_token=str(page.rows[-1].revision) if page.has_more else "",
    )


def select_newest(tx: Transaction, fragment: str, revision: int) -> FragmentRevisionRow | None:
    """Return the newest revision of a fragment up to the given number."""
    return select_one(
        tx,
        FragmentRevisionRow,
        "WHERE fragment_id = ? AND revision <= ? ORDER BY revision DESC LIMIT 1",
        *(fragment, revision),
    )


def add_revision(
    tx: Transaction,
    call: Call,
    fragment: str,
    previous: FragmentRevisionRow | None,
    state: tuple[str, int, str],
) -> None:
    """Add a revision, and delete old ones. `state`: name, visibility and configuration."""
    revision = 1 if previous is None else previous.revision + 1
    # Give each edit a later time than the one before, because clients compare the times.
    edited_at = call.now if previous is None else max(call.now, previous.edited_at + 1)
    editor = call.actor
    insert(tx, FragmentRevisionRow(fragment, revision, edited_at, editor.type, editor.id, *state))
    tx.execute("UPDATE fragment SET revision = ? WHERE id = ?", revision, fragment)
    tx.execute(
        _REMOVE_OLDEST,
        *(fragment, fragment, revision - KEPT_REVISIONS, call.now - KEPT_TIME, REMOVED_AT_ONCE),
    )


def _describe_edit(
    tx: Transaction,
    view: FragmentView,
    fragment: CurrentFragment,
    row: FragmentRevisionRow,
    older: FragmentRevisionRow | None,
) -> pb.FragmentHistoryEntry:
    old = None
    if older is not None:
        old = view.describe(fragment, older)
        old.name = older.name
        old.visibility = pb.FragmentVisibility.ValueType(older.visibility)
        old.public = older.visibility == Visibility.PUBLIC
    return pb.FragmentHistoryEntry(
        fragment=fragment.id,
        edited_on=to_timestamp(row.edited_at),
        old=old,
        edited_by=describe_editor(tx, row.editor_id),
        revision=str(row.revision),
        config=view.to_struct(row),
    )


OPERATIONS: Final[dict[str, CloudOperation]] = {"GetFragmentHistory": reading(get_fragment_history)}
