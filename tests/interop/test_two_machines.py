"""The guide "Two machines as one", with its two configurations on computers of their own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from tests.interop.test_new_machine import CLI, Person
from tests.support.machine.running import PROGRAM
from tests.support.network.namespaces import local_network, needs_namespaces
from tests.support.paths import REPOSITORY
from tests.support.sizes import limit
from tests.support.waiting import block_until

pytestmark = needs_namespaces

EXAMPLE = REPOSITORY / "examples" / "two-machines"
GUIDE = REPOSITORY / "docs" / "guides" / "two-machines-as-one.md"


def test_guide_shows_the_configurations_of_the_example() -> None:
    shown = re.findall(r'```json title="(.*?)"\n(.*?)```', GUIDE.read_text(), re.DOTALL)
    assert dict(shown) == {each.name: each.read_text() for each in EXAMPLE.glob("*.json")}


async def test_camera_of_a_board_and_detector_of_a_computer(tmp_path: Path) -> None:
    with local_network(2) as computers:
        board, computer = (
            Person(each, tmp_path / name)
            for each, name in zip(computers, ("board", "computer"), strict=True)
        )
        computer.computer.set_names({"board.local": board.computer.address})
        for person in (board, computer):
            person.directory.mkdir()
            shutil.copy(EXAMPLE / f"{person.directory.name}.json", person.directory)
        board.run(CLI, "certs", "local", "board.local", "--directory", "certs")
        added = board.run(CLI, "auth", "add-key", "board.json", "--role", "operator", "--json")
        key = json.loads(added)
        authority = shutil.copy(board.directory / "certs" / "ca.pem", computer.directory)
        variables = {"BOARD_KEY_ID": key["id"], "BOARD_KEY": key["key"]}
        async with (
            board.serve(in_directory(board), "-config", "board.json"),
            computer.serve(
                in_directory(computer),
                *("-config", "computer.json"),
                authority=Path(authority),
                variables=variables,
            ),
        ):
            wait_until_healthy(computer)
            assert "board:top" in computer.run(CLI, "status")
            request = json.dumps({"camera_name": "board:top"})
            found = computer.run(CLI, "call", "red", "GetDetectionsFromCamera", request)
            assert json.loads(found)["detections"]


def wait_until_healthy(person: Person) -> None:
    status = [*person.computer.prefix, *CLI, "status"]

    def is_healthy() -> bool:
        return subprocess.run(status, check=False, capture_output=True).returncode == 0

    block_until(is_healthy, limit(30), every=0.1)


def in_directory(person: Person) -> tuple[str, ...]:
    """Return how the server is started, so that its files are found."""
    return ("env", "-C", str(person.directory), *PROGRAM)
