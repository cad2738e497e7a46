"""Credentials of a part: replaced, copied, and refused. Each is said on both sides."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from playwright.async_api import expect
from tests.interop.test_joined_machine import SENSOR, Joined, new_machine
from tests.support.browser import launch_browser
from tests.support.control_page import REFUSED, log_in, needs_browser, open_page
from tests.support.machine.modular import poll
from tests.support.machine.running import Server, run_server


async def list_notices(machine: Joined) -> list[str]:
    part: Any = await machine.client.get_robot_part(machine.part)
    info = part.user_supplied_info or {}
    return [str(each) for each in info.get("notices", ())]


async def test_new_secret_reaches_the_machine_over_the_old_one(tmp_path: Path) -> None:
    async with new_machine(tmp_path) as machine:
        await machine.save(SENSOR)
        async with machine.run() as server:
            await server.out.wait_for("1 ready")
            await machine.wait_until_online()
            changed = await machine.client.create_robot_part_secret(machine.part)
            await server.out.wait_for("has replaced the secret of this machine")
            old = next(each for each in changed.secrets or [] if each.secret == machine.secret)
            since = len(server.out.lines)
            await machine.client.delete_robot_part_secret(machine.part, old.id)
            await machine.save(SENSOR, {**SENSOR, "name": "second"})
            await server.out.wait_for("2 ready", since)
        (file,) = (tmp_path / "home" / "joined").rglob("secret.json")
        assert file.stat().st_mode & 0o777 == 0o600
        async with machine.run() as server:
            await server.out.wait_for("2 ready")
            await machine.wait_until_online()
        # Someone else with the old secret is refused, and the owner sees that.
        async with run_server(machine.file, tmp_path / "thief", arguments=["-no-tls"]) as thief:
            await thief.out.wait_for("refuses the credentials of this machine.*write the new")
            (shown,) = (await thief.status())["cloud_notices"]
            assert "refuses the credentials of this machine" in shown
        (notice,) = await list_notices(machine)
        assert "with a secret that is not valid" in notice


async def assert_page_says(machine: Joined, server: Server, words: str) -> None:
    async with launch_browser() as browser, open_page(browser, complaint=REFUSED) as page:
        await page.goto(server.url)
        await log_in(page, machine.cloud.key_id, machine.cloud.key)
        await expect(page.get_by_role("alert").filter(has_text=words)).to_be_visible()


@needs_browser
async def test_two_computers_with_the_same_credentials_are_told(tmp_path: Path) -> None:
    async with new_machine(tmp_path) as machine:
        await machine.save(SENSOR)
        async with contextlib.AsyncExitStack() as stack:
            servers = [
                await stack.enter_async_context(
                    run_server(machine.file, tmp_path / name, arguments=["-no-tls"])
                )
                for name in ("one", "copy")
            ]
            for server in servers:
                await server.out.wait_for("1 ready")

            async def edit_and_list() -> list[str]:
                # Both get the new configuration, so the first one comes back after the second.
                await machine.save(SENSOR)
                await machine.save(SENSOR, {**SENSOR, "name": "second"})
                return await list_notices(machine)

            (notice,) = await poll(edit_and_list, bool)
            assert "two computers use the credentials of this part" in notice
            for server in servers:
                await server.out.wait_for("two computers use the credentials of this part")
            await assert_page_says(machine, servers[0], "two computers use the credentials")
            # A new secret would reach the thief, too.
            await machine.client.create_robot_part_secret(machine.part)
            await machine.save(SENSOR, {**SENSOR, "name": "third"})
            for server in servers:
                await server.out.wait_for("applied in")
            assert list(tmp_path.rglob("secret.json")) == []
