"""A module with an arm of one joint, 100 mm long, that moves instantly."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from viam.components.arm import Arm, JointPositions, KinematicsFileFormat, Pose
from viam.module.module import Module
from viam.proto.app.robot import ComponentConfig
from viam.proto.common import Mesh, ResourceName
from viam.resource.base import ResourceBase
from viam.resource.easy_resource import EasyResource

KINEMATICS = {
    "name": "one",
    "kinematic_param_type": "SVA",
    "joints": [
        {
            "id": "turn",
            "type": "revolute",
            "parent": "world",
            "axis": {"x": 0, "y": 0, "z": 1},
            "max": 180,
            "min": -180,
        }
    ],
    "links": [{"id": "reach", "parent": "turn", "translation": {"x": 100, "y": 0, "z": 0}}],
}


class OneJoint(Arm, EasyResource):
    MODEL: ClassVar[Any] = "acme:test:arm"

    degrees: float = 0.0

    @classmethod
    def new(
        cls, config: ComponentConfig, dependencies: Mapping[ResourceName, ResourceBase]
    ) -> OneJoint:
        return cls(config.name)

    async def get_end_position(self, **_: Any) -> Pose:
        return Pose(x=100)

    async def move_to_position(self, pose: Pose, **_: Any) -> None:
        raise NotImplementedError

    async def move_to_joint_positions(self, positions: JointPositions, **_: Any) -> None:
        self.degrees = positions.values[0]

    async def move_through_joint_positions(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError

    async def move_through_joint_positions_streamed(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def set_manual_mode(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError

    async def get_manual_mode(self, **_: Any) -> bool:
        return False

    async def get_properties(self, **_: Any) -> Arm.Properties:
        return Arm.Properties()

    async def get_joint_positions(self, **_: Any) -> JointPositions:
        return JointPositions(values=[self.degrees])

    async def stop(self, **_: Any) -> None: ...

    async def is_moving(self) -> bool:
        return False

    async def get_kinematics(self, **_: Any) -> tuple[Any, bytes]:
        form = KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA
        return form, json.dumps(KINEMATICS).encode()

    async def get_3d_models(self, **_: Any) -> Mapping[str, Mesh]:
        return {}


if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())
