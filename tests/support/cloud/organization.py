"""An organization of a small cloud, as its owner uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from tests.support.cloud.small_cloud import SmallCloud
from tests.support.cloud.tenants import Tenant
from viam.gen.app.v1 import app_pb2 as pb


@dataclass
class OwnedOrganization:
    cloud: SmallCloud
    tenant: Tenant

    def run(self, request: Message) -> Any:
        return self.cloud.run(self.tenant.key, request)

    def grant(self, kind: str, role: str, resource: str = "", key: str = "") -> pb.Authorization:
        tenant = self.tenant
        resources = {
            "organization": tenant.organization,
            "location": tenant.location,
            "robot": tenant.machine,
        }
        return pb.Authorization(
            authorization_type="role",
            authorization_id=f"{kind}_{role}",
            resource_type=kind,
            resource_id=resource or resources[kind],
            identity_id=key,
        )

    def create(self, *grants: pb.Authorization) -> pb.CreateKeyResponse:
        reply: pb.CreateKeyResponse = self.run(
            pb.CreateKeyRequest(name="guest", authorizations=grants)
        )
        return reply

    @property
    def changed(self) -> set[str]:
        return set(self.cloud.last_call.changed_parts)

    @property
    def ended(self) -> list[str]:
        return self.cloud.last_call.ended_credentials
