"""Lists take a few queries, however long they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import Message
from tests.support.cloud.organization import OwnedOrganization
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.app_service import OPERATIONS
from cogwork.cloud.storage.records import Rows, Transaction, Value

MACHINES = 9


class CountedTransaction:
    """A transaction that counts its queries."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.queries = 0

    def read_rows(self, sql: str, *values: Value) -> Rows:
        self.queries += 1
        return self._tx.read_rows(sql, *values)

    def execute(self, sql: str, *values: Value) -> int:
        return self._tx.execute(sql, *values)


@pytest.mark.parametrize(
    ("make_request", "field"),
    [
        (lambda _: pb.ListOrganizationsRequest(), "organizations"),
        (lambda of: pb.ListLocationsRequest(organization_id=of), "locations"),
        (lambda of: pb.ListRobotsForOrgRequest(org_id=of), "robots"),
        (lambda of: pb.ListKeysRequest(org_id=of), "api_keys"),
    ],
    ids=["organizations", "locations", "machines", "keys"],
)
def test_list_takes_a_few_queries(
    acme: OwnedOrganization, make_request: Callable[[str], Message], field: str
) -> None:
    parent = acme.tenant.location
    for number in range(MACHINES):
        create = pb.CreateLocationRequest(
            organization_id=acme.tenant.organization, name=f"{number}", parent_location_id=parent
        )
        parent = acme.run(create).location.id
        machine = acme.run(pb.NewRobotRequest(name=f"machine {number}", location=parent)).id
        acme.create(acme.grant("robot", "operator", machine))
    request = make_request(acme.tenant.organization)
    name = request.DESCRIPTOR.name.removesuffix("Request")
    call = acme.cloud.make_call(acme.tenant.key)

    def work(tx: Transaction) -> tuple[Any, int]:
        counted = CountedTransaction(tx)
        return OPERATIONS[name].answer(counted, call, request), counted.queries

    reply, queries = acme.cloud.read(work)
    assert len(getattr(reply, field)) >= (1 if field == "organizations" else MACHINES)
    assert queries <= 5
