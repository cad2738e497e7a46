"""The configuration on the control page: completion, diagnostics, plan, save, history."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.support.control_page import Machine, Page, needs_browser, open_browser, open_machine
from tests.support.machine.running import run_server

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
async def machine(tmp_path_factory: Any) -> AsyncIterator[Machine]:
    async with open_machine(TEXT, tmp_path_factory.mktemp("machine")) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def page(machine: Machine) -> Page:
    """The view without an unsaved text. The machine has TEXT."""
    script = "await page.evaluate(() => sessionStorage.clear()); await page.goto('about:blank');"
    await machine.page.run(script)
    await machine.page.open(machine.server.url, "configure")
    await machine.page.run("await page.getByText('Nothing is wrong').waitFor();")
    return machine.page


def read_file(machine: Machine) -> str:
    return machine.server.file.read_text()


async def read_plan(page: Page) -> Any:
    """Wait for a plan with a step, and return its lines."""
    await page.run("await page.locator('[data-plan]:not([data-plan=\"0\"])').waitFor();")
    return await page.run("return page.locator('[data-plan] li').allInnerTexts();")


async def save(page: Page) -> None:
    await page.run(
        """
        await page.getByRole('button', {name: 'Save', exact: true}).click();
        await page.getByText('saved; the machine applies it').waitFor();
        """
    )


async def test_configuration_is_edited_with_a_plan_and_restored(
    machine: Machine, page: Page
) -> None:
    # Completion, and a mistake at its place.
    await page.run(
        """
        await page.locator('.cm-content').click();
        await page.keyboard.press('Control+Home');
        for (let line = 0; line < 4; line += 1) await page.keyboard.press('ArrowDown');
        await page.keyboard.press('End');
        await page.keyboard.type('"lo');
        const list = page.locator('.cm-tooltip-autocomplete');
        await list.getByText('"log_configuration"').waitFor();
        await page.keyboard.press('Escape');
        await page.getByText('The machine would refuse this configuration').waitFor();
        for (let each = 0; each < 4; each += 1) await page.keyboard.press('Control+z');
        await page.getByText('Nothing is wrong').waitFor();
        """
    )

    # The form changes the same text.
    await page.run(
        """
        await page.getByRole('button', {name: 'Form'}).click();
        await page.getByRole('button', {name: 'ready m motor'}).click();
        await page.getByLabel('name', {exact: true}).fill('drive');
        """
    )
    plan = await read_plan(page)
    assert [line.split()[:2] for line in plan] == [
        ["removes", "motor/m"],
        ["builds", "motor/drive"],
    ]
    await save(page)
    assert read_file(machine) == TEXT.replace('"name": "m"', '"name": "drive"')
    await page.run("await page.getByRole('button', {name: 'ready drive motor'}).waitFor();")

    # The history shows what changed, and restores the first text, through the plan.
    await page.run(
        """
        await page.getByRole('button', {name: 'History'}).click();
        await page.getByRole('cell', {name: /^removed: .*"m"/}).waitFor();
        const list = page.getByRole('list', {name: 'Configurations'});
        await list.getByRole('button').last().click();
        await page.getByRole('cell', {name: /^added: .*"m"/}).waitFor();
        await page.getByRole('button', {name: /^Restore 1/}).click();
        """
    )
    plan = await read_plan(page)
    assert {line.split()[1] for line in plan} == {"motor/drive", "motor/m"}
    await save(page)
    assert read_file(machine) == TEXT
    await page.run(
        """
        await page.getByRole('button', {name: 'History'}).click();
        await page.getByText('restored from 1').waitFor();
        """
    )


async def test_saving_over_somebody_else_is_refused(machine: Machine, page: Page) -> None:
    await page.run(
        """
        await page.getByRole('button', {name: 'Add a resource'}).click();
        await page.getByLabel('Model').selectOption('servo: fake');
        await page.getByRole('button', {name: 'Add it'}).click();
        await page.getByRole('heading', {name: 'servo rdk:component:servo fake'}).waitFor();
        """
    )
    await read_plan(page)
    other = f"{TEXT}// other"
    machine.server.save(other)
    await page.run(
        """
        await page.getByRole('button', {name: 'Save', exact: true}).click();
        await page.getByRole('button', {name: 'Load the file again'}).click();
        await page.getByText('The text is what the machine has.').waitFor();
        """
    )
    assert read_file(machine) == other
    (conflict,) = await page.run("return problems.splice(0);")
    assert "409 (Conflict)" in conflict
    machine.server.save(TEXT)


async def test_keyboard_leaves_the_editor_without_stopping_the_machine(page: Page) -> None:
    await page.run(
        """
        await page.locator('.cm-content').click();
        await page.getByText('Press Escape, then Tab').and(page.locator(':visible')).waitFor();
        await page.keyboard.press('Control+Home');
        for (let line = 0; line < 4; line += 1) await page.keyboard.press('ArrowDown');
        await page.keyboard.press('End');
        await page.keyboard.type('"lo');
        await page.locator('.cm-tooltip-autocomplete').waitFor();
        await page.keyboard.press('Escape');
        await page.keyboard.press('Control+f');
        await page.locator('.cm-search').waitFor();
        await page.keyboard.press('Escape');
        await page.locator('.cm-search').waitFor({state: 'detached'});
        await page.keyboard.press('Escape');
        await page.keyboard.press('Tab');
        """
    )
    assert await page.run("return page.evaluate(() => !document.activeElement.shadowRoot);")
    assert await page.run("return page.getByText('everything is stopped').count();") == 0
    await page.run(
        """
        await page.locator('.cm-content').click();
        await page.keyboard.press('Escape');
        await page.keyboard.press('Escape');
        await page.getByText('everything is stopped').waitFor();
        """
    )


async def test_hostile_text_is_shown_in_bounds(page: Page) -> None:
    long = "x" * 50_000
    first = {"name": long, "api": f"rdk:component:{long}", "model": long, "attributes": {long: 1}}
    others = [{"name": f"{number}{long[:300]}", "model": long[:300]} for number in range(700)]
    lengths = await page.run(
        """
        const draft = JSON.stringify({text: values.text, checksum: ''});
        await page.evaluate((draft) => sessionStorage.setItem('cogwork.draft', draft), draft);
        await page.reload();
        const lengths = [];
        const views = {Form: 'Remove', History: /^Restore/, JSON: 'Save'};
        for (const [tab, shown] of Object.entries(views)) {
          await page.getByRole('button', {name: tab, exact: true}).click();
          await page.getByRole('button', {name: shown}).waitFor();
          lengths.push(await page.evaluate(() => document.body.innerText.length));
        }
        return lengths;
        """,
        text=json.dumps({"components": [first, *others], long: long}),
    )
    assert max(lengths) < 60_000


async def test_text_that_is_not_json_has_no_form(page: Page) -> None:
    await page.run(
        """
        await page.locator('.cm-content').click();
        await page.keyboard.press('Control+Home');
        await page.keyboard.type('oops');
        await page.getByText('The machine would refuse this configuration').waitFor();
        await page.getByRole('button', {name: 'Form'}).click();
        await page.getByRole('button', {name: 'Fix it as JSON'}).click();
        await page.locator('.cm-content').waitFor();
        """
    )


async def test_older_entries_with_variables_are_edited_in_a_form(
    machine: Machine, page: Page
) -> None:
    shown = await page.run(
        """
        await page.getByRole('button', {name: 'Form'}).click();
        await page.getByRole('button', {name: 'ready belt camera'}).click();
        await page.getByLabel('seed').fill('seven');
        await page.getByLabel('seed').blur();
        await page.getByText('this is not a number').waitFor();
        await page.getByLabel('seed').fill('7');
        const read = (name) => page.getByLabel(name, {exact: true}).inputValue();
        return Promise.all(['width', 'height', 'animated'].map(read));
        """
    )
    assert shown == ["${WIDTH:-320}", "${HEIGHT:-240}", '"${NO:-false}"']
    assert {line.split()[1] for line in await read_plan(page)} == {"camera/belt", "vision/eyes"}
    await save(page)
    saved = read_file(machine)
    assert '"width": "${WIDTH:-320}"' in saved
    assert '"height": ${HEIGHT:-240}' in saved
    assert '"seed": 7' in saved

    # What is removed is back after Discard.
    await page.run(
        """
        await page.getByRole('button', {name: 'ready eyes vision'}).click();
        await page.getByRole('button', {name: 'Remove'}).click();
        await page.locator('[data-plan="1"]').waitFor();
        await page.getByRole('button', {name: 'Discard'}).click();
        await page.getByRole('button', {name: 'ready eyes vision'}).waitFor();
        """
    )
    machine.server.save(TEXT)


async def test_empty_machine_starts_with_an_example(tmp_path: Path) -> None:
    async with run_server({}, tmp_path) as server, open_browser() as page:
        await page.open(server.url)
        await page.run(
            """
            await page.getByRole('button', {name: /Add what is connected/}).click();
            await page.getByLabel('Connected devices').waitFor({state: 'attached'});
            await page.getByRole('button', {name: /Start with an example/}).click();
            """
        )
        assert {line.split()[1] for line in await read_plan(page)} == {"camera/belt", "vision/eyes"}
        await save(page)
        await page.run("await page.getByText('2 of 2 ready').waitFor();")
        await page.open(server.url, "vision", camera="belt", service="eyes", mode="interval")
        await page.run("await page.locator('[data-box]').first().waitFor();")
        assert await page.problems() == []
