"""The cards of components that move or switch things, used as people use them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.support import control_page
from tests.support.control_page import needs_browser, open_machine, until
from tests.support.machine.login import KEYS, config, key_of
from tests.support.machine.running import run_server
from viam.components.arm import Arm, JointPositions
from viam.components.base import Base
from viam.components.board import Board
from viam.components.button import Button
from viam.components.encoder import Encoder
from viam.components.gantry import Gantry
from viam.components.gripper import Gripper
from viam.components.input import Control, Controller, Event, EventType
from viam.components.motor import Motor
from viam.components.servo import Servo
from viam.components.switch import Switch

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]

DEADLINE = 30.0


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

    async def show(self, *subtypes: str) -> None:
        await self.page.open(
            self.server.url,
            "control",
            pin=[f"rdk:component:{each}/{each}" for each in subtypes],
        )
        await self.run("await page.getByText('WebRTC').waitFor();")

    async def run(self, script: str, **values: Any) -> Any:
        prelude = "const card = (name) => page.locator(`[data-card$='/${name}']`);"
        return await self.page.run(f"{prelude}\n{script}", **values)

    async def hold(self, subtype: str, label: str) -> None:
        await self.run(
            """
            const button = card(values.subtype).getByRole("button", { name: values.label });
            await button.hover();
            await page.mouse.down();
            """,
            subtype=subtype,
            label=label,
        )

    async def let_go(self) -> None:
        await self.run("await page.mouse.up();")

    async def click(self, subtype: str, label: str) -> None:
        await self.run(
            """
            await card(values.subtype)
              .getByRole("button", { name: values.label, exact: true })
              .click();
            """,
            subtype=subtype,
            label=label,
        )

    async def fill(self, subtype: str, label: str, value: float) -> None:
        await self.run(
            """
            const field = card(values.subtype).getByLabel(values.label, { exact: true });
            await field.fill(values.text);
            """,
            subtype=subtype,
            label=label,
            text=f"{value:g}",
        )

    async def see(self, subtype: str, text: str) -> None:
        """Wait until the card has the text."""
        await self.run(
            "await card(values.subtype).getByText(values.text).first().waitFor();",
            subtype=subtype,
            text=text,
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine(tmp_path_factory: Any) -> AsyncIterator[Machine]:
    directory: Path = tmp_path_factory.mktemp("machine")
    async with open_machine({"components": COMPONENTS}, directory) as opened:
        yield Machine(opened.server, opened.page, opened.robot)


async def test_motor_turns_while_its_button_is_held(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await machine.show("motor")
    await machine.fill("motor", "Power while held, in percent", 40)
    await machine.hold("motor", "Forward while held")
    await until(lambda: is_powered(motor, 0.4))
    await machine.see("motor", "moving")
    await machine.let_go()
    await until(lambda: is_powered(motor, 0))
    await machine.hold("motor", "Backward while held")
    await until(lambda: is_powered(motor, -0.4))
    await machine.let_go()
    await until(lambda: is_powered(motor, 0))


@pytest.mark.parametrize("lost", ["window blur", "document visibilitychange"])
async def test_motor_stops_when_the_page_is_left(machine: Machine, lost: str) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await machine.show("motor")
    await machine.hold("motor", "Forward while held")
    await until(motor.is_moving)
    target, event = lost.split()
    await machine.run(f"await page.evaluate(() => {target}.dispatchEvent(new Event('{event}')));")
    await until(lambda: is_powered(motor, 0))
    await machine.let_go()


async def test_motor_stops_when_the_page_is_closed(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await machine.show("motor")
    await machine.run(
        """
        const tab = globalThis.tab = await context.newPage();
        await tab.goto(page.url());
        await tab.getByRole("button", { name: "Forward while held" }).hover();
        await tab.mouse.down();
        """
    )
    await until(motor.is_moving)
    await machine.run("await globalThis.tab.close();")
    await until(lambda: is_powered(motor, 0))


async def test_motor_goes_for_turns_and_to_a_position(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await motor.reset_zero_position(0)
    await machine.show("motor")
    await machine.fill("motor", "Turns", 2)
    await machine.fill("motor", "Revolutions per minute", 100)
    await machine.click("motor", "Go for")
    await until(lambda: is_at(motor.get_position, 2))
    await machine.fill("motor", "Turns", 0.5)
    await machine.click("motor", "Go to")
    await until(lambda: is_at(motor.get_position, 0.5))
    await machine.see("motor", "0.500")


async def test_motor_follows_its_slider_until_it_is_released(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await machine.show("motor")
    await machine.run(
        """
        const box = await card("motor").getByRole("slider").boundingBox();
        await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
        await page.mouse.down();
        await page.mouse.move(box.x + box.width - 1, box.y + box.height / 2, { steps: 5 });
        """
    )
    await until(lambda: is_powered(motor, 1))
    await machine.let_go()
    await until(lambda: is_powered(motor, 0))
    assert await machine.run("return card('motor').getByRole('slider').inputValue();") == "0"


async def test_stopping_a_move_is_no_error(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await machine.show("motor")
    await machine.fill("motor", "Turns", 1000)
    await machine.click("motor", "Go for")
    await until(motor.is_moving)
    await machine.click("motor", "■ Stop")
    await until(lambda: is_powered(motor, 0))
    await machine.see("motor", "still")
    assert await machine.run("return card('motor').getByRole('alert').count();") == 0


async def test_base_drives_while_keys_and_buttons_are_held(machine: Machine) -> None:
    base = Base.from_robot(machine.robot, "base")
    await machine.show("base")
    await machine.hold("base", "Turn left while held")
    await until(lambda: drives(base, 0, 45))
    await machine.let_go()
    await until(lambda: drives(base, 0, 0))
    await machine.run(
        """
        await card("base").getByRole("group").focus();
        await page.keyboard.down("w");
        await page.keyboard.down("ArrowRight");
        """
    )
    await until(lambda: drives(base, 200, -45))
    await machine.run("await page.keyboard.up('ArrowRight');")
    await until(lambda: drives(base, 200, 0))
    await machine.run("await page.getByLabel('Search resources').focus();")
    await until(lambda: drives(base, 0, 0))
    await machine.run("await page.keyboard.up('w');")


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
    await until(lambda: is_above(lambda: joint(0), 10))
    await machine.let_go()
    await until(lambda: is_false(arm.is_moving))
    await machine.fill("arm", "Target of elbow in °", -20)
    await machine.click("arm", "Move elbow to its target")
    await until(lambda: is_at(lambda: joint(2), -20))
    await machine.see("arm", "-20.0 °")

    target = await arm.get_end_position()
    await machine.click("arm", "Move to a pose…")
    await machine.fill("arm", "Target z mm", target.z - 30)
    await machine.click("arm", "Move")

    async def height() -> float:
        return (await arm.get_end_position()).z

    await until(lambda: is_at(height, target.z - 30, within=0.5))


async def test_gantry_jogs_moves_and_goes_home(machine: Machine) -> None:
    gantry = Gantry.from_robot(machine.robot, "gantry")

    async def axis(index: int) -> float:
        return (await gantry.get_position())[index]

    await machine.show("gantry")
    await machine.fill("gantry", "Speed in millimeters per second", 250)
    await machine.hold("gantry", "axis 2 plus while held")
    await until(lambda: is_above(lambda: axis(1), 30))
    await machine.let_go()
    await until(lambda: is_false(gantry.is_moving))
    await machine.fill("gantry", "Target of axis 1 in mm", 60)
    await machine.click("gantry", "Move axis 1 to its target")
    await until(lambda: is_at(lambda: axis(0), 60))
    await machine.see("gantry", "60.0 mm")
    await machine.click("gantry", "Home")
    await until(lambda: is_at(lambda: axis(0), 0))
    await until(lambda: is_at(lambda: axis(1), 0))


@pytest.mark.parametrize("name", ["arm", "gantry"])
async def test_skeleton_is_loaded_when_it_is_opened(machine: Machine, name: str) -> None:
    await machine.show(name)
    opened = await machine.run(
        """
        const scene = card(values.name).getByRole("application", { name: /^Skeleton of / });
        const summary = card(values.name).getByText("Skeleton in 3D");
        await summary.waitFor();
        const before = await scene.count();
        await summary.click();
        await card(values.name).getByText(/^The end is at .* mm from the base/).waitFor({
          state: "attached",
        });
        await card(values.name).getByText(/^grid /).waitFor();
        await page.reload();
        await scene.waitFor();
        await summary.click();
        return before;
        """,
        name=name,
    )
    assert opened == 0


async def test_escape_ends_a_jog_that_is_still_held(machine: Machine) -> None:
    gantry = Gantry.from_robot(machine.robot, "gantry")
    await machine.show("gantry")
    await machine.hold("gantry", "axis 1 plus while held")
    await until(gantry.is_moving)
    await machine.run("await page.keyboard.press('Escape');")
    await until(lambda: is_false(gantry.is_moving))
    position = await gantry.get_position()
    await machine.let_go()
    await machine.see("gantry", "still")
    assert await gantry.get_position() == position


async def test_servo_moves_when_its_slider_is_released(machine: Machine) -> None:
    servo = Servo.from_robot(machine.robot, "servo")
    await machine.show("servo")
    await machine.run(
        """
        const box = await card("servo").getByRole("slider").boundingBox();
        await page.mouse.move(box.x + box.width / 4, box.y + box.height / 2);
        await page.mouse.down();
        await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 4 });
        await card("servo").getByText("when released").waitFor();
        """
    )
    assert await servo.get_position() == 0
    await machine.let_go()
    await until(lambda: is_at(servo.get_position, 90, within=2))
    await machine.fill("servo", "Angle in degrees", 30)
    await machine.click("servo", "Move")
    await until(lambda: is_at(servo.get_position, 30))
    await machine.run("await card('servo').getByLabel('the dial is at 30 degrees').waitFor();")


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


async def test_switch_is_set_by_the_label_of_a_position(machine: Machine) -> None:
    switch = Switch.from_robot(machine.robot, "switch")
    await machine.show("switch")
    await machine.click("switch", "fast")
    await until(lambda: is_at(switch.get_position, 2))
    await switch.set_position(1)
    await machine.run("await card('switch').locator('[data-position=\"1\"]').waitFor();")


async def test_button_is_pushed_once_for_each_press(machine: Machine) -> None:
    button = Button.from_robot(machine.robot, "button")
    await machine.show("button")
    await machine.click("button", "Push")
    await machine.click("button", "Push")
    await machine.see("button", "Pushed 2 times")
    assert (await button.get_status())["pushes"] == 2


async def test_board_sets_pins_and_shows_analogs_and_interrupts(machine: Machine) -> None:
    board = Board.from_robot(machine.robot, "board")
    pin = await board.gpio_pin_by_name("7")
    await machine.show("board")
    await machine.see("board", "512")
    await machine.run("await card('board').getByLabel('Name of the pin').fill('7');")
    await machine.click("board", "Add")
    await machine.click("board", "Set pin 7 high")
    await until(pin.get)
    await machine.run("await card('board').locator('[data-level=high]').waitFor();")
    await machine.run(
        "await card('board').locator('[data-interrupt=gate] strong', { hasText: '1' }).waitFor();"
    )
    await pin.set(False)
    await machine.run("await card('board').locator('[data-level=low]').waitFor();")
    await machine.click("board", "PWM of pin 7")
    await machine.fill("board", "Duty cycle of pin 7 in percent", 25)
    await machine.fill("board", "PWM frequency of pin 7 in hertz", 800)
    await machine.click("board", "Set the PWM of pin 7")
    await until(lambda: is_at(pin.get_pwm, 0.25))
    assert await pin.get_pwm_frequency() == 800
    await machine.see("board", "25 % at 800 Hz")
    await machine.run("await page.reload();")
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
    await until(lambda: reads_ticks(encoder, 0))


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
    await machine.run("await page.getByLabel('left stick: -0.500, 0').waitFor();")


async def test_viewer_sees_values_and_nothing_to_press(machine: Machine, tmp_path: Path) -> None:
    locked = {**config("owner", "viewer"), "components": COMPONENTS}
    async with run_server(locked, tmp_path) as server:
        pins = "&".join(f"pin={each['api']}/{each['name']}" for each in COMPONENTS)
        shown = await machine.page.run(
            """
            const tab = await context.newPage();
            await tab.goto(`${values.url}/#/control?${values.pins}`);
            await tab.getByLabel("Key ID").fill(values.id);
            await tab.getByLabel("Key", { exact: true }).fill(values.key);
            await tab.getByRole("button", { name: "Log in" }).click();
            for (const text of values.texts)
              await tab.locator("[data-card]").getByText(text).first().waitFor();
            const controls = tab.locator("[data-card] :is(button, input, select):not(header *)");
            const shown = [await tab.locator("[data-card]").count(), await controls.count()];
            await tab.close();
            return shown;
            """,
            url=server.url,
            pins=pins,
            id=KEYS["viewer"],
            key=key_of("viewer"),
            texts=[
                "waist",
                "axis 1",
                "512",
                "ticks",
                "turns",
                "nothing",
                "South",
                "still",
                "pushes",
            ],
        )
        assert shown == [len(COMPONENTS), 0]


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
