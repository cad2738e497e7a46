"""The cards of components that move or switch things, used as people use them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect
from tests.support import control_page
from tests.support.control_page import (
    REFUSED,
    log_in_as,
    needs_browser,
    open_machine,
    open_page,
    open_view,
    wait_for_webrtc,
)
from tests.support.machine.login import config
from tests.support.machine.running import run_server
from tests.support.waiting import poll
from viam.components.arm import Arm, JointPositions
from viam.components.base import Base
from viam.components.board import Board
from viam.components.encoder import Encoder
from viam.components.gantry import Gantry
from viam.components.gripper import Gripper
from viam.components.input import Control, Controller, Event, EventType
from viam.components.motor import Motor
from viam.components.servo import Servo

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]


def fake(subtype: str, **attributes: Any) -> dict[str, Any]:
    api = f"rdk:component:{subtype}"
    return {"name": subtype, "api": api, "model": "fake", "attributes": attributes}


COMPONENTS = [
    fake("arm"),
    fake("base"),
    fake(
        "board",
        analogs=[{"name": "pressure", "value": 512}],
        digital_interrupts=[{"name": "gate", "pin": "7"}],
    ),
    fake("button"),
    fake("encoder", motor="motor", ticks_per_revolution=100),
    fake("gantry", lengths_mm=[1000, 500]),
    fake("gripper", object_width_mm=30),
    fake("input_controller"),
    fake("motor"),
    fake("servo"),
    fake("switch", labels=["off", "slow", "fast"]),
]


class Machine(control_page.Machine):
    """A machine with a page that shows some of its cards, and the Python SDK to check them."""

    def card(self, subtype: str) -> Locator:
        return self.page.locator(f"[data-card$='/{subtype}']")

    async def show(self, *subtypes: str) -> None:
        pins = [f"rdk:component:{each}/{each}" for each in subtypes]
        await open_view(self.page, self.server.url, "control", pin=pins)
        await wait_for_webrtc(self.page)

    async def hold(self, subtype: str, label: str) -> None:
        await self.card(subtype).get_by_role("button", name=label).hover()
        await self.page.mouse.down()

    async def let_go(self) -> None:
        await self.page.mouse.up()

    async def click(self, subtype: str, label: str) -> None:
        await self.card(subtype).get_by_role("button", name=label, exact=True).click()

    async def fill(self, subtype: str, label: str, value: float) -> None:
        await self.card(subtype).get_by_label(label, exact=True).fill(f"{value:g}")

    async def see(self, subtype: str, text: str) -> None:
        """Wait until the card has the text."""
        await expect(self.card(subtype).get_by_text(text).first).to_be_visible()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine(tmp_path_factory: Any, browser: Browser) -> AsyncIterator[Machine]:
    directory: Path = tmp_path_factory.mktemp("machine")
    async with open_machine({"components": COMPONENTS}, directory, browser) as opened:
        yield Machine(opened.server, opened.page, opened.robot)


async def test_motor_turns_while_its_button_is_held(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await machine.show("motor")
    await machine.fill("motor", "Power while held, in percent", 40)
    await machine.hold("motor", "Forward while held")
    await poll(lambda: is_powered(motor, 0.4))
    await machine.see("motor", "moving")
    await machine.let_go()
    await poll(lambda: is_powered(motor, 0))
    await machine.hold("motor", "Backward while held")
    await poll(lambda: is_powered(motor, -0.4))
    await machine.let_go()
    await poll(lambda: is_powered(motor, 0))


async def test_motor_stops_when_the_page_is_closed(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await machine.show("motor")
    tab = await machine.page.context.new_page()
    await tab.goto(machine.page.url)
    await tab.get_by_role("button", name="Forward while held").hover()
    await tab.mouse.down()
    await poll(motor.is_moving)
    await tab.close()
    await poll(lambda: is_powered(motor, 0))


async def test_motor_goes_for_turns_and_to_a_position(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await motor.reset_zero_position(0)
    await machine.show("motor")
    await machine.fill("motor", "Turns", 2)
    await machine.fill("motor", "Revolutions per minute", 100)
    await machine.click("motor", "Go for")
    await poll(lambda: is_at(motor.get_position, 2))
    await machine.fill("motor", "Turns", 0.5)
    await machine.click("motor", "Go to")
    await poll(lambda: is_at(motor.get_position, 0.5))
    await machine.see("motor", "0.500")


async def test_motor_follows_its_slider_until_it_is_released(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await machine.show("motor")
    slider = machine.card("motor").get_by_role("slider")
    await drag(slider, 0.5, 1)
    await poll(lambda: is_powered(motor, 1))
    await machine.let_go()
    await poll(lambda: is_powered(motor, 0))
    await expect(slider).to_have_value("0")


async def test_base_drives_while_keys_and_buttons_are_held(machine: Machine) -> None:
    base = Base.from_robot(machine.robot, "base")
    await machine.show("base")
    await machine.hold("base", "Turn left while held")
    await poll(lambda: drives(base, 0, 45))
    await machine.let_go()
    await poll(lambda: drives(base, 0, 0))
    keyboard = machine.page.keyboard
    await machine.card("base").get_by_role("group").focus()
    await keyboard.down("w")
    await keyboard.down("ArrowRight")
    await poll(lambda: drives(base, 200, -45))
    await keyboard.up("ArrowRight")
    await poll(lambda: drives(base, 200, 0))
    await machine.page.get_by_label("Search resources").focus()
    await poll(lambda: drives(base, 0, 0))
    await keyboard.up("w")


async def test_base_drives_by_number_and_draws_its_path(machine: Machine) -> None:
    base = Base.from_robot(machine.robot, "base")
    await machine.show("base")
    await machine.click("base", "Clear the path")
    before = await heading_of(base)
    await machine.fill("base", "Angle in degrees, to the left", 9)
    await machine.click("base", "Spin")
    await machine.see("base", "y 0 mm, 9°")
    await machine.fill("base", "Distance in millimeters", 100)
    await machine.click("base", "Drive straight")
    await machine.see("base", "x -16 mm, y 99 mm, 9°")
    assert await heading_of(base) - before == pytest.approx(9)


async def test_arm_jogs_and_moves_joints_and_its_end(machine: Machine) -> None:
    arm = Arm.from_robot(machine.robot, "arm")
    await arm.move_to_joint_positions(JointPositions(values=[0] * 6))

    async def joint(index: int) -> float:
        return (await arm.get_joint_positions()).values[index]

    await machine.show("arm")
    await machine.see("arm", "-170 … 170")
    await machine.hold("arm", "waist plus while held")
    await poll(lambda: is_above(lambda: joint(0), 10))
    await machine.let_go()
    await poll(lambda: is_false(arm.is_moving))
    await machine.fill("arm", "Target of elbow in °", -20)
    await machine.click("arm", "Move elbow to its target")
    await poll(lambda: is_at(lambda: joint(2), -20))
    await machine.see("arm", "-20.0 °")

    target = await arm.get_end_position()
    await machine.click("arm", "Move to a pose…")
    await machine.fill("arm", "Target z mm", target.z - 30)
    await machine.click("arm", "Move")

    async def height() -> float:
        return (await arm.get_end_position()).z

    await poll(lambda: is_at(height, target.z - 30, within=0.5))


async def test_gantry_jogs_moves_and_goes_home(machine: Machine) -> None:
    gantry = Gantry.from_robot(machine.robot, "gantry")

    async def axis(index: int) -> float:
        return (await gantry.get_position())[index]

    await machine.show("gantry")
    await machine.fill("gantry", "Speed in millimeters per second", 250)
    await machine.hold("gantry", "axis 2 plus while held")
    await poll(lambda: is_above(lambda: axis(1), 30))
    await machine.let_go()
    await poll(lambda: is_false(gantry.is_moving))
    await machine.fill("gantry", "Target of axis 1 in mm", 60)
    await machine.click("gantry", "Move axis 1 to its target")
    await poll(lambda: is_at(lambda: axis(0), 60))
    await machine.see("gantry", "60.0 mm")
    await machine.click("gantry", "Home")
    await poll(lambda: is_at(lambda: axis(0), 0))
    await poll(lambda: is_at(lambda: axis(1), 0))


@pytest.mark.parametrize("name", ["arm", "gantry"])
async def test_skeleton_is_loaded_when_it_is_opened(machine: Machine, name: str) -> None:
    await machine.show(name)
    card = machine.card(name)
    scene = card.get_by_role("application", name=re.compile("^Skeleton of "))
    summary = card.get_by_text("Skeleton in 3D")
    await expect(summary).to_be_visible()
    await expect(scene).to_have_count(0)
    await summary.click()
    await expect(
        card.get_by_text(re.compile("^The end is at .* mm from the base"))
    ).to_be_attached()
    await expect(card.get_by_text(re.compile("^grid "))).to_be_visible()
    await machine.page.reload()
    await expect(scene).to_be_visible()
    await summary.click()


async def test_escape_ends_a_jog_that_is_still_held(machine: Machine) -> None:
    gantry = Gantry.from_robot(machine.robot, "gantry")
    await machine.show("gantry")
    await machine.hold("gantry", "axis 1 plus while held")
    await poll(gantry.is_moving)
    await machine.page.keyboard.press("Escape")
    await poll(lambda: is_false(gantry.is_moving))
    position = await gantry.get_position()
    await machine.let_go()
    await machine.see("gantry", "still")
    assert await gantry.get_position() == position


async def test_servo_moves_when_its_slider_is_released(machine: Machine) -> None:
    servo = Servo.from_robot(machine.robot, "servo")
    await machine.show("servo")
    await drag(machine.card("servo").get_by_role("slider"), 0.25, 0.5)
    await machine.see("servo", "when released")
    assert await servo.get_position() == 0
    await machine.let_go()
    await poll(lambda: is_at(servo.get_position, 90, within=2))
    await machine.fill("servo", "Angle in degrees", 30)
    await machine.click("servo", "Move")
    await poll(lambda: is_at(servo.get_position, 30))
    await expect(machine.card("servo").get_by_label("the dial is at 30 degrees")).to_be_visible()


async def test_gripper_grabs_and_opens(machine: Machine) -> None:
    gripper = Gripper.from_robot(machine.robot, "gripper")
    await machine.show("gripper")
    await machine.see("gripper", "holds nothing")
    await machine.click("gripper", "Grab")
    await machine.see("gripper", "holds something")
    assert (await gripper.is_holding_something()).is_holding_something
    await machine.click("gripper", "Open")
    await machine.see("gripper", "holds nothing")
    assert not (await gripper.is_holding_something()).is_holding_something


async def test_board_sets_pins_and_shows_analogs_and_interrupts(machine: Machine) -> None:
    board = Board.from_robot(machine.robot, "board")
    pin = await board.gpio_pin_by_name("7")
    await machine.show("board")
    await machine.see("board", "512")
    card = machine.card("board")
    await card.get_by_label("Name of the pin").fill("7")
    await machine.click("board", "Add")
    await machine.click("board", "Set pin 7 high")
    await poll(pin.get)
    await expect(card.locator("[data-level=high]")).to_be_visible()
    await expect(card.locator("[data-interrupt=gate] strong")).to_contain_text("1")
    await pin.set(False)
    await expect(card.locator("[data-level=low]")).to_be_visible()
    await machine.click("board", "PWM of pin 7")
    await machine.fill("board", "Duty cycle of pin 7 in percent", 25)
    await machine.fill("board", "PWM frequency of pin 7 in hertz", 800)
    await machine.click("board", "Set the PWM of pin 7")
    await poll(lambda: is_at(pin.get_pwm, 0.25))
    assert await pin.get_pwm_frequency() == 800
    await machine.see("board", "25 % at 800 Hz")
    await machine.page.reload()
    await machine.see("board", "25 % at 800 Hz")


async def test_encoder_is_reset(machine: Machine) -> None:
    encoder = Encoder.from_robot(machine.robot, "encoder")
    motor = Motor.from_robot(machine.robot, "motor")
    await motor.reset_zero_position(0)
    await encoder.reset_position()
    await motor.go_for(100, 0.25)
    await machine.show("encoder")
    await machine.see("encoder", "25")
    await machine.see("encoder", "90")
    await machine.click("encoder", "Reset")
    await poll(lambda: reads_ticks(encoder, 0))


async def test_input_controller_shows_buttons_axes_and_events(machine: Machine) -> None:
    controller = Controller.from_robot(machine.robot, "input_controller")
    await machine.show("input_controller")
    await machine.see("input_controller", "South")
    await controller.trigger_event(Event(0, EventType.BUTTON_PRESS, Control.BUTTON_SOUTH, 1))
    await machine.see("input_controller", "South pressed")
    await machine.see("input_controller", "ButtonPress")
    await controller.trigger_event(
        Event(0, EventType.POSITION_CHANGE_ABSOLUTE, Control.ABSOLUTE_X, -0.5)
    )
    await expect(machine.page.get_by_label("left stick: -0.500, 0")).to_be_visible()


async def test_viewer_sees_values_and_nothing_to_press(browser: Browser, tmp_path: Path) -> None:
    locked = {**config("owner", "viewer"), "components": COMPONENTS}
    pins = [f"{each['api']}/{each['name']}" for each in COMPONENTS]
    seen = ("waist", "axis 1", "512", "ticks", "turns", "nothing", "South", "still", "pushes")
    async with (
        run_server(locked, tmp_path) as server,
        open_page(browser, complaint=REFUSED) as page,
    ):
        await page.goto(server.url)
        await log_in_as(page, "viewer")
        await open_view(page, server.url, "control", pin=pins)
        cards = page.locator("[data-card]")
        for text in seen:
            await expect(cards.get_by_text(text).first).to_be_visible()
        await expect(cards).to_have_count(len(COMPONENTS))
        await expect(cards.locator(":is(button, input, select):not(header *)")).to_have_count(0)


async def drag(slider: Locator, begin: float, end: float) -> None:
    """Press on a slider, and move it from one fraction of its width to another."""
    box = await slider.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    mouse = slider.page.mouse
    await mouse.move(box["x"] + begin * box["width"], middle)
    await mouse.down()
    await mouse.move(box["x"] + end * box["width"], middle, steps=5)


async def is_powered(motor: Motor, power: float) -> bool:
    return abs((await motor.is_powered())[1] - power) < 1e-6


async def is_at(read: Callable[[], Awaitable[float]], value: float, within: float = 1e-6) -> bool:
    return abs(await read() - value) <= within


async def is_above(read: Callable[[], Awaitable[float]], value: float) -> bool:
    return await read() > value


async def is_false(read: Callable[[], Awaitable[bool]]) -> bool:
    return not await read()


async def drives(base: Base, linear: float, angular: float) -> bool:
    status = await base.get_status()
    return [status["mm_per_sec"], status["degs_per_sec"]] == [linear, angular]


async def heading_of(base: Base) -> float:
    status: Any = await base.get_status()
    heading: float = status["heading_deg"]
    return heading


async def reads_ticks(encoder: Encoder, ticks: float) -> bool:
    return (await encoder.get_position())[0] == ticks
