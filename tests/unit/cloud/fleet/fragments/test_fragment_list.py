"""A list of fragments reads only the contents that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.struct_pb2 import Struct
from tests.support.cloud.cloud_at_rest import new_cloud, open_plane
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.fragments.fragments import create_fragment, list_fragments
from cogwork.cloud.fleet.organizations import add_organization
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.storage.records import Rows, Transaction, Value
from cogwork.cloud.storage.select import query_values, select
from cogwork.cloud.storage.tables import FragmentRevisionRow

SIZE = 1000
PUBLIC = pb.FragmentVisibility.FRAGMENT_VISIBILITY_PUBLIC


class Recorder:
    """A transaction that counts the contents of fragments that are read."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.contents = 0

    def read_rows(self, sql: str, *values: Value) -> Rows:
        rows = self._tx.read_rows(sql, *values)
        self.contents += len(rows.values) if "config" in rows.columns else 0
        return rows

    def execute(self, sql: str, *values: Value) -> int:
        return self._tx.execute(sql, *values)


async def test_contents_beyond_the_bound_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cogwork.cloud.fleet.fragments.fragments.MAX_LISTED_BYTES", 2 * SIZE + SIZE // 2
    )
    directory, new = new_cloud(tmp_path / "cloud")

    async with open_plane(directory) as plane:
        call = plane.context.make_call(Actor(ActorType.API_KEY, new.key_id))

        def create(tx: Transaction) -> str:
            (own,) = query_values(tx, str, "SELECT id FROM organization")
            config = Struct()
            config.update({"text": "x" * SIZE})
            for number in range(6):
                request = pb.CreateFragmentRequest(
                    name=f"f{number}", config=config, organization_id=own
                )
                create_fragment(tx, call, request)
            other = add_organization(tx, call, "Bolt")
            make_public(tx, "f5", other)
            return str(own)

        organization = await plane.context.records.write(create)

        def read(tx: Transaction) -> None:
            recorder = Recorder(tx)
            own = pb.ListFragmentsRequest(organization_id=organization)
            found = list_fragments(recorder, call, own).fragments
            assert [each.name for each in found] == ["f0", "f1", "f2", "f3", "f4"]
            assert [bool(each.fragment_config_json) for each in found] == [True] * 2 + [False] * 3
            assert [bool(each.fragment.fields) for each in found] == [True] * 2 + [False] * 3
            assert recorder.contents == 3  # with that which exceeds the bound
            everything = pb.ListFragmentsRequest(organization_id=organization, show_public=True)
            found = list_fragments(recorder, call, everything).fragments
            assert [each.organization_name for each in found] == ["Acme"] * 5 + ["Bolt"]
            only_public = pb.ListFragmentsRequest(
                organization_id=organization, fragment_visibility=[PUBLIC]
            )
            (listed,) = list_fragments(recorder, call, only_public).fragments
            assert (listed.name, listed.public) == ("f5", True)

        await plane.context.records.read(read)


def make_public(tx: Transaction, name: str, organization: str) -> None:
    """Make a fragment a public one of another organization."""
    (revision,) = select(tx, FragmentRevisionRow, "WHERE name = ?", name)
    tx.execute(
        "UPDATE fragment_revision SET visibility = ? WHERE fragment_id = ?",
        *(PUBLIC, revision.fragment_id),
    )
    tx.execute(
        "UPDATE fragment SET organization_id = ? WHERE id = ?", organization, revision.fragment_id
    )
