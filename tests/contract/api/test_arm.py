from __future__ import annotations

from tests.support.paths import TESTS

from cogwork.contracts.arm import ArmContract

SLIDER = TESTS / "unit/drivers/arm/slider.urdf"


class TestFake(ArmContract):
    model = "fake"
    attributes = {"speed_degs_per_sec": 50}


class TestFromUrdf(ArmContract):
    """Its first joint turns endlessly, its second one slides."""

    model = "fake"
    attributes = {"kinematics_file": str(SLIDER), "speed_degs_per_sec": 50}
    near = (4.0, 55.0)
    far = (200.0, 50.0)
