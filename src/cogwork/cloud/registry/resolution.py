"""Resolves modules and packages in a configuration to exact versions for a machine."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from viam.gen.app.v1.robot_pb2 import AgentInfo

from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.registry.items import Item, select_item
from cogwork.cloud.registry.packages import MODULE, find_artifact, package_id_of
from cogwork.cloud.storage.insert import upsert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select_one
from cogwork.cloud.storage.tables import PackageRow, PartPlatformRow, PartRow
from cogwork.config.schema.module import run_reloaded
from cogwork.core.errors import NotFound

Json = dict[str, Any]

_REGISTRY: Final = "registry"
_MAX_TAGS: Final = 100
_MAX_LENGTH: Final = 100


class Platform(NamedTuple):
    """The platform of a machine, as reported by it."""

    name: str = ""
    """Such as `linux/amd64`; empty if unknown."""
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, info: AgentInfo) -> Platform:
        tags = sorted({each[:_MAX_LENGTH] for each in info.platform_tags[:_MAX_TAGS]})
        return cls(info.platform[:_MAX_LENGTH], tuple(tags))


def read_platform(tx: Transaction, part: str) -> Platform:
    row = select_one(tx, PartPlatformRow, "WHERE part_id = ?", part)
    if row is None:
        return Platform()
    return Platform(row.platform, tuple(json.loads(row.platform_tags)))


def save_platform(tx: Transaction, part: str, platform: Platform) -> None:
    """Save the platform, so that every reader gets the configuration for this platform."""
    upsert(tx, PartPlatformRow(part, platform.name, json.dumps(platform.tags)), "part_id")


def resolve_registry(tx: Transaction, part: PartRow, config: Json) -> Json:
    """Return the configuration with exact versions, and with the packages of its modules.

    An item that cannot be resolved stays in place, with the reason in its status.
    """
    modules, packages = config.get("modules"), config.get("packages")
    platform = read_platform(tx, part.id)
    resolver = _Resolver(tx, part.organization_id, platform)
    found = dict(config)
    if isinstance(packages, list):
        found["packages"] = [resolver.resolve_package(each) for each in packages]
    if isinstance(modules, list):
        found["modules"] = [resolver.resolve_module(each) for each in modules]
    if resolver.packages:
        found["packages"] = [*found.get("packages", []), *resolver.packages]
    return found


class _Resolver:
    def __init__(self, tx: Transaction, organization: str, platform: Platform) -> None:
        self._tx = tx
        self._organization = organization
        self._platform = platform
        self.packages: list[Json] = []
        """The packages of the modules that are resolved so far."""

    def resolve_module(self, module: Any) -> Any:
        if not isinstance(module, dict):
            return module
        module = run_reloaded(module)
        if module.get("type") != _REGISTRY:
            return module
        try:
            item, row = self._find(module.get("module_id"), module.get("version"), MODULE)
            entrypoint = _entrypoint_of(item, row)
        except NotFound as error:
            return _with_error(module, error)
        package = f"module_{module.get('name')}"
        self.packages.append(
            {
                "name": package,
                "package": package_id_of(item),
                "version": row.label,
                "type": MODULE,
            }
        )
        return {**module, "executable_path": f"${{packages.{MODULE}.{package}}}/{entrypoint}"}

    def resolve_package(self, package: Any) -> Any:
        if not isinstance(package, dict):
            return package
        kind = package.get("type", "ml_model")
        try:
            item, row = self._find(package.get("package"), package.get("version"), kind)
        except NotFound as error:
            return _with_error(package, error)
        return {**package, "package": package_id_of(item), "version": row.label}

    def _find(self, item_id: Any, version: Any, kind: Any) -> tuple[Item, PackageRow]:
        """Return an item that the organization may use, and its version for the machine."""
        item = select_item(self._tx, item_id) if isinstance(item_id, str) else None
        is_shared = item is not None and (
            item.organization_id == self._organization or item.visibility != Visibility.PRIVATE
        )
        if item is None or not is_shared or item.type != kind:
            raise NotFound(
                f'the registry has no {kind} "{str(item_id)[:200]}", or it is not shared with this '
                "organization; correct its ID"
            )
        wanted = version if isinstance(version, str) else ""
        return item, find_artifact(self._tx, item, wanted, *self._platform)


def _entrypoint_of(item: Item, row: PackageRow) -> str:
    for details in (row.details, item.details):
        if entrypoint := json.loads(details).get("entrypoint"):
            return str(entrypoint).removeprefix("./")
    raise NotFound("the module has no entrypoint; its owner must set it with UpdateModule")


def _with_error(section: Json, error: NotFound) -> Json:
    return {**section, "status": {"error": str(error)}}
