"""The control plane: every service of the cloud, over one set of stores."""

from __future__ import annotations

from typing import Final

from cogwork.auth.signing_key import SigningKey
from cogwork.cloud.context import CloudContext
from cogwork.cloud.fleet.app_service import APP_SERVICE, AppService
from cogwork.cloud.fleet.keys import add_key
from cogwork.cloud.fleet.organizations import add_organization
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.auth_service import auth_methods
from cogwork.cloud.identity.external_auth_service import (
    EXTERNAL_AUTH_SERVICE,
    external_auth_methods,
)
from cogwork.cloud.identity.login import Login
from cogwork.cloud.machine.claim_service import ClaimService
from cogwork.cloud.machine.follow_service import FollowService
from cogwork.cloud.machine.part_documents import PartDocuments
from cogwork.cloud.machine.robot_service import ROBOT_SERVICE, robot_methods
from cogwork.cloud.registry.package_service import PACKAGE_SERVICE, package_methods
from cogwork.cloud.signaling.rendezvous import Rendezvous
from cogwork.cloud.signaling.signaling_service import SIGNALING_SERVICE, signaling_methods
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.updates.agent_device_service import (
    AGENT_DEVICE_SERVICE,
    agent_device_methods,
)
from cogwork.cloud.updates.update_service import UpdateService
from cogwork.core.errors import CogworkError
from cogwork.wire.claim_method import CLAIM_SERVICE
from cogwork.wire.follow_method import FOLLOW_SERVICE
from cogwork.wire.grpc_services import add_standard_services
from cogwork.wire.handlers import HandlerTable
from cogwork.wire.update_method import UPDATE_SERVICE

_AUTH_SERVICE: Final = "proto.rpc.v1.AuthService"
_NOBODY: Final = Actor(ActorType.API_KEY, "")


class AlreadyInitialized(CogworkError):
    """The cloud has an organization already."""

    status = "FAILED_PRECONDITION"


class ControlPlane:
    def __init__(self, context: CloudContext, key: SigningKey) -> None:
        self.context = context
        self.login = login = Login(context, key)
        rendezvous = Rendezvous()
        documents = PartDocuments(context)
        self.table = HandlerTable([context.calls.wrap])
        self.table.add(_AUTH_SERVICE, lambda: auth_methods(login))
        self.table.add(EXTERNAL_AUTH_SERVICE, lambda: external_auth_methods(context, login))
        self.table.add(APP_SERVICE, AppService(context, login).methods)
        self.table.add(PACKAGE_SERVICE, lambda: package_methods(context, login))
        self.table.add(ROBOT_SERVICE, lambda: robot_methods(context, login, documents))
        self.table.add(SIGNALING_SERVICE, lambda: signaling_methods(context, login, rendezvous))
        self.table.add(CLAIM_SERVICE, ClaimService(context, login).methods)
        self.table.add(FOLLOW_SERVICE, FollowService(context, login, documents).methods)
        self.table.add(AGENT_DEVICE_SERVICE, lambda: agent_device_methods(context, login))
        self.table.add(UPDATE_SERVICE, UpdateService(context, login).methods)
        add_standard_services(self.table)

    async def initialize(self, organization: str) -> tuple[str, str]:
        """Create the first organization. Return the ID of its owner's key, and the key."""

        def work(tx: Transaction) -> tuple[str, str]:
            if tx.query("SELECT 1 FROM organization LIMIT 1"):
                raise AlreadyInitialized("this cloud has its first owner already")
            call = self.context.make_call(_NOBODY)
            new = add_organization(tx, call, organization, is_hosting=True)
            owner = (ResourceType.ORGANIZATION, new), CloudRole.OWNER
            return add_key(tx, call, new, "first owner", [owner])

        return await self.context.records.write(work)
