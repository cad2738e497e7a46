"""The views of logs, graph, modules, jobs and diagnosis, used as people use them."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from grpclib import GRPCError
from playwright.async_api import Browser, Locator, Page, Request, expect
from tests.modules.make import stub
from tests.support import control_page
from tests.support.control_page import (
    REFUSED,
    log_in_as,
    needs_browser,
    open_machine,
    open_page,
    open_view,
)
from tests.support.machine.commands import run_command
from tests.support.machine.login import config
from tests.support.machine.running import run_server
from tests.support.sizes import limit
from tests.support.waiting import pass_time
from viam.components.motor import Motor
from viam.proto.common import LogEntry
from viam.proto.robot import LogRequest

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]

DEADLINE = 30.0

LONGEST_PAUSE, USUAL_PAUSE = limit(1000.0), limit(100.0)
"""Milliseconds between two frames, on a computer that is busy with other tests."""

MEASURE_FRAMES = """(duration) => new Promise((resolve) => {
  const gaps = [];
  const begin = performance.now();
  let last = begin;
  const step = () => {
    const now = performance.now();
    gaps.push(now - last);
    last = now;
    if (now - begin < duration) requestAnimationFrame(step);
    else resolve(gaps);
  };
  requestAnimationFrame(step);
})"""
"""Returns the milliseconds between the frames that the page draws."""


def component(name: str, subtype: str, model: str = "fake", *needs: str) -> dict[str, Any]:
    api = f"rdk:component:{subtype}"
    return {"name": name, "api": api, "model": model, "depends_on": list(needs)}


class Machine(control_page.Machine):
    """A machine, a page that shows it, and the Python SDK."""

    async def show(self, view: str, **params: str) -> None:
        # Another fragment alone would keep the view as it is.
        await self.page.goto("about:blank")
        await open_view(self.page, self.server.url, view, **params)

    @property
    def rows(self) -> Locator:
        group = self.page.get_by_role("group", name=re.compile("^Log lines"))
        return group.get_by_role("listitem")

    def panel(self, name: str) -> Locator:
        return self.page.get_by_role("region", name=name, exact=True)

    async def see(self, *rows: str) -> None:
        """Wait until there is a log line with all of these texts."""
        found = self.rows
        for text in rows:
            found = found.filter(has_text=text)
        await expect(found.first).to_be_visible()

    async def measure_frames(self, milliseconds: float) -> list[float]:
        gaps: list[float] = await self.page.evaluate(MEASURE_FRAMES, milliseconds)
        return gaps

    async def log(self, *messages: str, level: str = "info", logger: str = "talker") -> None:
        entries = [
            LogEntry(level=level, logger_name=logger, message=message) for message in messages
        ]
        async with grpc.aio.insecure_channel(f"localhost:{self.server.port}") as channel:
            call: Any = channel.unary_unary("/viam.robot.v1.RobotService/Log")
            await call(LogRequest(logs=entries).SerializeToString(), timeout=DEADLINE)

    async def module(self, name: str) -> Any:
        modules = (await self.server.status())["modules"]
        return next(each for each in modules if each["name"] == name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine(tmp_path_factory: Any, browser: Browser) -> AsyncIterator[Machine]:
    directory: Path = tmp_path_factory.mktemp("machine")
    components = [
        component("m", "motor"),
        component("thing", "generic", "acme:stub:thing"),
        component("lost", "sensor", "fake", "nowhere"),
    ]
    jobs = [
        {"name": name, "schedule": "200ms", "resource": resource, "method": method}
        for name, resource, method in (
            ("broken", "lost", "GetReadings"),
            ("fine", "m", "IsMoving"),
        )
    ]
    jobs.append({"name": "rare", "schedule": "3h", "resource": "m", "method": "IsMoving"})
    modules = [{"name": "acme", "type": "local", "executable_path": str(stub(directory))}]
    packages = [
        {"name": name, "version": "1.2", "type": "archive", "url": str(directory / folder)}
        for name, folder in (("here", "."), ("lost", "not-there"))
    ]
    processes = [
        {"id": "waits", "name": "/bin/sleep", "args": ["1000"]},
        {
            "id": "breaks",
            "name": "/bin/sh",
            "args": ["-c", "echo no camera >&2; exit 3"],
            "log": True,
        },
        {"id": "once", "name": "/bin/true", "one_shot": True},
    ]
    configuration = {
        "components": components,
        "modules": modules,
        "jobs": jobs,
        "packages": packages,
        "processes": processes,
    }
    async with open_machine(configuration, directory, browser) as opened:
        yield Machine(opened.server, opened.page, opened.robot)


HOSTILE = "<img src=x onerror='hacked=1'><script>hacked=1</script>\0\u202eevil"


async def assert_hostile_line_is_text(machine: Machine) -> None:
    page = machine.page
    line = machine.rows.filter(has_text="<img src=x onerror").first
    await line.get_by_role("button").click()
    message = page.get_by_label("Message", exact=True)
    harmless = "<img src=x onerror='hacked=1'><script>hacked=1</script>\u2400\ufffdevilxxx"
    await expect(message).to_contain_text(harmless)
    await expect(page.locator("main :is(img, script, b)")).to_have_count(0)
    assert not await page.evaluate("'hacked' in window")
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    button = await machine.rows.first.get_by_role("button").first.bounding_box()
    assert button is not None
    assert round(button["height"]) == 26


async def test_hostile_line_is_text(machine: Machine) -> None:
    await machine.log(HOSTILE + "x" * 200_000, logger="<b>bold</b>\u202e")
    await machine.show("logs", text="onerror")
    await assert_hostile_line_is_text(machine)


async def test_line_of_a_megabyte_is_text(machine: Machine) -> None:
    """The machine would cut it, and refuses to log it; the page does not rely on that."""
    line = {
        "time": "2026-01-01T00:00:00.000Z",
        "level": "loud",
        "logger": "<b>bold</b>",
        "message": HOSTILE + "x" * (1 << 20),
        "fields": {"<b>": ["<img>"], "many": "y" * (1 << 20)},
        "trace": "<script>hacked=1</script>\n" * 1000,
    }
    body = f"not JSON\n{json.dumps(line)}\n"
    await machine.page.route("**/logs.jsonl?*", lambda route: route.fulfill(body=body))
    try:
        await machine.show("logs", text="onerror")
        await assert_hostile_line_is_text(machine)
    finally:
        await machine.page.unroute("**/logs.jsonl?*")


async def test_lines_are_filtered_by_level_logger_and_text(machine: Machine) -> None:
    for level in ("info", "warn", "error"):
        await machine.log(f"apple {level}", level=level, logger="fruit")
        await machine.log(f"carrot {level}", level=level, logger="roots")
    await machine.show("logs")
    page, rows = machine.page, machine.rows
    messages = rows.locator(".message")
    loggers = page.get_by_role("navigation", name="Loggers")
    await loggers.get_by_role("button", name="fruit").click()
    await expect(messages).to_have_text(["apple info", "apple warn", "apple error"])
    await page.get_by_role("button", name="Warnings").click()
    await expect(messages).to_have_text(["apple warn", "apple error"])
    await page.reload()
    await expect(messages).to_have_text(["apple warn", "apple error"])
    await page.get_by_role("button", name="Reset").click()
    await page.get_by_role("searchbox").fill("CARROT e")
    await expect(messages).to_have_text(["carrot error"])


async def test_log_follows_until_somebody_scrolls_up(machine: Machine) -> None:
    await machine.log(*(f"early {number}" for number in range(300)))
    await machine.show("logs", text="early")
    page = machine.page
    await machine.see("early 299")
    await expect(page.get_by_text("following")).to_be_visible()
    await machine.log("early enough")
    await machine.see("early enough")
    await page.get_by_role("group", name=re.compile("^Log lines")).hover()
    await page.mouse.wheel(0, -2000)
    await expect(page.get_by_role("button", name="Follow")).to_be_visible()
    top = await machine.rows.first.inner_text()
    await machine.log("early bird")
    follow = page.get_by_role("button", name="Follow · 1 new")
    await expect(follow).to_be_visible()
    bird = machine.rows.filter(has_text="early bird")
    await expect(bird).to_have_count(0)
    assert await machine.rows.first.inner_text() == top
    await follow.click()
    await expect(bird).to_be_visible()


async def test_log_is_left_while_it_scrolls(machine: Machine) -> None:
    """The browser reports the last scrolling of a list that is no longer there."""
    await machine.log(*(f"many {number}" for number in range(300)))
    await machine.show("logs", text="many")
    await machine.see("many 299")
    # Without the filter, the list has another height.
    await machine.page.evaluate("() => { location.hash = '#/jobs' }")
    await expect(machine.panel("job rare")).to_be_visible()


async def test_count_of_lines_is_that_of_the_shown_lines(machine: Machine) -> None:
    await machine.show("logs")
    seen: str = await machine.page.evaluate(
        """async () => {
          const footer = () => document.querySelector('main footer').textContent;
          const end = performance.now() + 1500;
          while (performance.now() < end) {
            const [shown, total] = footer().match(/[\\d,]+/g).map((each) => +each.replace(',', ''));
            if (shown !== total) return footer();
            await new Promise((resolve) => requestAnimationFrame(resolve));
          }
          return '';
        }"""
    )
    assert seen == ""


async def test_job_is_run_now(machine: Machine) -> None:
    await machine.show("jobs")
    job = machine.panel("job rare")
    await expect(job.get_by_text("has not run yet")).to_be_visible()
    await job.get_by_role("button", name="Run now").click()
    await expect(job.get_by_role("status")).to_contain_text("Succeeded in")
    await expect(job.get_by_text("succeeded", exact=False).first).to_be_visible()
    (record,) = [each for each in (await machine.server.status())["jobs"] if each["name"] == "rare"]
    assert len(record["successes"]) == 1
    result = await run_command(
        "job", "run", "rare", "--address", f"localhost:{machine.server.port}"
    )
    assert (result.code, result.out.startswith('job "rare" succeeded in')) == (0, True)
    unknown = await run_command(
        "job", "run", "rar", "--address", f"localhost:{machine.server.port}"
    )
    assert (unknown.code, "did you mean" in unknown.err) == (2, True)


async def test_address_leads_to_a_line(machine: Machine) -> None:
    await machine.log("somewhere before")
    await machine.log("the line in question", level="warn")
    await machine.log(*(f"something after {number}" for number in range(200)))
    await machine.show("logs")
    page = machine.page
    message = "the line in question"
    await page.get_by_role("searchbox").fill("in question")
    await machine.rows.get_by_role("button").click()
    await expect(page.get_by_label("Message", exact=True)).to_have_text(message)
    await page.get_by_role("searchbox").fill("")
    tab = await page.context.new_page()
    await tab.goto(page.url)
    await expect(tab.get_by_label("Message", exact=True)).to_have_text(message)
    await expect(tab.get_by_text("following")).to_have_count(0)
    await tab.close()


async def test_a_thousand_lines_a_second_do_not_freeze_the_page(machine: Machine) -> None:
    async def flood() -> None:
        for second in range(20):
            await machine.log(*(f"flood {second} {number}" for number in range(100)))
            await pass_time(0.1)

    await machine.show("logs")
    await expect(machine.rows.first).to_be_visible()
    gaps, _ = await asyncio.gather(machine.measure_frames(2500), flood())
    await machine.see("flood 19 99")
    in_document = await machine.rows.count()
    assert max(gaps) < LONGEST_PAUSE, describe(gaps)
    assert statistics.median(gaps) < USUAL_PAUSE, describe(gaps)
    assert in_document < 100


async def test_module_is_restarted_by_its_button(machine: Machine) -> None:
    before = await machine.module("acme")
    await machine.show("modules", output="acme")
    panel = machine.panel("module acme")
    await expect(panel.get_by_text(f"pid {before['pid']}")).to_be_visible()
    await expect(panel.get_by_text(re.compile(r"^memory \d+(\.\d)? MB$"))).to_be_visible()
    await expect(panel.get_by_text(re.compile("^up for "))).to_be_visible()
    await expect(panel.get_by_role("link", name="thing")).to_be_visible()
    await expect(panel.get_by_text("module acme is ready").first).to_be_visible()
    await panel.get_by_role("button", name="Restart").click()
    await expect(panel.get_by_text("started 2 times")).to_be_visible()
    await expect(panel.get_by_text("ready", exact=True)).to_be_visible()
    after = await machine.module("acme")
    assert after["state"] == "ready"
    assert after["starts"] == before["starts"] + 1
    assert after["pid"] != before["pid"]


async def test_packages_and_processes_are_listed_with_what_they_lack(machine: Machine) -> None:
    await machine.show("modules")
    packages = machine.page.get_by_role("region", name="packages")
    await expect(packages.get_by_text("here 1.2")).to_be_visible()
    await expect(packages.get_by_text(re.compile("^ready for "))).to_be_visible()
    await expect(packages.get_by_text("not-there does not exist")).to_be_visible()
    processes = machine.page.get_by_role("region", name="processes")
    await expect(processes.get_by_text(re.compile("^running for "))).to_be_visible()
    await expect(processes.get_by_text(re.compile("^finished for "))).to_be_visible()
    failure = "exited with code 3 (last line: no camera)"
    await expect(processes.get_by_text(failure)).to_be_visible()
    await processes.get_by_role("link", name="breaks").click()
    await machine.see("StdErr", "no camera")
    await machine.see("exited with code 3")


async def test_job_shows_its_failures(machine: Machine) -> None:
    await machine.show("jobs")
    broken, fine, rare = (machine.panel(f"job {name}") for name in ("broken", "fine", "rare"))
    await expect(broken.get_by_role("list").get_by_text('depends on "nowhere"')).to_be_visible()
    await expect(broken.get_by_text(re.compile("^failed .* ago"))).to_be_visible()
    history = broken.get_by_role("img", name=re.compile(r"0 successful and \d+ failed"))
    await expect(history).to_be_visible()
    await expect(fine.get_by_text(re.compile("^succeeded .* ago"))).to_be_visible()
    await expect(fine.get_by_text("every 200ms", exact=True)).to_be_visible()
    await expect(rare.get_by_text(re.compile(r"^next in \d+ (min|h|d)$"))).to_be_visible()


async def test_running_operation_is_cancelled(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "m")
    turning = asyncio.create_task(motor.go_for(rpm=1, revolutions=60))
    await machine.show("diagnose")
    operations = machine.page.get_by_role("region", name="Operations")
    row = operations.get_by_role("row").filter(has_text="MotorService/GoFor")
    await row.get_by_role("button", name="Cancel").click()
    await expect(operations.get_by_text("No calls are running.")).to_be_visible()
    with pytest.raises(GRPCError, match="CANCELLED"):
        async with asyncio.timeout(DEADLINE):
            await turning


async def test_diagnosis_shows_configuration_and_journal(machine: Machine) -> None:
    await machine.show("diagnose")
    await expect(machine.panel("Machine").get_by_text("rdk", exact=True)).to_be_visible()
    configuration = machine.panel("Configuration")
    await expect(configuration.get_by_text('depends on "nowhere"')).to_be_visible()
    journal = machine.panel("Journal")
    await expect(journal.get_by_role("list").get_by_text("module acme").first).to_be_visible()
    await expect(journal.get_by_role("img", name="events over time")).to_be_visible()


async def test_load_is_plotted_over_one_time_axis(machine: Machine) -> None:
    await machine.show("diagnose")
    load = machine.panel("Load")
    for name in ("Processor over the last .*: [0-9.]+ %", "Loop lag over the last .*: [0-9.]+ ms"):
        await expect(load.get_by_role("img", name=re.compile(name))).to_be_visible()
    await expect(load.locator("strong").filter(has_text=re.compile(" MB$")).first).to_be_visible()
    await load.get_by_role("group").focus()
    await machine.page.keyboard.press("ArrowLeft")
    await expect(load.get_by_text(re.compile("^at the cursor: .* ago$"))).to_be_visible()
    await expect(load.locator("path.line")).to_have_count(5)


async def test_only_the_last_events_are_read(machine: Machine) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/history.json" in request.url:
            asked.append(request.url)

    page = machine.page
    page.on("request", note)
    for view in ("overview", "diagnose"):
        await page.goto("about:blank")
        async with page.expect_response(re.compile("history.json")):
            await page.goto(f"{machine.server.url}/#/{view}")
    page.remove_listener("request", note)
    assert len(asked) >= 2
    assert all("/history.json?last=" in url for url in asked), asked


async def test_viewer_is_offered_no_restart(browser: Browser, tmp_path: Path) -> None:
    modules = [{"name": "acme", "type": "local", "executable_path": str(stub(tmp_path))}]
    async with (
        run_server({**config("viewer"), "modules": modules}, tmp_path) as server,
        open_page(browser, complaint=REFUSED) as page,
    ):
        await page.goto(server.url)
        await log_in_as(page, "viewer")
        await open_view(page, server.url, "modules")
        await expect(page.get_by_role("region", name="module acme")).to_be_visible()
        await expect(page.get_by_role("button", name="Restart")).to_have_count(0)


async def test_graph_of_500_resources_is_smooth(page: Page, tmp_path: Path) -> None:
    tree = [
        component(f"c{number}", "generic", "fake", *([f"c{(number - 1) // 3}"] if number else []))
        for number in range(500)
    ]
    async with run_server({"components": tree}, tmp_path) as server:
        await server.wait_for_status(state="running")
        await open_view(page, server.url, "graph")
        await expect(page.get_by_text("500 ready", exact=True)).to_be_visible()
        drawing = page.get_by_role("group", name=re.compile("^Drawing of the graph"))
        gaps, _ = await asyncio.gather(page.evaluate(MEASURE_FRAMES, 2000), wander(drawing))
        assert max(gaps) < LONGEST_PAUSE, describe(gaps)
        assert statistics.median(gaps) < USUAL_PAUSE, describe(gaps)
        await page.get_by_role("searchbox", name="Search the graph").fill("c499")
        await page.get_by_role("button", name="c499").focus()
        await expect(page.get_by_role("status").filter(has_text="c499")).to_be_visible()
        await page.keyboard.press("Enter")
        card = page.locator("[data-card]")
        await expect(card).to_have_attribute("data-card", "rdk:component:generic/c499")


async def wander(drawing: Locator) -> None:
    """Drag the drawing away and back, and zoom in and out."""
    box = await drawing.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    mouse = drawing.page.mouse
    await mouse.move(x, y)
    for turn in range(4):
        await mouse.down()
        await mouse.move(x - 200, y - 200, steps=20)
        await mouse.up()
        await mouse.wheel(0, 200 if turn % 2 else -200)
        await mouse.move(x, y, steps=10)


async def test_graph_shows_what_is_unhealthy_and_why(machine: Machine) -> None:
    await machine.show("graph")
    page = machine.page
    await page.get_by_label("Only unhealthy and what they touch").check()
    resources = page.get_by_role("list", name="Resources of the graph").get_by_role("button")
    await expect(resources).to_have_text(["lost", "nowhere"])
    await resources.filter(has_text="lost").focus()
    reason = page.get_by_text('depends on "nowhere", which is not configured')
    await expect(reason).to_be_visible()
    await expect(page).to_have_url(re.compile("only=unhealthy"))


def describe(gaps: Sequence[float]) -> str:
    return (
        f"{len(gaps)} frames, median {statistics.median(gaps):.0f} ms, longest {max(gaps):.0f} ms"
    )
