"""Every method that a client of the fleet relies on is called, and its reply is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType

from tests.interop.app_client import (
    test_keys,
    test_machines,
    test_modules,
    test_organizations,
    test_part_logs,
)
from tests.interop.app_client.owner import Owner, run_owner

TESTS = (test_organizations, test_machines, test_part_logs, test_keys, test_modules)
REQUIRED = {
    *("CreateOrganization", "ListOrganizations", "GetOrganization"),
    *("CreateLocation", "GetLocation", "UpdateLocation", "DeleteLocation", "ListLocations"),
    *("LocationAuth", "CreateLocationSecret", "DeleteLocationSecret"),
    *("NewRobot", "GetRobot", "ListRobots", "ListRobotsForOrg", "ListRobotsForLocations"),
    *("UpdateRobot", "DeleteRobot"),
    *("GetRobotParts", "GetRobotPart", "GetRobotPartByNameAndLocation"),
    *("UpdateRobotPart", "GetRobotPartHistory"),
    *("NewRobotPart", "DeleteRobotPart", "MarkPartAsMain", "MarkPartForRestart"),
    *("CreateRobotPartSecret", "DeleteRobotPartSecret", "GetRobotAPIKeys"),
    *("GetRobotPartLogs", "TailRobotPartLogs"),
    *("CreateKey", "ListKeys", "DeleteKey", "RotateKey", "RenameKey"),
    *("AddRole", "RemoveRole", "ChangeRole", "ListAuthorizations", "CheckPermissions"),
    *("CreateModule", "UpdateModule", "UploadModuleFile", "GetModule", "ListModules"),
    *("CreatePackage", "GetPackage", "ListPackages", "DeletePackage"),
}


async def test_every_required_method_is_compared(tmp_path: Path) -> None:
    compared: Counter[str] = Counter()
    methods: set[str] = set()
    for number, test in enumerate(each for module in TESTS for each in list_tests(module)):
        async with run_owner(tmp_path / str(number)) as owner:
            await test(owner)
            compared += owner.replies.compared
            methods |= owner.replies.compared.keys()
    print(f"{len(methods)} methods, {compared.total()} fields compared")
    assert methods == REQUIRED


def list_tests(module: ModuleType) -> list[Callable[[Owner], Awaitable[None]]]:
    return [each for name, each in vars(module).items() if name.startswith("test_")]
