"""The executable of `make server`, with the SDK's own clients: cameras, ML models and vision."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from benchmarks.startup import executable_path
from tests.interop.test_vision import (
    DEMO,
    Machine,
    camera,
    check_demo,
    check_refused_cameras,
    demo_machine,
    run_machine,
    service,
    vision_with_model,
)
from tests.support.booted_systemd import BootedSystem, boot_systemd, needs_systemd
from tests.support.machine.running import Config
from tests.support.media.films import film
from tests.support.paths import REPOSITORY

from cogwork import __version__
from cogwork.drivers.mlmodel import tflite_crash_probe
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.camera.client import CameraClient  # noqa: E402

ENGINES_NOT_CONTAINED = ("openvino", "tensorflow", "torch")

# Building takes minutes.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return an environment without our Python, and with one home for all tests."""
    home = tmp_path_factory.mktemp("home")
    return {"PATH": os.defpath, "PYTHONPATH": "", "VIRTUAL_ENV": "", "COGWORK_HOME": str(home)}


@pytest.fixture(scope="module")
def executable(environment: Mapping[str, str]) -> Path:
    """Build the executable, and let it unpack itself."""
    built = subprocess.run(
        ["make", "server"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    first = subprocess.run(
        [executable_path(), "-version"], capture_output=True, env=environment, check=True
    )
    assert first.stdout.decode() == f"cogwork-server {__version__}\n"
    return executable_path()


@pytest.fixture
async def machine(
    executable: Path, environment: Mapping[str, str], tmp_path: Path
) -> AsyncIterator[Machine]:
    config, program = build_config(tmp_path), (str(executable),)
    async with run_machine(config, tmp_path, environment=environment, program=program) as there:
        yield there


def build_config(directory: Path) -> Config:
    demo = demo_machine()
    return {
        "components": [
            *demo["components"],
            camera("film", "ffmpeg", video_path=str(film(directory / "film.mp4"))),
        ],
        "services": [
            *demo["services"],
            *vision_with_model(
                "lite",
                "tflite_cpu",
                DEMO / "conveyor.tflite",
                camera_name="belt",
                default_minimum_confidence=0.5,
            ),
            *(
                service(engine, "mlmodel", f"{engine}_cpu", model_path=str(DEMO / "conveyor.pt"))
                for engine in ENGINES_NOT_CONTAINED
            ),
        ],
    }


async def test_demo_machine_runs(machine: Machine) -> None:
    await check_demo(machine)
    await check_refused_cameras(machine)


async def test_tflite_model_detects_parts(machine: Machine) -> None:
    found = await machine.vision("lite").get_detections_from_camera("belt")
    assert found
    assert {each.class_name for each in found} <= {"gear", "bolt", "nut"}


async def test_ffmpeg_camera_plays_a_file(machine: Machine) -> None:
    (image,), _ = await CameraClient("film", machine.channel).get_images()
    assert (image.width, image.height) == (64, 48)


async def test_other_engines_name_an_environment_to_run_instead(machine: Machine) -> None:
    resources = (await machine.server.status())["resources"]
    reasons = {each["name"]: each["reason"] for each in resources if each["state"] != "ready"}
    assert set(reasons) == {f"rdk:service:mlmodel/{engine}" for engine in ENGINES_NOT_CONTAINED}
    for engine in ENGINES_NOT_CONTAINED:
        reason = reasons[f"rdk:service:mlmodel/{engine}"]
        assert f"cogwork-env/bin/pip install 'cogwork[{engine}]'" in reason
        assert "run `cogwork-env/bin/cogwork-server` instead" in reason


def test_crash_probe_runs_the_model(executable: Path, environment: Mapping[str, str]) -> None:
    command = [str(executable), "-m", tflite_crash_probe.__name__]
    with (DEMO / "conveyor.tflite").open("rb") as model:
        done = subprocess.run(command, stdin=model, capture_output=True, env=environment)
    assert done.returncode == 0
    # LiteRT logs which kernels it uses.
    assert b"XNNPACK" in done.stderr


@needs_systemd
def test_installs_updates_and_removes_itself(executable: Path, tmp_path: Path) -> None:
    with boot_systemd(tmp_path) as system:
        system.run("rm", "-rf", "/root/.cogwork", "/var/lib/cogwork")
        before = list_files(system)
        said = system.run(str(executable), "--aix-install", within=300).stdout
        assert "Started the service cogwork-server" in said
        # Unpacked once, where the service finds it.
        assert [each.name for each in (system.root / "var/lib/cogwork").glob("unpacked/*")]
        assert not (system.root / "root/.cogwork").exists()
        status = system.run("curl", "-s", "--max-time", "30", "http://localhost:8080/status.json")
        assert json.loads(status.stdout)["state"] in ("initializing", "running")
        check_strict_service(system)
        first = system.show("cogwork-server", "MainPID")
        again = system.run(str(executable), "--aix-install", within=300).stdout
        assert "Replaced /usr/local/bin/cogwork-server." in again
        assert system.show("cogwork-server", "MainPID") != first
        said = system.run("/usr/local/bin/cogwork-server", "--aix-uninstall", within=300).stdout
        assert "Kept the configuration /etc/cogwork.json and the data in /var/lib/cogwork" in said
        system.run("rm", "-r", "/etc/cogwork.json", "/var/lib/cogwork")
        assert list_files(system) == before


def check_strict_service(system: BootedSystem) -> None:
    """The stricter set of the guide does not keep the server from running."""
    guide = (REPOSITORY / "docs/guides/install-on-a-machine.md").read_text()
    strict = guide.partition('```ini title="strict.conf"\n')[2].partition("```")[0]
    directory = "/etc/systemd/system/cogwork-server.service.d"
    system.run("mkdir", directory)
    (system.root / directory.lstrip("/") / "strict.conf").write_text(strict)
    system.run("systemctl", "daemon-reload")
    system.run("systemctl", "restart", "cogwork-server")
    assert system.show("cogwork-server", "ProtectHome") == "yes"
    system.run("rm", "-r", directory)


def list_files(system: BootedSystem) -> list[str]:
    """Return the files of the directories in which software is installed."""
    directories = ("/etc", "/root", "/usr/local", "/var/lib")
    return sorted(system.run("find", *directories, "-xdev", "-type", "f").stdout.splitlines())
