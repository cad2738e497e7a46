"""What the module in Node needs, once for each version of it, in a cache outside the tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ASKED_FOR = (HERE / "package.json", HERE / "package-lock.json", Path(__file__))
PATIENCE = 60.0


class NoNode(Exception):
    """Node or its packages cannot be had here."""


def installed() -> Path:
    """The directory of `node_modules` and `descriptors.bin`."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise NoNode(f"{tool} is not installed here; the module in Node needs Node 20 and npm")
    directory = _cache() / f"node-{_version()}"
    if not directory.is_dir():
        _install(directory)
    return directory


def _cache() -> Path:
    if chosen := os.environ.get("COGWORK_TEST_CACHE"):
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "cogwork-tests"


def _version() -> str:
    import viam

    asked_for = b"".join(file.read_bytes() for file in ASKED_FOR) + viam.__version__.encode()
    return hashlib.sha256(asked_for).hexdigest()[:12]


def _install(directory: Path) -> None:
    """Beside it first: tests run in several processes, and any of them may be ended."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=".node-", dir=directory.parent))
    try:
        for file in (*ASKED_FOR[:2], HERE / ".npmrc"):
            shutil.copy(file, beside)
        _run("npm", "ci", "--ignore-scripts", "--no-progress", "--loglevel=error", within=beside)
        _run(sys.executable, "-I", __file__, str(beside / "descriptors.bin"), within=beside)
        # Two that install at once: the second finds the first one's, which is the same.
        if not directory.is_dir():
            beside.rename(directory)
    except OSError:
        if not directory.is_dir():
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _run(*words: str, within: Path) -> None:
    try:
        subprocess.run(words, cwd=within, check=True, capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise NoNode(f"{words[0]} {words[1]} took longer than {PATIENCE:g} s") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise NoNode(f"{words[0]} {words[1]} failed: {said}") from None


def write_descriptors(file: Path) -> None:
    """What the module serves and calls, out of the SDK: its protos themselves are not needed."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpclib.reflection.v1 import reflection_pb2
    from grpclib.reflection.v1alpha import reflection_pb2 as alpha_pb2
    from viam.gen.component.camera.v1 import camera_pb2
    from viam.gen.module.v1 import module_pb2
    from viam.gen.robot.v1 import robot_pb2

    files: dict[str, bytes] = {}
    for each in (camera_pb2, module_pb2, robot_pb2, reflection_pb2, alpha_pb2):
        files.update(_with_what_it_imports(each.DESCRIPTOR))
    described = FileDescriptorSet()
    for data in files.values():
        described.file.add().ParseFromString(data)
    file.write_bytes(described.SerializeToString())


def _with_what_it_imports(file: object) -> Iterator[tuple[str, bytes]]:
    for each in file.dependencies:  # type: ignore[attr-defined]
        yield from _with_what_it_imports(each)
    yield file.name, file.serialized_pb  # type: ignore[attr-defined]


if __name__ == "__main__":
    write_descriptors(Path(sys.argv[1]))
