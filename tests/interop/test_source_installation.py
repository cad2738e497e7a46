"""Installations by pip from a clone and from the source archive, with and without Node.

Dependencies come from the environment of the tests, npm packages from npm's cache if it has them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.browser import launch_browser
from tests.support.control_page import needs_browser, open_page, open_view
from tests.support.machine.running import Server, run_server
from tests.support.paths import REPOSITORY

SITE = "src/cogwork/control/site"
SENTENCE = (
    "the control page is not built: install Node 22.12 or newer with npm, "
    "or set COGWORK_WITHOUT_PAGE=1 to install Cogwork without the page"
)
SLOW_BUILD = pytest.mark.timeout(600)
"""npm may have to download its packages."""

needs_node = pytest.mark.skipif(
    shutil.which("npm") is None and "CI" not in os.environ, reason="Node is not installed"
)


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the dependencies of Cogwork, and without Cogwork."""

    directory: Path

    @property
    def programs(self) -> Path:
        return self.directory / "bin"

    @property
    def server(self) -> Sequence[str]:
        return (str(self.programs / "cogwork-server"),)

    def install(
        self, *source: str | Path, has_node: bool, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Install with pip. Without Node, nothing but the environment's programs is on the path."""
        path = os.environ["PATH"] if has_node else str(self.programs)
        return subprocess.run(
            [
                *(sys.executable, "-m", "pip", "--python", self.programs / "python"),
                *("install", "--no-deps", "--no-build-isolation", "--no-compile", *source),
            ],
            env={
                **os.environ,
                "npm_config_prefer_offline": "true",
                "PYTHONDONTWRITEBYTECODE": "1",
                **variables,
                "PATH": path,
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return create_environment(tmp_path / "environment")


def create_environment(directory: Path) -> Environment:
    venv.create(directory, symlinks=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    # Editable installations in it, such as that of the sources under test, do not come along.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return Environment(directory)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the last commit, which nobody has built."""
    return create_clone(tmp_path_factory.mktemp("clone") / "cogwork")


def create_clone(directory: Path) -> Path:
    if (REPOSITORY / ".git").exists():
        command = ["git", "clone", "--quiet", "--shared", str(REPOSITORY), str(directory)]
        subprocess.run(command, check=True, timeout=60)
    else:
        generated = ("node_modules", "site", "build", "dist", "bin", ".*env*", "__pycache__")
        shutil.copytree(REPOSITORY, directory, ignore=shutil.ignore_patterns(*generated))
    return directory


@dataclass(frozen=True)
class Built:
    clone: Path
    environment: Environment


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A clone from which pip has installed Cogwork."""
    directory = tmp_path_factory.mktemp("built")
    clone = create_clone(directory / "cogwork")
    environment = create_environment(directory / "environment")
    done = environment.install(clone, has_node=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return Built(clone, environment)


@needs_node
@needs_browser
@SLOW_BUILD
async def test_installation_from_a_clone_serves_the_page(built: Built, tmp_path: Path) -> None:
    async with run_server({}, tmp_path, program=built.environment.server) as server:
        await check_files_of_page(server)
        async with launch_browser() as browser, open_page(browser) as page:
            await open_view(page, server.url)


async def check_files_of_page(server: Server) -> None:
    status, text = await server.get("/")
    assert status == 200
    files = re.findall(r'(?:src|href)="\.?(/[^"]+)"', text)
    assert any(file.endswith(".js") for file in files), text
    for file in files:
        assert (await server.get(file))[0] == 200, file


@needs_node
@SLOW_BUILD
def test_installation_leaves_in_the_clone_what_make_page_leaves(built: Built) -> None:
    if not (built.clone / ".git").exists():
        pytest.skip("this is no clone")
    command = ["git", "status", "--short", "--ignored"]
    done = subprocess.run(command, cwd=built.clone, capture_output=True, text=True, check=True)
    assert done.stdout == f"!! {SITE}/\n!! web/node_modules/\n"


@pytest.fixture
def source_archive(built: Built, tmp_path: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "-d", tmp_path],
        cwd=built.clone,
        check=True,
        capture_output=True,
        timeout=60,
    )
    (archive,) = tmp_path.glob("cogwork-*.tar.gz")
    return archive


@needs_node
@SLOW_BUILD
async def test_source_archive_needs_no_node(
    source_archive: Path, environment: Environment, tmp_path: Path
) -> None:
    done = environment.install(source_archive, has_node=False)
    assert done.returncode == 0, done.stdout + done.stderr
    async with run_server({}, tmp_path, program=environment.server) as server:
        await check_files_of_page(server)


def test_without_node_one_sentence_says_what_to_do(clone: Path, environment: Environment) -> None:
    done = environment.install(clone, has_node=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert messages_of_build(done.stderr) == [SENTENCE]


@needs_node
def test_without_a_network_one_sentence_says_what_to_do(
    clone: Path, environment: Environment, tmp_path: Path
) -> None:
    done = environment.install(
        clone,
        has_node=True,
        npm_config_registry="http://127.0.0.1:9/",
        npm_config_cache=str(tmp_path / "cache"),
        npm_config_fetch_retries="0",
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert messages_of_build(done.stderr)[-1] == (
        "the control page is not built, and `npm ci` failed: check the connection to the npm "
        "registry, or set COGWORK_WITHOUT_PAGE=1 to install Cogwork without the page"
    )


def messages_of_build(output: str) -> list[str]:
    """Return the lines that pip shows of a build that failed."""
    _, _, rest = output.partition("lines of output]\n")
    lines, _, _ = rest.partition("[end of output]")
    return [line.strip() for line in lines.splitlines() if line.strip()]


async def test_server_without_the_page_says_how_to_get_it(
    clone: Path, environment: Environment, tmp_path: Path
) -> None:
    done = environment.install(clone, has_node=False, COGWORK_WITHOUT_PAGE="1")
    assert done.returncode == 0, done.stdout + done.stderr
    async with run_server({}, tmp_path, program=environment.server) as server:
        status, page = await server.get("/")
        advice = "Cogwork was installed without its control page; install Node 22.12 or newer"
        assert status == 200
        assert f"<p class=notice>{advice}" in page
        await server.out.wait_for(advice)


def test_editable_installation_needs_no_node(clone: Path, environment: Environment) -> None:
    done = environment.install("--editable", clone, has_node=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (clone / SITE).exists()
