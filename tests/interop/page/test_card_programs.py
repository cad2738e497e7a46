"""The programs that the cards offer, run as they are, with the SDKs for Python and TypeScript."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect
from tests.interop.test_typescript_sdk import COMPONENTS, SERVICES
from tests.modules import make
from tests.support.control_page import REFUSED, log_in_as, needs_browser, open_page, open_view
from tests.support.machine.login import KEYS, ROLES, config, key_of
from tests.support.machine.modular import module, service
from tests.support.machine.running import run_server
from tests.support.paths import TESTS

from cogwork.cli.demo.run import DEMO_MODEL, build_config
from cogwork.cli.main import main

pytestmark = [needs_browser, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="module")]

DEMO = build_config(DEMO_MODEL / "conveyor.onnx", "onnx_cpu", "")
"""Has a camera, a model and a vision service."""
ECHO = "acme:service:echo"
"""A custom API, for which the SDKs have no client."""
SOME = ("motor", "camera", "inspector", "echo")
TSC = TESTS.parent / "web" / "node_modules" / ".bin" / "tsc"
COMPILER_OPTIONS = (
    *("--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext"),
    *("--moduleResolution", "bundler"),
)
NODE_TYPES = "declare const process: { env: Record<string, string | undefined>; exit(): never };"
"""What the programs use of Node."""


@dataclass(frozen=True)
class Case:
    """How a machine is reached."""

    host: str = "localhost"
    needs_login: bool = False
    is_encrypted: bool = False
    acts: bool = False
    """Whether the programs also do what their comments offer."""
    is_partial: bool = False
    """Whether only some programs run, because others connect in the same way."""


CASES = {
    "plain": Case(),
    "acting": Case(acts=True),
    "login": Case(needs_login=True),
    "TLS and login": Case(needs_login=True, is_encrypted=True),
    "plain, by number": Case(host="127.0.0.1", is_partial=True),
    "login, by number": Case(host="127.0.0.1", needs_login=True, is_partial=True),
    "TLS": Case(is_encrypted=True, is_partial=True),
    "TLS and login, by number": Case(
        host="127.0.0.1", needs_login=True, is_encrypted=True, is_partial=True
    ),
}


def build_machine(case: Case, directory: Path) -> dict[str, Any]:
    """Return a machine that has a resource of each API."""
    machine: dict[str, Any] = {
        **(config(*ROLES) if case.needs_login else {}),
        "components": [*COMPONENTS, *DEMO["components"]],
        "services": [*SERVICES, *DEMO["services"], service("echo", ECHO, "acme:test:echo")],
        "modules": [module("echo", make.sdk_module(directory / "bin", "echo"))],
    }
    if case.is_encrypted:
        certificates = directory / "certs"
        assert main(["certs", "local", "127.0.0.1", "--directory", str(certificates)]) == 0
        machine["network"] = {
            **machine.get("network", {}),
            "tls_cert_file": str(certificates / "cert.pem"),
            "tls_key_file": str(certificates / "key.pem"),
        }
    return machine


@pytest.mark.parametrize("name", CASES)
async def test_programs_of_all_cards_run(name: str, browser: Browser, tmp_path: Path) -> None:
    case = CASES[name]
    machine = build_machine(case, tmp_path)
    resources = [*machine["components"], *machine["services"]]
    async with (
        run_server(machine, tmp_path) as server,
        open_page(browser, complaint=REFUSED) as page,
    ):
        url = server.url.replace("localhost", case.host)
        await page.goto(url)
        if case.needs_login:
            await log_in_as(page, "owner")
        await expect(page.get_by_text(f"{len(resources)} of {len(resources)}")).to_be_visible()
        if case.is_partial:
            resources = [each for each in resources if each["name"] in SOME]
        programs = [await read_programs(page, url, each) for each in resources]
        assert not any(key_of("owner") in each for pair in programs for each in pair)
        if case.acts:
            programs = [(uncomment(python), uncomment(script)) for python, script in programs]
        environment = {
            **os.environ,
            "SSL_CERT_FILE": str(tmp_path / "certs" / "ca.pem"),
            "NODE_EXTRA_CA_CERTS": str(tmp_path / "certs" / "ca.pem"),
            "COGWORK_API_KEY_ID": KEYS["owner"],
            "COGWORK_API_KEY": key_of("owner"),
        }
        if not case.is_encrypted:
            del environment["SSL_CERT_FILE"], environment["NODE_EXTRA_CA_CERTS"]
        names = [each["name"] for each in resources]
        pythons = dict(zip(names, (python for python, _ in programs), strict=True))
        scripts = dict(zip(names, (script for _, script in programs), strict=True))
        # One after the other: what both of them move would be interrupted.
        outcomes = [
            await run_python(tmp_path, pythons, environment),
            await run_node(tmp_path, scripts, environment),
        ]
        motor = str(tmp_path / "node" / "motor.mjs")
        # By itself, it also ends by itself.
        assert await run_process(("node", motor), environment) == "false\n"
    for outcome in outcomes:
        assert set(outcome) == set(names)
        failed = {each: found for each, found in outcome.items() if found["error"]}
        assert not failed, "\n".join(found["error"] for found in failed.values())
        assert not [each for each, found in outcome.items() if not found["printed"].strip()]
    if name == "plain":
        await check_types(tmp_path)


async def read_programs(page: Page, url: str, resource: Mapping[str, Any]) -> tuple[str, str]:
    """Return the programs in Python and TypeScript."""
    await open_view(page, url, "control", pin=f"{resource['api']}/{resource['name']}")
    card = page.locator(f"[data-card='{resource['api']}/{resource['name']}']")
    await card.get_by_role("button", name="Code", exact=True).click()
    found: list[str] = []
    for language in ("Python", "TypeScript"):
        await card.get_by_role("button", name=language).click()
        found.append(await card.locator(f"pre[aria-label={language}]").inner_text())
    python, script = found
    return python, script


def uncomment(program: str) -> str:
    """Return the program with the lines that it has as comments below a comment with a colon."""
    lines = program.split("\n")
    heads = [at for at, line in enumerate(lines) if re.fullmatch(r"\s*(#|//) .*:", line)]
    if not heads:
        return program
    begin = heads[0] + 1
    rest = [re.sub(r"^(\s*)(# |// )", r"\1", line) for line in lines[begin:]]
    return "\n".join([*lines[:begin], *rest])


async def run_python(
    directory: Path, programs: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    files = write_programs(directory / "python", programs, "py")
    command = (sys.executable, "-m", "tests.support.python_programs", *files)
    return await run_programs(command, files, environment)


async def run_node(
    directory: Path, programs: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    files = write_programs(directory / "node", programs, "mjs")
    (directory / "node" / "node_modules").symlink_to(TESTS / "browser" / "node_modules")
    command = ("node", str(TESTS / "browser" / "programs.mjs"), *files)
    return await run_programs(command, files, environment)


def write_programs(directory: Path, programs: Mapping[str, str], ending: str) -> dict[str, str]:
    """Return the names of the programs by file."""
    directory.mkdir()
    files = {str(directory / f"{name}.{ending}"): name for name in programs}
    for file, name in files.items():
        Path(file).write_text(programs[name])
    return files


async def run_programs(
    command: Sequence[str], files: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    out = await run_process(command, environment)
    # The SDK logs to the same stream.
    outcomes: dict[str, dict[str, str]] = json.loads(out.splitlines()[-1])
    return {files[file]: outcome for file, outcome in outcomes.items()}


async def run_process(command: Sequence[str], environment: Mapping[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=TESTS.parent,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 100)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, out.decode() + err.decode()
    return out.decode()


async def check_types(directory: Path) -> None:
    """Check the TypeScript programs with the compiler."""
    types = directory / "node" / "process.d.ts"
    types.write_text(NODE_TYPES)
    scripts = [each.rename(each.with_suffix(".ts")) for each in (directory / "node").glob("*.mjs")]
    files = [str(each) for each in (types, *scripts)]
    await run_process(("node", str(TSC), *COMPILER_OPTIONS, *files), os.environ)
