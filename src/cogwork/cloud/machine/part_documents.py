"""The documents that the cloud builds for each part: its access list and its configuration."""

from __future__ import annotations

from viam.gen.app.v1 import robot_pb2 as pb

from cogwork.cloud.fleet.parts import LocatedPart
from cogwork.cloud.machine.machine_config import build_machine_config
from cogwork.cloud.machine.part_access_list import build_access_list
from cogwork.cloud.machine.part_cache import PartCache
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.records import Transaction


class PartDocuments:
    """Builds and caches documents. The threads of the records use it."""

    def __init__(self, context: CloudContext) -> None:
        def build_config(tx: Transaction, part: LocatedPart, *, has_access_list: bool) -> bytes:
            config = build_machine_config(tx, part, context, has_access_list=has_access_list)
            return config.SerializeToString()

        self._configs = PartCache(lambda tx, part: build_config(tx, part, has_access_list=True))
        self._configs_with_keys = PartCache(
            lambda tx, part: build_config(tx, part, has_access_list=False)
        )
        self._access = PartCache(build_access_list)

    def read_config(
        self, tx: Transaction, part: LocatedPart, *, has_access_list: bool
    ) -> pb.RobotConfig:
        """Return the configuration, without logins of the cloud if `has_access_list` is True."""
        cache = self._configs if has_access_list else self._configs_with_keys
        return pb.RobotConfig.FromString(cache.read(tx, part))

    def read_access_list(self, tx: Transaction, part: LocatedPart) -> bytes:
        return self._access.read(tx, part)
