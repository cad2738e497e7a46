"""The control plane: all services of the cloud."""

from __future__ import annotations

from typing import Final

from cogwork.cloud.configuration.config_checker import ConfigChecker
from cogwork.cloud.control_plane.health import CloudHealth
from cogwork.cloud.fleet.app_service import APP_SERVICE, AppService
from cogwork.cloud.fleet.fragments.fragment_service import FragmentService
from cogwork.cloud.identity.auth_service import auth_methods
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.machine.claim_service import ClaimService
from cogwork.cloud.machine.follow_service import FollowService
from cogwork.cloud.machine.log_intake import LogIntake
from cogwork.cloud.machine.part_documents import PartDocuments
from cogwork.cloud.machine.robot_service import ROBOT_SERVICE, robot_methods
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.registry.package_service import PACKAGE_SERVICE, package_methods
from cogwork.cloud.signaling.external_auth_service import (
    EXTERNAL_AUTH_SERVICE,
    external_auth_methods,
)
from cogwork.cloud.signaling.relay_servers import RelayServers
from cogwork.cloud.signaling.rendezvous import Rendezvous
from cogwork.cloud.signaling.signaling_service import SIGNALING_SERVICE, signaling_methods
from cogwork.cloud.updates.agent_device_service import (
    AGENT_DEVICE_SERVICE,
    agent_device_methods,
)
from cogwork.cloud.updates.update_service import UpdateService
from cogwork.wire.messages.claim_method import CLAIM_SERVICE
from cogwork.wire.messages.follow_method import FOLLOW_SERVICE
from cogwork.wire.messages.fragment_method import FRAGMENT_SERVICE
from cogwork.wire.messages.update_method import UPDATE_SERVICE
from cogwork.wire.table.grpc_services import add_standard_services
from cogwork.wire.table.handlers import HandlerTable

_AUTH_SERVICE: Final = "proto.rpc.v1.AuthService"


class ControlPlane:
    def __init__(
        self, context: CloudContext, health: CloudHealth, intake: LogIntake, relays: RelayServers
    ) -> None:
        self.context = context
        self.health = health
        self.intake = intake
        self.login = login = ActorLogin(
            *(context.records, context.keys, context.clock),
            *(context.watch, context.actors, context.calls),
        )
        rendezvous = Rendezvous()
        documents = PartDocuments(context)
        checker = ConfigChecker(context.clock)
        self.table = HandlerTable([context.calls.wrap])
        self.table.add(_AUTH_SERVICE, lambda: auth_methods(login))
        self.table.add(EXTERNAL_AUTH_SERVICE, lambda: external_auth_methods(context, login))
        self.table.add(APP_SERVICE, AppService(context, login, checker).methods)
        self.table.add(FRAGMENT_SERVICE, FragmentService(context, login, checker).methods)
        self.table.add(PACKAGE_SERVICE, lambda: package_methods(context, login))
        self.table.add(ROBOT_SERVICE, lambda: robot_methods(context, login, documents, intake))
        self.table.add(
            SIGNALING_SERVICE, lambda: signaling_methods(context, login, rendezvous, relays)
        )
        self.table.add(CLAIM_SERVICE, ClaimService(context, login).methods)
        self.table.add(FOLLOW_SERVICE, FollowService(context, login, documents).methods)
        self.table.add(AGENT_DEVICE_SERVICE, lambda: agent_device_methods(context, login))
        self.table.add(UPDATE_SERVICE, UpdateService(context, login).methods)
        add_standard_services(self.table, status=health)
