"""Frames and point clouds in 3D on the control page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect
from tests.support import control_page
from tests.support.control_page import needs_browser, open_machine, open_view
from tests.support.waiting import pass_time, poll
from viam.components.arm import Arm, JointPositions
from viam.components.camera import Camera
from viam.components.gantry import Gantry
from viam.proto.common import Pose, PoseInFrame

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]

FIELDS = ("x", "y", "z", "o_x", "o_y", "o_z", "theta")
POST = {"type": "capsule", "r": 40, "l": 300, "translation": {"z": 150}}

COUNT_SCENES = """async () => {
  const loaded = performance.getEntriesByType("resource").map((each) => each.name);
  const scripts = loaded.filter((each) => each.endsWith(".js"));
  const texts = await Promise.all(scripts.map(async (each) => (await fetch(each)).text()));
  return texts.filter((each) => each.includes("THREE.WebGLRenderer")).length;
}"""
"""Returns how many of the scripts that the page loaded draw in 3D."""
COUNT_DRAWN = """() => {
  window.drawn = 0;
  const draw = requestAnimationFrame;
  window.requestAnimationFrame = (act) => (window.drawn++, draw(act));
}"""


def fake(subtype: str, name: str, frame: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "api": f"rdk:component:{subtype}",
        "model": "fake",
        "attributes": attributes,
        "frame": frame,
    }


CONFIG = {
    "components": [
        fake(
            "gantry",
            "rail",
            {"parent": "world", "translation": {"x": -400, "y": 100, "z": 30}},
            lengths_mm=[800, 400],
        ),
        fake(
            "arm",
            "arm",
            {
                "parent": "rail",
                "translation": {"z": 50},
                "orientation": {"type": "ov_degrees", "value": {"x": 0.2, "z": 1, "th": 30}},
            },
            speed_degs_per_sec=360,
        ),
        fake(
            "gripper",
            "hand",
            {
                "parent": "arm",
                "translation": {"x": 5, "z": 70},
                "orientation": {"type": "euler_angles", "value": {"roll": 0.4, "yaw": -1.1}},
            },
        ),
        fake(
            "arm",
            "spare",
            {"parent": "world", "id": "boom", "translation": {"y": -700}},
            joints=[15, 25, 35, 45, 55, 65],
        ),
        fake("generic", "post", {"parent": "world", "translation": {"x": 900}, "geometry": POST}),
        fake(
            "camera",
            "eye",
            {"parent": "world", "translation": {"y": 900, "z": 600}},
            scene="conveyor",
            width=160,
            height=120,
        ),
    ]
}


class Machine(control_page.Machine):
    """A machine with its page, and the SDK's client to compare with."""

    def panel(self, frame: str) -> Locator:
        return self.page.get_by_role("region", name=f"Frame {frame}")

    async def show(self, frame: str) -> None:
        await open_view(self.page, self.server.url, "frames", frame=frame)
        await expect(self.panel(frame)).to_be_visible()

    async def read_pose(self, frame: str) -> list[float] | None:
        """Return the pose in the world that the page shows, or None if it shows none yet."""
        values = self.panel(frame).locator("tbody tr td:last-child strong")
        texts = await values.all_text_contents()
        return [float(text) for text in texts] if texts and "–" not in texts else None

    async def wait_for_pose(self, frame: str, wanted: Pose) -> None:
        """Wait until the page shows this pose in the world."""
        expected = pytest.approx([getattr(wanted, field) for field in FIELDS], abs=0.006)
        await poll(lambda: self.read_pose(frame), lambda shown: shown == expected)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine(tmp_path_factory: Any, browser: Browser) -> AsyncIterator[Machine]:
    directory: Path = tmp_path_factory.mktemp("machine")
    async with open_machine(CONFIG, directory, browser) as opened:
        yield Machine(opened.server, opened.page, opened.robot)


async def test_scenes_are_loaded_only_where_they_are_shown(machine: Machine) -> None:
    page = machine.page
    await open_view(page, machine.server.url)
    await page.reload()
    await expect(page.get_by_text("6 of 6 ready")).to_be_visible()
    assert await page.evaluate(COUNT_SCENES) == 0
    await machine.show("world")
    assert await page.evaluate(COUNT_SCENES) == 1


async def test_poses_follow_an_arm_on_a_moving_gantry(machine: Machine) -> None:
    arm = Arm.from_robot(machine.robot, "arm")
    gantry = Gantry.from_robot(machine.robot, "rail")
    await machine.show("hand")
    before = (await machine.robot.get_pose("hand", "world")).pose
    await machine.wait_for_pose("hand", before)
    await asyncio.gather(
        gantry.move_to_position([120, 60], []),
        arm.move_to_joint_positions(JointPositions(values=[40, 20, 50, -30, 60, 90])),
    )
    after = (await machine.robot.get_pose("hand", "world")).pose
    assert abs(after.x - before.x) > 50
    await machine.wait_for_pose("hand", after)
    await machine.show("arm_origin")
    origin = PoseInFrame(reference_frame="arm_origin", pose=Pose(o_z=1))
    await machine.wait_for_pose(
        "arm_origin", (await machine.robot.transform_pose(origin, "world")).pose
    )


async def test_frame_with_another_name_than_its_arm_is_where_the_arm_is(machine: Machine) -> None:
    await machine.show("boom")
    await machine.wait_for_pose("boom", (await machine.robot.get_pose("boom", "world")).pose)


async def test_frame_is_chosen_in_the_tree_and_in_the_scene(machine: Machine) -> None:
    await machine.show("world")
    page = machine.page
    tree = page.get_by_role("tree", name="Frames")
    await tree.get_by_role("treeitem", name=re.compile("^eye ")).click()
    await expect(page.locator(".label.chosen").filter(has_text="eye")).to_be_visible()
    await page.keyboard.press("Home")
    await expect(machine.panel("world")).to_be_visible()
    # The name of a frame begins beside its origin, where its axes and its body are.
    label = await page.locator(".label").filter(has_text="post").bounding_box()
    assert label is not None
    await page.mouse.click(label["x"] - 6, label["y"] - 6)
    await expect(machine.panel("post")).to_be_visible()
    await expect(tree.get_by_role("treeitem", selected=True)).to_contain_text("post")
    await expect(page).to_have_url(re.compile("frame=post"))


async def test_scene_is_drawn_only_when_something_changes(machine: Machine) -> None:
    await machine.show("post")
    page = machine.page
    await expect(page.get_by_text(re.compile("^grid "))).to_be_visible()
    await pass_time(1)
    await page.evaluate(COUNT_DRAWN)
    await pass_time(1.5)
    assert await page.evaluate("window.drawn") == 0
    await page.get_by_role("application", name="Frames in 3D").focus()
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("+")
    await page.wait_for_function("() => window.drawn > 0")
    assert await page.evaluate("window.drawn") <= 2


async def test_points_of_a_camera_are_shown_with_their_number(machine: Machine) -> None:
    cloud, _ = await Camera.from_robot(machine.robot, "eye").get_point_cloud()
    header = cloud[:300].decode("latin1")
    points = int(header.partition("POINTS ")[2].split()[0])
    assert points > 1000
    await machine.show("eye")
    show = machine.page.get_by_role("button", name="Show points")
    await show.click()
    await expect(machine.page.get_by_text(f"{points:,} points, ")).to_be_visible()
    await machine.page.get_by_role("button", name="Hide").click()
    await expect(show).to_be_visible()


async def test_frames_are_readable_without_webgl(machine: Machine, page: Page) -> None:
    await page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null;")
    await open_view(page, machine.server.url, "frames", frame="post")
    notice = page.get_by_text("The scene cannot be shown: this browser has no WebGL.")
    await expect(notice).to_be_visible()
    await expect(page.get_by_role("region", name="Frame post")).to_contain_text("900.00")
