from __future__ import annotations

import pytest
from tests.unit.robot.bench import Bench

from cogwork.auth.exempt_paths import EXEMPT_METHODS
from cogwork.auth.roles import ROLE_BY_METHOD, ROLE_BY_PATH, Role, required_role


async def test_every_method_that_a_machine_serves_is_classified() -> None:
    table = Bench().table
    paths = {method.path for service in table.services() for method in table.methods(service)}
    assert len(paths) > 250
    names = {path.rpartition("/")[2] for path in paths - EXEMPT_METHODS}
    assert sorted(names - set(ROLE_BY_METHOD)) == [], "classify the new methods in auth/roles.py"
    assert sorted(set(ROLE_BY_METHOD) - names) == [], "remove the methods that do not exist"
    assert set(ROLE_BY_PATH) <= paths


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("/viam.component.motor.v1.MotorService/IsMoving", Role.VIEWER),
        ("/viam.component.motor.v1.MotorService/SetPower", Role.OPERATOR),
        ("/viam.component.motor.v1.MotorService/DoCommand", Role.OPERATOR),
        ("/viam.service.shell.v1.ShellService/DoCommand", Role.OWNER),
        ("/viam.service.shell.v1.ShellService/Shell", Role.OWNER),
        ("/viam.robot.v1.RobotService/Shutdown", Role.OWNER),
        ("/viam.robot.v1.RobotService/InventedTomorrow", Role.OWNER),
    ],
)
def test_role_that_a_method_requires(path: str, role: Role) -> None:
    assert required_role(path, is_public=True) is role


def test_methods_of_modules_require_an_operator() -> None:
    assert required_role("/acme.v1.Gizmo/GetReadings", is_public=False) is Role.OPERATOR
