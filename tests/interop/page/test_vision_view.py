"""Boxes, labels and confidences on the control page, against the API's own answer."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Page, Route, expect
from tests.interop.test_vision import explained_machine
from tests.support.control_page import needs_browser, open_view
from tests.support.machine.running import Server, run_server
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.waiting import poll
from viam.services.vision import VisionClient

pytestmark = [needs_browser, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="module")]

OTHER = {"name": "other", "api": "rdk:component:camera", "model": "fake"}
BOXES = """(found) => found.map((each) => ({
  box: each.dataset.box.split(' ').map(Number),
  text: each.getAttribute('aria-label'),
  dropped: each.classList.contains('dropped'),
}))"""


@pytest_asyncio.fixture(loop_scope="module")
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    machine = dict(explained_machine(tmp_path))
    attributes = {"scene": "conveyor"}
    belt = {**OTHER, "name": "belt", "attributes": attributes}
    machine["components"] = [*machine["components"], belt]
    async with run_server(machine, tmp_path) as running:
        await running.wait_for_status(state="running")
        yield running


async def open_vision(page: Page, server: Server) -> None:
    await open_view(page, server.url, "vision", camera="still", service="default")
    await expect(page.locator("[data-kept]")).to_be_visible()


async def test_boxes_are_those_of_the_api(server: Server, page: Page) -> None:
    async with connect_sdk(server.port) as client:
        reply = await VisionClient.from_robot(client, "default").capture_all_from_camera(
            "still", return_image=True, return_detections=True
        )
    assert reply.detections
    await open_vision(page, server)
    assert await page.locator(".dropped[data-box]").count() == 0
    await page.get_by_label("dropped").check()
    shown = await page.locator("[data-box]").evaluate_all(BOXES)
    kept = [each for each in shown if not each["dropped"]]
    assert sorted(each["box"] for each in kept) == sorted(
        [found.x_min, found.y_min, found.x_max, found.y_max] for found in reply.detections
    )
    assert sorted(each["text"] for each in kept) == sorted(
        f"{found.class_name} {found.confidence:.2f}" for found in reply.detections
    )
    assert [each for each in shown if each["dropped"]]
    picture = page.locator("[data-picture]")
    assert await picture.evaluate("({width, height}) => [width, height]") == [640, 480]
    assert await measure_edges(page) <= 1


async def measure_edges(page: Page) -> float:
    """Return the pixels between boxes on the screen and where the picture has their pixels."""
    worst: float = await page.evaluate(
        """() => {
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
          return worst;
        }"""
    )
    return worst


async def test_sliders_act_at_once_and_are_written_through_the_plan(
    server: Server, page: Page, tmp_path: Path
) -> None:
    await open_vision(page, server)
    kept = page.locator("[data-kept]")
    confidence = page.get_by_label("Minimum confidence", exact=True)
    before = int(await kept.get_attribute("data-kept") or 0)
    await confidence.fill("1")
    await expect(kept).to_have_attribute("data-kept", "0")
    await confidence.fill("0.01")
    await expect(kept).not_to_have_attribute("data-kept", "0")
    assert int(await kept.get_attribute("data-kept") or 0) > before
    await page.get_by_role("button", name="Show as configuration").click()
    await page.get_by_role("button", name="Write it").click()
    await expect(page.locator("[data-plan='1']")).to_be_visible()
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("saved; the machine applies it")).to_be_visible()
    saved = json.loads((tmp_path / "machine.json").read_text())
    found = [each for each in saved["services"] if each["name"] == "default"]
    assert found[0]["attributes"]["default_minimum_confidence"] == 0.01


async def test_live_captures_follow_each_other(server: Server, page: Page) -> None:
    # A still image would be one frame, however often it is captured.
    await open_view(page, server.url, "vision", camera="belt", service="default")
    await page.get_by_role("button", name="Live").click()
    rate = page.locator("[data-rate]")

    async def read_rate() -> float:
        return float(await rate.get_attribute("data-rate") or 0)

    await poll(read_rate, lambda seen: seen > 1)
    await expect(page.get_by_text("inference")).to_have_count(1)


async def hold(_: Route) -> None:
    """Leave a call without an answer."""


async def test_picture_of_another_camera_does_not_stay(page: Page, tmp_path: Path) -> None:
    machine = dict(explained_machine(tmp_path))
    watching = {
        "name": "watching",
        "api": "rdk:service:vision",
        "model": "fake",
        "attributes": {"camera_name": "other"},
    }
    machine["components"] = [*machine["components"], OTHER]
    machine["services"] = [*machine["services"], watching]
    async with run_server(machine, tmp_path) as server:
        await server.wait_for_status(state="running")
        await open_vision(page, server)
        await page.route(re.compile("CaptureAllFromCamera"), hold)
        await page.get_by_label("camera").select_option("other")
        await expect(page.get_by_text("no picture yet")).to_be_visible()
        is_empty = (
            "(canvas) => !canvas.getContext('2d').getImageData(0, 0, 9, 9).data.some(Boolean)"
        )
        assert await page.locator("[data-picture]").evaluate(is_empty)
        await page.unroute(re.compile("CaptureAllFromCamera"))
        # The link of a camera opens it with the service that is configured with it.
        await open_view(page, server.url, "vision", camera="other")
        await expect(page.get_by_label("service")).to_have_value("watching")
