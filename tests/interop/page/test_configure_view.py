"""The configuration on the control page: completion, diagnostics, plan, save, history."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect
from tests.support.control_page import needs_browser, open_page, open_view
from tests.support.machine.running import Server, run_server

from cogwork.config.text.json_reader import read_json
from cogwork.config.text.substitution import substitute

pytestmark = [needs_browser, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="module")]

TEXT = """// A machine with a comment.
{
  "network": {"bind_address": "localhost:0"},
  "components": [
    {
      "name": "s",
      "api": "rdk:component:sensor",
      "model": "fake",
      "attributes": {"readings": {"a": 1}}
    },
    {"name": "m", "api": "rdk:component:motor", "model": "fake"},
    {
      "name": "belt",
      "namespace": "rdk",
      "type": "camera",
      "model": "fake",
      "attributes": {"width": "${WIDTH:-320}", "height": ${HEIGHT:-240}, "animated": "${NO:-false}"}
    }
  ],
  "services": [
    {
      "name": "eyes",
      "type": "vision",
      "model": {"namespace": "rdk", "model_family": "builtin", "name": "color_detector"},
      "attributes": {"detect_color": "#c8a046", "camera_name": "belt"}
    }
  ]
}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with run_server(TEXT, tmp_path_factory.mktemp("machine")) as running:
        await running.wait_for_status(state="running")
        yield running


async def open_configuration(page: Page, server: Server) -> None:
    """Open the view of the machine, which has TEXT."""
    await open_view(page, server.url, "configure")
    await expect(page.get_by_text("Nothing is wrong")).to_be_visible()


def read_components(server: Server) -> dict[str, dict[str, Any]]:
    """Return the components of the file by their names."""
    value: Any = read_json(substitute(server.file.read_text(), {}).text).value
    return {each["name"]: each for each in value["components"]}


def find_button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


async def edit(page: Page) -> None:
    """Put the cursor into the empty end of the first component's line."""
    await page.locator(".cm-content").click()
    await page.keyboard.press("Control+Home")
    for _ in range(4):
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("End")


async def read_plan(page: Page) -> list[list[str]]:
    """Wait for a plan with a step, and return the words of its lines."""
    await expect(page.locator("[data-plan]:not([data-plan='0'])")).to_be_visible()
    return [line.split() for line in await page.locator("[data-plan] li").all_inner_texts()]


async def save(page: Page) -> None:
    await find_button(page, "Save").click()
    await expect(page.get_by_text("saved; the machine applies it")).to_be_visible()


async def test_configuration_is_edited_with_a_plan_and_restored(server: Server, page: Page) -> None:
    await open_configuration(page, server)

    # Completion, and a mistake at its place.
    await edit(page)
    await page.keyboard.type('"lo')
    completion = page.locator(".cm-tooltip-autocomplete")
    await expect(completion.get_by_text('"log_configuration"')).to_be_visible()
    await page.keyboard.press("Escape")
    refusal = page.get_by_text("The machine would refuse this configuration")
    await expect(refusal).to_be_visible()
    for _ in range(4):
        await page.keyboard.press("Control+z")
    await expect(page.get_by_text("Nothing is wrong")).to_be_visible()

    # The form changes the same text.
    await page.get_by_role("button", name="Form").click()
    await page.get_by_role("button", name="ready m motor").click()
    await page.get_by_label("name", exact=True).fill("drive")
    plan = await read_plan(page)
    assert [words[:2] for words in plan] == [["removes", "motor/m"], ["builds", "motor/drive"]]
    await save(page)
    assert server.file.read_text() == TEXT.replace('"name": "m"', '"name": "drive"')
    await expect(page.get_by_role("button", name="ready drive motor")).to_be_visible()

    # The history shows what changed, and restores the first text, through the plan.
    await page.get_by_role("button", name="History").click()
    await expect(page.get_by_role("cell", name=re.compile('^removed: .*"m"'))).to_be_visible()
    configurations = page.get_by_role("list", name="Configurations")
    await configurations.get_by_role("button").last.click()
    await expect(page.get_by_role("cell", name=re.compile('^added: .*"m"'))).to_be_visible()
    await page.get_by_role("button", name=re.compile("^Restore 1")).click()
    assert {words[1] for words in await read_plan(page)} == {"motor/drive", "motor/m"}
    await save(page)
    assert server.file.read_text() == TEXT
    await page.get_by_role("button", name="History").click()
    await expect(page.get_by_text("restored from 1")).to_be_visible()


async def add_resource(page: Page, typed: str, model: str) -> None:
    await find_button(page, "Add a resource").click()
    await page.get_by_label("Search models and devices").fill(typed)
    await page.get_by_role("button", name=re.compile(f"^{model} ")).first.click()


async def set_attribute(page: Page, resource: str, label: str, value: str) -> None:
    """Change an attribute in the form of a resource that is running."""
    await page.get_by_role("button", name="Form", exact=True).click()
    await page.get_by_role("button", name=f"ready {resource}").click()
    await page.get_by_label(label, exact=True).fill(value)


@pytest.fixture
def restored(server: Server) -> Iterator[None]:
    """The machine has TEXT again after a test."""
    yield
    server.save(TEXT)


@pytest.mark.usefixtures("restored")
async def test_incomplete_resource_says_what_it_lacks(server: Server, page: Page) -> None:
    await open_configuration(page, server)
    await add_resource(page, "motor", "fake")
    await add_resource(page, "wheels", "wheeled")
    notice = page.get_by_text("If you save this, it is unhealthy until this is fixed")
    await expect(notice).to_be_in_viewport()
    await expect(page.locator("[data-faults]")).to_contain_text('"width_mm" is missing')
    await expect(page.get_by_role("button", name="not running base base 4 errors")).to_be_visible()
    await expect(find_button(page, "Save with 4 errors")).to_be_enabled()
    await expect(page.get_by_label("width_mm")).to_be_focused()

    # Lists, and the resources that an attribute may name.
    await page.keyboard.type("300")
    await page.get_by_label("wheel_circumference_mm").fill("200")
    for side, motor in (("left", "m"), ("right", "motor")):
        await find_button(page, f"Add to {side}").click()
        choice = page.get_by_label(f"{side} 1", exact=True)
        assert await choice.locator("option").all_inner_texts() == ["not set", "m", "motor"]
        await choice.select_option(motor)
    await expect(page.locator("[data-faults]")).to_have_count(0)
    await save(page)
    await expect(page.get_by_role("button", name="ready base base")).to_be_visible()
    base = read_components(server)["base"]
    assert base["attributes"] == {
        "width_mm": 300,
        "wheel_circumference_mm": 200,
        "left": ["m"],
        "right": ["motor"],
    }


@pytest.mark.usefixtures("restored")
async def test_added_resource_is_in_sight_in_a_long_list(server: Server, page: Page) -> None:
    motors = [{"name": f"m{n}", "api": "rdk:component:motor", "model": "fake"} for n in range(60)]
    server.save(json.dumps({"network": {"bind_address": "localhost:0"}, "components": motors}))
    await open_configuration(page, server)
    await expect(page.get_by_role("button", name="ready m59 motor")).to_be_visible()
    await add_resource(page, "gps", "fake")
    added = page.get_by_role("button", name="not running movement_sensor movement sensor")
    await expect(added).to_be_in_viewport()
    await expect(page.get_by_role("button", name="ready m0 motor")).not_to_be_in_viewport()


@pytest.mark.usefixtures("restored")
async def test_nested_attributes_have_fields(server: Server, page: Page) -> None:
    await open_configuration(page, server)
    await add_resource(page, "transform", "transform")
    await page.get_by_label("source", exact=True).select_option("belt")
    await find_button(page, "Add to pipeline").click()
    await page.get_by_label("type").select_option("crop")
    await page.get_by_label("x_max_px").fill("10")
    await page.get_by_label("y_max_px").fill("20")
    await find_button(page, "Add to pipeline").click()
    await page.get_by_label("type").nth(1).select_option("rotate")
    await find_button(page, "Remove pipeline 1").click()
    await save(page)
    camera = read_components(server)["camera"]
    assert camera["attributes"] == {"source": "belt", "pipeline": [{"type": "rotate"}]}


@pytest.mark.usefixtures("restored")
async def test_changes_of_two_people_are_merged(server: Server, browser: Browser) -> None:
    async with open_page(browser, complaint=r"409 \(Conflict\)") as page:
        await open_configuration(page, server)
        await add_resource(page, "servo", "fake")
        await read_plan(page)
        server.save(TEXT.replace('{"a": 1}', '{"a": 2}').replace("a comment", "another comment"))
        await expect(page.get_by_text("Somebody else changed the file")).to_be_visible()
        await find_button(page, "Changes of the file").click()
        await expect(page.get_by_role("cell", name=re.compile('^added: .*"a": 2'))).to_be_visible()
        await expect(page.get_by_text("at different places")).to_be_visible()
        await find_button(page, "Merge into the editor").click()
        await read_plan(page)
        await save(page)
        saved = server.file.read_text()
        assert {"servo", "s"} <= read_components(server).keys()
        assert '{"a": 2}' in saved
        assert "another comment" in saved


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(("choice", "width"), [("Yours", "640"), ("The file’s", "${WIDTH:-800}")])
async def test_conflict_in_one_value_asks_which_to_keep(
    server: Server, browser: Browser, choice: str, width: str
) -> None:
    async with open_page(browser, complaint=r"409 \(Conflict\)") as page:
        await open_configuration(page, server)
        await set_attribute(page, "belt camera", "width", "640")
        await read_plan(page)
        server.save(TEXT.replace("WIDTH:-320", "WIDTH:-800"))
        merge = find_button(page, "Merge into the editor")
        await expect(merge).to_be_disabled()
        # A reload keeps what was edited, and what it was made from.
        await page.reload()
        await expect(merge).to_be_disabled()
        await page.get_by_role("radio", name=choice).check()
        await merge.click()
        shown = page.get_by_label("width", exact=True)
        await expect(shown).to_have_value(width)
        await expect(merge).to_have_count(0)


async def test_faults_of_what_runs_lead_to_their_places(page: Page, tmp_path: Path) -> None:
    sensor = {"name": "s", "api": "rdk:component:sensor", "model": "fake"}
    wrong = {**sensor, "attributes": {"raedings": {}}}
    async with run_server({"components": [wrong], "jbos": []}, tmp_path) as server:
        await server.wait_for_status(state="running")
        await open_view(page, server.url, "control")
        await expect(page.get_by_role("button", name=re.compile("ready s 1 error"))).to_be_visible()
        await page.get_by_role("link", name="2 errors").click()
        faults = page.get_by_role("region", name="Configuration faults")
        await expect(faults).to_contain_text('sensor s: unknown key "raedings"')
        await expect(faults).to_contain_text('unknown key "jbos"')
        at_fault = faults.get_by_role("listitem").filter(has_text="raedings")
        await at_fault.get_by_role("link", name="show").click()
        await expect(page.locator(".cm-activeLine")).to_contain_text('"raedings"')
        await expect(find_button(page, "Save")).to_be_disabled()
        await page.keyboard.press("End")
        await page.keyboard.type(" ")
        await expect(find_button(page, "Save with 2 errors")).to_be_enabled()
        await page.goto("about:blank")


async def test_keyboard_leaves_the_editor_without_stopping_the_machine(
    server: Server, page: Page
) -> None:
    await open_configuration(page, server)
    await page.locator(".cm-content").click()
    hint = page.get_by_text("Press Escape, then Tab").filter(visible=True)
    await expect(hint).to_be_visible()
    await edit(page)
    await page.keyboard.type('"lo')
    await expect(page.locator(".cm-tooltip-autocomplete")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+f")
    await expect(page.locator(".cm-search")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator(".cm-search")).not_to_be_attached()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Tab")
    assert await page.evaluate("!document.activeElement.shadowRoot")
    stopped = page.get_by_text("everything is stopped")
    await expect(stopped).to_have_count(0)
    await page.locator(".cm-content").click()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await expect(stopped).to_be_visible()


async def test_hostile_text_is_shown_in_bounds(server: Server, page: Page) -> None:
    await open_configuration(page, server)
    long = "x" * 50_000
    first = {"name": long, "api": f"rdk:component:{long}", "model": long, "attributes": {long: 1}}
    others = [{"name": f"{number}{long[:300]}", "model": long[:300]} for number in range(700)]
    text = json.dumps({"components": [first, *others], long: long})
    draft = json.dumps({"text": text, "checksum": ""})
    await page.evaluate("(draft) => sessionStorage.setItem('cogwork.draft', draft)", draft)
    await page.reload()
    for tab, shown in (("Form", "Remove"), ("History", re.compile("^Restore")), ("JSON", "Save")):
        await find_button(page, tab).click()
        await expect(page.get_by_role("button", name=shown)).to_be_visible()
        assert await page.evaluate("document.body.innerText.length") < 60_000


async def test_text_that_is_not_json_has_no_form(server: Server, page: Page) -> None:
    await open_configuration(page, server)
    await page.locator(".cm-content").click()
    await page.keyboard.press("Control+Home")
    await page.keyboard.type("oops")
    refusal = page.get_by_text("The machine would refuse this configuration")
    await expect(refusal).to_be_visible()
    await page.get_by_role("button", name="Form").click()
    await page.get_by_role("button", name="Fix it as JSON").click()
    await expect(page.locator(".cm-content")).to_be_visible()


async def test_older_entries_with_variables_are_edited_in_a_form(
    server: Server, page: Page
) -> None:
    await open_configuration(page, server)
    await page.get_by_role("button", name="Form").click()
    await page.get_by_role("button", name="ready belt camera").click()
    seed = page.get_by_label("seed")
    await seed.fill("seven")
    await seed.blur()
    await expect(page.get_by_text("this is not a number")).to_be_visible()
    await seed.fill("7")
    shown = {"width": "${WIDTH:-320}", "height": "${HEIGHT:-240}", "animated": '"${NO:-false}"'}
    for label, value in shown.items():
        await expect(page.get_by_label(label, exact=True)).to_have_value(value)
    assert {words[1] for words in await read_plan(page)} == {"camera/belt", "vision/eyes"}
    await save(page)
    saved = server.file.read_text()
    assert '"width": "${WIDTH:-320}"' in saved
    assert '"height": ${HEIGHT:-240}' in saved
    assert '"seed": 7' in saved

    # What is removed is back after Discard.
    eyes = page.get_by_role("button", name="ready eyes vision")
    await eyes.click()
    await page.get_by_role("button", name="Remove").click()
    await expect(page.locator("[data-plan='1']")).to_be_visible()
    await page.get_by_role("button", name="Discard").click()
    await expect(eyes).to_be_visible()
    server.save(TEXT)


async def test_empty_machine_starts_with_an_example(page: Page, tmp_path: Path) -> None:
    async with run_server({}, tmp_path) as server:
        await open_view(page, server.url)
        await page.get_by_role("button", name=re.compile("Add what is connected")).click()
        await expect(page.get_by_label("Connected devices")).to_be_attached()
        await page.get_by_role("button", name=re.compile("Start with an example")).click()
        assert {words[1] for words in await read_plan(page)} == {"camera/belt", "vision/eyes"}
        await save(page)
        await expect(page.get_by_text("2 of 2 ready")).to_be_visible()
        await open_view(page, server.url, "vision", camera="belt", service="eyes", mode="interval")
        await expect(page.locator("[data-box]").first).to_be_visible()
        await page.goto("about:blank")
