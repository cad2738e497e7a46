"""Frames and point clouds in 3D on the control page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.support import control_page
from tests.support.control_page import needs_browser, open_machine
from viam.components.arm import Arm, JointPositions
from viam.components.camera import Camera
from viam.components.gantry import Gantry
from viam.proto.common import Pose, PoseInFrame

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]

DEADLINE = 30.0
FIELDS = ("x", "y", "z", "o_x", "o_y", "o_z", "theta")
POST = {"type": "capsule", "r": 40, "l": 300, "translation": {"z": 150}}


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

    async def show(self, frame: str) -> None:
        await self.page.open(self.server.url, "frames", frame=frame)
        await self.page.run(
            "await page.getByRole('region', { name: `Frame ${values.frame}` }).waitFor();",
            frame=frame,
        )

    async def read_pose(self, frame: str) -> list[float] | None:
        """Return the pose in the world that the page shows, or None if it shows none yet."""
        texts = await self.page.run(
            """
            const shown = page.getByRole("region", { name: `Frame ${values.frame}` });
            return shown.locator("tbody tr td:last-child strong").allTextContents();
            """,
            frame=frame,
        )
        return [float(text) for text in texts] if texts and "–" not in texts else None

    async def wait_for_pose(self, frame: str, wanted: Pose) -> None:
        """Wait until the page shows this pose in the world."""
        expected = [getattr(wanted, field) for field in FIELDS]
        shown = None
        try:
            async with asyncio.timeout(DEADLINE):
                while shown != pytest.approx(expected, abs=0.006):
                    await asyncio.sleep(0.05)
                    shown = await self.read_pose(frame)
        except TimeoutError:
            raise AssertionError(f"the page shows {shown}, not {expected}") from None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine(tmp_path_factory: Any) -> AsyncIterator[Machine]:
    directory: Path = tmp_path_factory.mktemp("machine")
    async with open_machine(CONFIG, directory) as opened:
        yield Machine(opened.server, opened.page, opened.robot)


async def test_scenes_are_loaded_only_where_they_are_shown(machine: Machine) -> None:
    count_scripts = """
        return page.evaluate(async () => {
          const loaded = performance.getEntriesByType("resource").map((each) => each.name);
          const scripts = loaded.filter((each) => each.endsWith(".js"));
          const texts = await Promise.all(scripts.map(async (each) => (await fetch(each)).text()));
          return texts.filter((each) => each.includes("THREE.WebGLRenderer")).length;
        });
    """
    await machine.page.open(machine.server.url)
    await machine.page.run("await page.reload(); await page.locator('#view').waitFor();")
    await machine.page.run("await page.getByText('6 of 6 ready').waitFor();")
    assert await machine.page.run(count_scripts) == 0
    await machine.show("world")
    assert await machine.page.run(count_scripts) == 1


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
    await machine.page.run(
        """
        const tree = page.getByRole("tree", { name: "Frames" });
        const chosen = tree.locator("[aria-selected=true]");
        await tree.getByRole("treeitem", { name: /^eye / }).click();
        await page.locator(".label.chosen", { hasText: "eye" }).waitFor();
        await page.keyboard.press("Home");
        await page.getByRole("region", { name: "Frame world" }).waitFor();
        // The name of a frame begins beside its origin, where its axes and its body are.
        const label = await page.locator(".label", { hasText: "post" }).boundingBox();
        await page.mouse.click(label.x - 6, label.y - 6);
        await page.getByRole("region", { name: "Frame post" }).waitFor();
        if (!(await chosen.textContent()).includes("post")) throw new Error("not in the tree");
        if (!page.url().includes("frame=post")) throw new Error(page.url());
        """
    )


async def test_scene_is_drawn_only_when_something_changes(machine: Machine) -> None:
    await machine.show("post")
    drawn = await machine.page.run(
        """
        await page.getByText(/^grid /).waitFor();
        await page.waitForTimeout(1000);
        await page.evaluate(() => {
          window.drawn = 0;
          const draw = requestAnimationFrame;
          window.requestAnimationFrame = (act) => (window.drawn++, draw(act));
        });
        await page.waitForTimeout(1500);
        const idle = await page.evaluate(() => window.drawn);
        const scene = page.getByRole("application", { name: "Frames in 3D" });
        await scene.focus();
        await page.keyboard.press("ArrowLeft");
        await page.keyboard.press("+");
        await page.waitForFunction(() => window.drawn > 0);
        return [idle, await page.evaluate(() => window.drawn)];
        """
    )
    assert drawn[0] == 0
    assert 1 <= drawn[1] <= 2


async def test_points_of_a_camera_are_shown_with_their_number(machine: Machine) -> None:
    cloud, _ = await Camera.from_robot(machine.robot, "eye").get_point_cloud()
    header = cloud[:300].decode("latin1")
    points = int(header.partition("POINTS ")[2].split()[0])
    assert points > 1000
    await machine.show("eye")
    await machine.page.run(
        """
        await page.getByRole("button", { name: "Show points" }).click();
        await page.getByText(`${values.points} points, `).waitFor();
        await page.getByRole("button", { name: "Hide" }).click();
        await page.getByRole("button", { name: "Show points" }).waitFor();
        """,
        points=f"{points:,}",
    )


async def test_frames_are_readable_without_webgl(machine: Machine) -> None:
    await machine.page.run(
        """
        const other = await context.newPage();
        await other.addInitScript(() => {
          HTMLCanvasElement.prototype.getContext = () => null;
        });
        await other.goto(`${values.url}/#/frames?frame=post`);
        await other.getByText("The scene cannot be shown: this browser has no WebGL.").waitFor();
        await other.getByRole("region", { name: "Frame post" }).getByText("900.00").waitFor();
        await other.close();
        """,
        url=machine.server.url,
    )
