"""Lookup of the fragments that a configuration uses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from cogwork.cloud.configuration.config_text import parse_config
from cogwork.cloud.configuration.fragment_merge import Merged, merge_fragments
from cogwork.cloud.configuration.fragment_use import Find, FragmentUnavailable, FragmentUse
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import first, query, select_one
from cogwork.cloud.storage.tables import FragmentRevisionRow, FragmentTagRow, PartRow
from cogwork.core.errors import InvalidRequest

_MAX_SHOWN = 5
"""Maximum number of mistakes to list in one error."""


@dataclass(frozen=True, slots=True)
class CurrentFragment(FragmentRevisionRow):
    """A fragment with its newest revision."""

    id: str
    organization_id: str
    created_at: int


def select_fragment(tx: Transaction, fragment: str) -> CurrentFragment | None:
    return first(
        query(
            tx,
            CurrentFragment,
            "SELECT fragment.id, fragment.organization_id, fragment.created_at, "
            "fragment_revision.* FROM fragment JOIN fragment_revision "
            "ON fragment_revision.fragment_id = fragment.id "
            "AND fragment_revision.revision = fragment.revision "
            "WHERE fragment.id = ? AND fragment.deleted_at IS NULL",
            fragment,
        )
    )


def select_revision(
    tx: Transaction, fragment: CurrentFragment, version: str
) -> FragmentRevisionRow | None:
    """Return a revision of a fragment by its number or a tag; the newest for an empty version."""
    if not version:
        return fragment
    tag = select_one(
        tx, FragmentTagRow, "WHERE fragment_id = ? AND tag = ?", *(fragment.id, version)
    )
    is_number = version.isascii() and version.isdecimal() and len(version) < 10
    revision = tag.revision if tag is not None else int(version) if is_number else -1
    return select_one(
        tx, FragmentRevisionRow, "WHERE fragment_id = ? AND revision = ?", *(fragment.id, revision)
    )


def is_shared(
    fragment: CurrentFragment, revision: FragmentRevisionRow, organizations: Collection[str]
) -> bool:
    """Return whether members of the organizations may use a revision of a fragment.

    Other organizations never see revisions that were private when they were written.
    """
    return fragment.organization_id in organizations or Visibility.PRIVATE not in (
        fragment.visibility,
        revision.visibility,
    )


def fragments_for(tx: Transaction, organizations: Collection[str]) -> Find:
    """Return a lookup function for the fragments that the organizations may use."""

    def find(use: FragmentUse) -> str:
        fragment = select_fragment(tx, use.id)
        if fragment is None or not is_shared(fragment, fragment, organizations):
            raise FragmentUnavailable(
                "there is no such fragment, or it is not shared with this organization; remove it "
                "from fragments"
            )
        revision = select_revision(tx, fragment, use.version)
        if revision is None or not is_shared(fragment, revision, organizations):
            raise FragmentUnavailable(
                f'the fragment has no revision or tag "{use.version[:100]}"; use another version'
            )
        return revision.config

    return find


def merge_for_part(tx: Transaction, part: PartRow, config: dict[str, Any]) -> Merged:
    """Return a part's configuration, merged with the fragments that it uses."""
    return merge_fragments(config, fragments_for(tx, (part.organization_id,)))


def require_no_new_mistakes(tx: Transaction, part: PartRow, config: dict[str, Any]) -> None:
    """Raise InvalidRequest if the configuration has mistakes that the stored one does not have.

    Mistakes that are already stored are allowed: a change of a fragment may have caused them, and
    must not prevent other edits. Merging is slow, so this function must not run in a
    write transaction.
    """
    mistakes = merge_for_part(tx, part, config).mistakes
    if mistakes:
        known = {*merge_for_part(tx, part, parse_config(part.config)).mistakes}
        refuse_mistakes([each for each in mistakes if each not in known])


def refuse_mistakes(mistakes: Collection[object]) -> None:
    """Raise InvalidRequest with the mistakes, if any."""
    if mistakes:
        texts = [str(each) for each in mistakes]
        more = [f"and {len(texts) - _MAX_SHOWN} more"] if len(texts) > _MAX_SHOWN else []
        raise InvalidRequest("; ".join([*texts[:_MAX_SHOWN], *more]))
