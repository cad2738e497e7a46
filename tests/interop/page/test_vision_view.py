"""Boxes, labels and confidences on the control page, against the API's own answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop.test_vision import explained_machine
from tests.support.control_page import Page, connect_sdk, needs_browser, open_browser
from tests.support.machine.running import Server, run_server
from viam.services.vision import VisionClient

pytestmark = [needs_browser, pytest.mark.timeout(240)]

BOXES = """
return page.locator('[data-box]').evaluateAll((found) => found.map((each) => ({
  box: each.dataset.box.split(' ').map(Number),
  text: each.getAttribute('aria-label'),
  dropped: each.classList.contains('dropped'),
})));
"""
PIXELS = """
return page.locator('[data-picture]').evaluate((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const sum = [0, 0, 0, 0];
  data.forEach((value, index) => (sum[index % 4] += value));
  return [canvas.width, canvas.height, ...sum.map((each) => each / (data.length / 4))];
});
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with run_server(explained_machine(tmp_path), tmp_path) as running:
        await running.wait_for_status(state="running")
        yield running


async def open_vision(page: Page, server: Server, service: str) -> None:
    await page.open(server.url, "vision", camera="still", service=service)
    await page.run("await page.locator('[data-kept]').waitFor();")


async def test_boxes_are_those_of_the_api(server: Server) -> None:
    async with connect_sdk(server.port) as client, open_browser() as page:
        reply = await VisionClient.from_robot(client, "default").capture_all_from_camera(
            "still", return_image=True, return_detections=True
        )
        assert reply.detections
        await open_vision(page, server, "default")
        shown = await page.run(BOXES)
        kept = [each for each in shown if not each["dropped"]]
        assert sorted(each["box"] for each in kept) == sorted(
            [found.x_min, found.y_min, found.x_max, found.y_max] for found in reply.detections
        )
        assert sorted(each["text"] for each in kept) == sorted(
            f"{found.class_name} {found.confidence:.2f}" for found in reply.detections
        )
        assert [each for each in shown if each["dropped"]]
        width, height, *_ = await page.run(PIXELS)
        assert (width, height) == (640, 480)
        edges = await measure_edges(page)
        assert edges["largest error in pixels"] <= 1
        assert await page.problems() == []


async def measure_edges(page: Page) -> Any:
    """Compare where boxes are on the screen with where the picture has their pixels."""
    return await page.run(
        """
        return page.evaluate(() => {
          const canvas = document.querySelector('[data-picture]');
          const place = canvas.getBoundingClientRect();
          const scale = place.width / canvas.width;
          let worst = 0;
          for (const each of document.querySelectorAll('[data-box]')) {
            const [left, top, right, bottom] = each.dataset.box.split(' ').map(Number);
            const seen = each.querySelector('.outline').getBoundingClientRect();
            worst = Math.max(
              worst,
              Math.abs(seen.left - (place.left + left * scale)),
              Math.abs(seen.right - (place.left + right * scale)),
              Math.abs(seen.top - (place.top + top * scale)),
              Math.abs(seen.bottom - (place.top + bottom * scale)),
            );
          }
          return { 'largest error in pixels': worst };
        });
        """
    )


async def test_sliders_act_at_once_and_are_written_through_the_plan(
    server: Server, tmp_path: Path
) -> None:
    async with open_browser() as page:
        await open_vision(page, server, "default")
        before = await page.run("return page.locator('[data-kept]').getAttribute('data-kept');")
        await page.run("await page.getByLabel('Minimum confidence', {exact: true}).fill('1');")
        assert (
            await page.run("return page.locator('[data-kept]').getAttribute('data-kept');") == "0"
        )
        await page.run("await page.getByLabel('Minimum confidence', {exact: true}).fill('0.01');")
        after = await page.run("return page.locator('[data-kept]').getAttribute('data-kept');")
        assert int(after) > int(before)
        await page.run(
            """
            await page.getByRole('button', {name: 'Show as configuration'}).click();
            await page.getByRole('button', {name: /Write it/}).click();
            await page.locator('[data-plan="1"]').waitFor();
            await page.getByRole('button', {name: 'Save', exact: true}).click();
            await page.getByText('saved; the machine applies it').waitFor();
            """
        )
        saved = json.loads((tmp_path / "machine.json").read_text())
        found = [each for each in saved["services"] if each["name"] == "default"]
        assert found[0]["attributes"]["default_minimum_confidence"] == 0.01
        assert await page.problems() == []


async def test_live_captures_follow_each_other(server: Server) -> None:
    async with open_browser() as page:
        await open_vision(page, server, "default")
        await page.run("await page.getByRole('button', {name: 'Live'}).click();")
        await page.run(
            "await page.locator('[data-rate]').waitFor(); await page.waitForTimeout(1500);"
        )
        rate = await page.run(
            "return Number(await page.locator('[data-rate]').getAttribute('data-rate'));"
        )
        assert rate > 1
        assert await page.run("return page.getByText('inference').count();") == 1
        assert await page.problems() == []
