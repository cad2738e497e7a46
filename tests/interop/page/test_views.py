"""The views of logs, graph, modules, jobs and diagnosis, used as people use them."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from grpclib import GRPCError
from tests.modules.make import stub
from tests.support import control_page
from tests.support.control_page import needs_browser, open_machine
from tests.support.machine.login import KEYS, config, key_of
from tests.support.machine.running import run_server
from tests.support.sizes import limit
from viam.components.motor import Motor
from viam.proto.common import LogEntry
from viam.proto.robot import LogRequest

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module")]

DEADLINE = 30.0

LONGEST_PAUSE, USUAL_PAUSE = limit(1000.0), limit(100.0)
"""Milliseconds between two frames, on a computer that is busy with other tests."""

MEASURE_FRAMES = """
const measure = (milliseconds) => page.evaluate((duration) => new Promise((resolve) => {
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
}), milliseconds);
"""
"""Defines a function that returns the milliseconds between the frames that the page draws."""

ROWS = "const rows = page.getByRole('group', { name: /^Log lines/ }).getByRole('listitem');"


def component(name: str, subtype: str, model: str = "fake", *needs: str) -> dict[str, Any]:
    api = f"rdk:component:{subtype}"
    return {"name": name, "api": api, "model": model, "depends_on": list(needs)}


class Machine(control_page.Machine):
    """A machine, a page that shows it, and the Python SDK."""

    async def show(self, view: str, **params: str) -> None:
        # Another fragment alone would keep the view as it is.
        await self.page.run("await page.goto('about:blank');")
        await self.page.open(self.server.url, view, **params)

    async def run(self, script: str, **values: Any) -> Any:
        return await self.page.run(f"{ROWS}\n{MEASURE_FRAMES}\n{script}", **values)

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
async def machine(tmp_path_factory: Any) -> AsyncIterator[Machine]:
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
    async with open_machine(configuration, directory) as opened:
        yield Machine(opened.server, opened.page, opened.robot)


HOSTILE = "<img src=x onerror='hacked=1'><script>hacked=1</script>\0\u202eevil"

OPEN_HOSTILE = """
    await rows.filter({ hasText: "<img src=x onerror" }).first().getByRole("button").click();
    const message = page.getByLabel("Message", { exact: true });
    await message.waitFor();
    return {
      text: (await message.innerText()).slice(0, 64),
      isRun: await page.evaluate(() => "hacked" in window),
      elements: await page.locator("main :is(img, script, b)").count(),
      isWider: await page.evaluate(() => document.documentElement.scrollWidth > innerWidth),
      height: await rows.first().evaluate((row) => row.querySelector("button").offsetHeight),
    };
"""

HARMLESS = {
    "text": "<img src=x onerror='hacked=1'><script>hacked=1</script>\u2400\ufffdevilxxx",
    "isRun": False,
    "elements": 0,
    "isWider": False,
    "height": 26,
}


async def test_hostile_line_is_text(machine: Machine) -> None:
    await machine.log(HOSTILE + "x" * 200_000, logger="<b>bold</b>\u202e")
    await machine.show("logs", text="onerror")
    assert await machine.run(OPEN_HOSTILE) == HARMLESS


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
    await machine.run(
        """
        await page.route("**/logs.jsonl?*", (route) => route.fulfill({ body: values.body }));
        """,
        body=f"not JSON\n{json.dumps(line)}\n",
    )
    try:
        await machine.show("logs", text="onerror")
        assert await machine.run(OPEN_HOSTILE) == HARMLESS
    finally:
        await machine.run("await page.unroute('**/logs.jsonl?*');")


async def test_lines_are_filtered_by_level_logger_and_text(machine: Machine) -> None:
    for level in ("info", "warn", "error"):
        await machine.log(f"apple {level}", level=level, logger="fruit")
        await machine.log(f"carrot {level}", level=level, logger="roots")
    await machine.show("logs")
    shown = await machine.run(
        """
        const list = async (text) => {
          await rows.filter({ hasText: text }).first().waitFor();
          const texts = await rows.locator(".message").allInnerTexts();
          return texts.filter((each) => /^(apple|carrot)/.test(each));
        };
        const found = {};
        await page.getByRole("navigation", { name: "Loggers" })
          .getByRole("button", { name: /fruit/ }).click();
        await rows.filter({ hasNotText: "apple" }).first().waitFor({ state: "detached" });
        found.logger = await list("apple error");
        await page.getByRole("button", { name: "Warnings" }).click();
        await rows.filter({ hasText: "apple info" }).waitFor({ state: "detached" });
        found.level = await list("apple error");
        await page.reload();
        found.reloaded = await list("apple error");
        await page.getByRole("button", { name: "Reset" }).click();
        await page.getByRole("searchbox").fill("CARROT e");
        await rows.filter({ hasNotText: "carrot" }).first().waitFor({ state: "detached" });
        found.text = await list("carrot error");
        return found;
        """
    )
    assert shown["logger"] == ["apple info", "apple warn", "apple error"]
    assert shown["level"] == ["apple warn", "apple error"]
    assert shown["reloaded"] == ["apple warn", "apple error"]
    assert shown["text"] == ["carrot error"]


async def test_log_follows_until_somebody_scrolls_up(machine: Machine) -> None:
    await machine.log(*(f"early {number}" for number in range(300)))
    await machine.show("logs", text="early")
    await machine.run(
        """
        await rows.filter({ hasText: "early 299" }).waitFor();
        await page.getByText("following").waitFor();
        """
    )
    await machine.log("early enough")
    before = await machine.run(
        """
        await rows.filter({ hasText: "early enough" }).waitFor();
        await page.getByRole("group", { name: /^Log lines/ }).hover();
        await page.mouse.wheel(0, -2000);
        await page.getByRole("button", { name: "Follow" }).waitFor();
        return rows.first().innerText();
        """
    )
    await machine.log("early bird")
    after = await machine.run(
        """
        const follow = page.getByRole("button", { name: "Follow · 1 new" });
        await follow.waitFor();
        const top = await rows.first().innerText();
        const isSeen = await rows.filter({ hasText: "early bird" }).count();
        await follow.click();
        await rows.filter({ hasText: "early bird" }).waitFor();
        return { top, isSeen };
        """
    )
    assert after == {"top": before, "isSeen": 0}


async def test_address_leads_to_a_line(machine: Machine) -> None:
    await machine.log("somewhere before")
    await machine.log("the line in question", level="warn")
    await machine.log(*(f"something after {number}" for number in range(200)))
    await machine.show("logs")
    opened = await machine.run(
        """
        await page.getByRole("searchbox").fill("in question");
        await rows.getByRole("button").click();
        await page.getByLabel("Message", { exact: true }).waitFor();
        await page.getByRole("searchbox").fill("");
        const url = page.url();
        const tab = await context.newPage();
        await tab.goto(url);
        const message = await tab.getByLabel("Message", { exact: true }).innerText();
        const isFollowing = await tab.getByText("following").count();
        await tab.close();
        return { message, isFollowing };
        """
    )
    assert opened == {"message": "the line in question", "isFollowing": 0}


async def test_a_thousand_lines_a_second_do_not_freeze_the_page(machine: Machine) -> None:
    async def flood() -> None:
        for second in range(20):
            await machine.log(*(f"flood {second} {number}" for number in range(100)))
            await asyncio.sleep(0.1)

    await machine.show("logs")
    await machine.run("await rows.first().waitFor();")
    gaps, _ = await asyncio.gather(machine.run("return measure(2500);"), flood())
    in_document = await machine.run(
        """
        await rows.filter({ hasText: "flood 19 99" }).waitFor();
        return rows.count();
        """
    )
    assert max(gaps) < LONGEST_PAUSE, describe(gaps)
    assert statistics.median(gaps) < USUAL_PAUSE, describe(gaps)
    assert in_document < 100


async def test_module_is_restarted_by_its_button(machine: Machine) -> None:
    before = await machine.module("acme")
    await machine.show("modules", output="acme")
    await machine.run(
        """
        const panel = page.getByRole("region", { name: "module acme", exact: true });
        await panel.getByText(`pid ${values.pid}`).waitFor();
        await panel.getByText(/^memory \\d+(\\.\\d)? MB$/).waitFor();
        await panel.getByText(/^up for /).waitFor();
        await panel.getByRole("link", { name: "thing" }).waitFor();
        await panel.getByText("module acme is ready").first().waitFor();
        await panel.getByRole("button", { name: "Restart" }).click();
        await panel.getByText("started 2 times").waitFor();
        await panel.getByText("ready", { exact: true }).waitFor();
        """,
        pid=before["pid"],
    )
    after = await machine.module("acme")
    assert after["state"] == "ready"
    assert after["starts"] == before["starts"] + 1
    assert after["pid"] != before["pid"]


async def test_packages_and_processes_are_listed_with_what_they_lack(machine: Machine) -> None:
    await machine.show("modules")
    await machine.run(
        """
        const packages = page.getByRole("region", { name: "packages" });
        await packages.getByText("here 1.2").waitFor();
        await packages.getByText(/^ready for /).waitFor();
        await packages.getByText("not-there does not exist").waitFor();
        const processes = page.getByRole("region", { name: "processes" });
        await processes.getByText(/^running for /).waitFor();
        await processes.getByText(/^finished for /).waitFor();
        await processes.getByText("exited with code 3 (last line: no camera)").waitFor();
        await processes.getByRole("link", { name: "breaks" }).click();
        await rows.filter({ hasText: "StdErr" }).filter({ hasText: "no camera" }).first().waitFor();
        await rows.filter({ hasText: "exited with code 3" }).first().waitFor();
        """
    )


async def test_job_shows_its_failures(machine: Machine) -> None:
    await machine.show("jobs")
    await machine.run(
        """
        const job = (name) => page.getByRole("region", { name: `job ${name}`, exact: true });
        await job("broken").getByRole("list").getByText('depends on "nowhere"').waitFor();
        await job("broken").getByText(/^failed .* ago/).waitFor();
        await job("broken").getByRole("img", { name: /0 successful and \\d+ failed/ }).waitFor();
        await job("fine").getByText(/^succeeded .* ago/).waitFor();
        await job("fine").getByText("every 200ms", { exact: true }).waitFor();
        await job("rare").getByText(/^next in \\d+ (min|h|d)$/).waitFor();
        """
    )


async def test_running_operation_is_cancelled(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "m")
    turning = asyncio.create_task(motor.go_for(rpm=1, revolutions=60))
    await machine.show("diagnose")
    await machine.run(
        """
        const operations = page.getByRole("region", { name: "Operations" });
        const row = operations.getByRole("row").filter({ hasText: "MotorService/GoFor" });
        await row.getByRole("button", { name: "Cancel" }).click();
        await operations.getByText("No calls are running.").waitFor();
        """
    )
    with pytest.raises(GRPCError, match="CANCELLED"):
        async with asyncio.timeout(DEADLINE):
            await turning


async def test_diagnosis_shows_configuration_and_journal(machine: Machine) -> None:
    await machine.show("diagnose")
    await machine.run(
        """
        const panel = (name) => page.getByRole("region", { name, exact: true });
        await panel("Machine").getByText("rdk", { exact: true }).waitFor();
        await panel("Configuration").getByText(/depends on "nowhere"/).waitFor();
        await panel("Journal").getByRole("list").getByText("module acme").first().waitFor();
        await panel("Journal").getByRole("img", { name: /events over time/ }).waitFor();
        """
    )


async def test_load_is_plotted_over_one_time_axis(machine: Machine) -> None:
    await machine.show("diagnose")
    shown = await machine.run(
        """
        const load = page.getByRole("region", { name: "Load", exact: true });
        await load.getByRole("img", { name: /^Processor over the last .*: [0-9.]+ %/ }).waitFor();
        await load.getByRole("img", { name: /^Loop lag over the last .*: [0-9.]+ ms/ }).waitFor();
        const texts = await load.locator("strong").allInnerTexts();
        await load.getByRole("group").focus();
        await page.keyboard.press("ArrowLeft");
        await load.getByText(/^at the cursor: .* ago$/).waitFor();
        return { texts, lines: await load.locator("path.line").count() };
        """
    )
    assert shown["lines"] == 5
    assert any(text.endswith(" MB") for text in shown["texts"])


async def test_only_the_last_events_are_read(machine: Machine) -> None:
    asked = await machine.run(
        """
        const asked = [];
        const note = (request) => {
          if (request.url().includes("/history.json")) asked.push(request.url());
        };
        page.on("request", note);
        for (const view of ["overview", "diagnose"]) {
          await page.goto("about:blank");
          const answer = page.waitForResponse(/history.json/);
          await page.goto(`${values.url}/#/${view}`);
          await answer;
        }
        page.off("request", note);
        return asked;
        """,
        url=machine.server.url,
    )
    assert len(asked) >= 2
    assert all("/history.json?last=" in url for url in asked), asked


async def test_viewer_is_offered_no_restart(machine: Machine, tmp_path: Path) -> None:
    modules = [{"name": "acme", "type": "local", "executable_path": str(stub(tmp_path))}]
    async with run_server({**config("viewer"), "modules": modules}, tmp_path) as server:
        offered = await machine.run(
            """
            const tab = await context.newPage();
            await tab.goto(`${values.url}/#/modules`);
            await tab.getByLabel("Key ID").fill(values.id);
            await tab.getByLabel("Key", { exact: true }).fill(values.key);
            await tab.getByRole("button", { name: "Log in" }).click();
            await tab.getByRole("region", { name: "module acme" }).waitFor();
            const count = await tab.getByRole("button", { name: "Restart" }).count();
            await tab.close();
            return count;
            """,
            url=server.url,
            id=KEYS["viewer"],
            key=key_of("viewer"),
        )
    assert offered == 0


async def test_graph_of_500_resources_is_smooth(machine: Machine, tmp_path: Path) -> None:
    tree = [
        component(f"c{number}", "generic", "fake", *([f"c{(number - 1) // 3}"] if number else []))
        for number in range(500)
    ]
    async with run_server({"components": tree}, tmp_path) as server:
        await server.wait_for_status(state="running")
        await machine.page.open(server.url, "graph")
        gaps = await machine.run(
            """
            const drawing = page.getByRole("group", { name: /^Drawing of the graph/ });
            await page.getByText("500 ready", { exact: true }).waitFor();
            const box = await drawing.boundingBox();
            const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
            await page.mouse.move(middle.x, middle.y);
            const frames = measure(2000);
            for (let round = 0; round < 4; round++) {
              await page.mouse.down();
              await page.mouse.move(middle.x - 200, middle.y - 200, { steps: 20 });
              await page.mouse.up();
              await page.mouse.wheel(0, round % 2 ? 200 : -200);
              await page.mouse.move(middle.x, middle.y, { steps: 10 });
            }
            return frames;
            """
        )
        assert max(gaps) < LONGEST_PAUSE, describe(gaps)
        assert statistics.median(gaps) < USUAL_PAUSE, describe(gaps)
        opened = await machine.run(
            """
            await page.getByRole("searchbox", { name: "Search the graph" }).fill("c499");
            await page.getByRole("button", { name: "c499" }).focus();
            await page.getByRole("status").filter({ hasText: "c499" }).waitFor();
            await page.keyboard.press("Enter");
            await page.locator("[data-card]").waitFor();
            return page.locator("[data-card]").getAttribute("data-card");
            """
        )
        assert opened == "rdk:component:generic/c499"
        # The page would complain that the machine is gone.
        await machine.run("await page.goto('about:blank');")


async def test_graph_shows_what_is_unhealthy_and_why(machine: Machine) -> None:
    await machine.show("graph")
    shown = await machine.run(
        """
        await page.getByLabel("Only unhealthy and what they touch").check();
        const list = page.getByRole("list", { name: "Resources of the graph" });
        await list.getByRole("button", { name: "thing" }).waitFor({ state: "detached" });
        const names = await list.getByRole("button").allInnerTexts();
        await list.getByRole("button", { name: "lost" }).focus();
        await page.getByText('depends on "nowhere", which is not configured').waitFor();
        return { names, isKept: page.url().includes("only=unhealthy") };
        """
    )
    assert shown == {"names": ["lost", "nowhere"], "isKept": True}


def describe(gaps: Sequence[float]) -> str:
    return (
        f"{len(gaps)} frames, median {statistics.median(gaps):.0f} ms, longest {max(gaps):.0f} ms"
    )
