"""`cogwork models` lists the models of the modules of a running machine."""

from __future__ import annotations

import json
from pathlib import Path

from tests.interop import counting_module
from tests.modules import make
from tests.support.machine.commands import run_command
from tests.support.machine.modular import module, run_machine


async def test_models_of_modules_are_listed(tmp_path: Path) -> None:
    counting = module("counting", make.executable(tmp_path, Path(counting_module.__file__)))
    async with run_machine({"modules": [counting]}, tmp_path) as there:
        await there.wait_for_module("counting")
        address = f"localhost:{there.server.port}"
        listed = await run_command("models", "counted", "--address", address, "--json")
    (entry,) = json.loads(listed.out)
    assert entry == {
        "api": "rdk:component:generic",
        "model": "acme:test:counted",
        "source": "module counting",
        "summary": f"From module counting at {address}.",
        "install": None,
        "attributes": None,
        "example": {
            "name": "my-generic",
            "api": "rdk:component:generic",
            "model": "acme:test:counted",
        },
    }
