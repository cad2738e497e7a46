"""Build signed releases for this platform: `python -m scripts.release.build --key KEY.pem`.

Each release contains the wheel of this tree, the locked wheels of its dependencies, their bill of
materials and a signed manifest. The same commit, locks and key give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scripts.release.lock import PIP, lock_path
from scripts.release.sbom import make_sbom

from cogwork import __version__
from cogwork.agent.release.archive import write_archive
from cogwork.agent.release.manifest import FileEntry, ReleaseManifest
from cogwork.agent.release.signature import load_private_key
from cogwork.agent.slots.installer import REQUIREMENTS
from cogwork.agent.slots.interpreter import PYTHON
from cogwork.core.versions.minimum_version import MINIMUM_VERSIONS
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.core.versions.product import Product

SBOM: Final = "sbom.cdx.json"
_BYTE_CODE: Final = 2
"""Size of an installed file, with its byte code, as a multiple of the file's size."""


def build_release(
    product: Product, wheel: Path, cache: Path, key: Ed25519PrivateKey, into: Path, time: int
) -> Path:
    """Return the archive of the release. `cache` keeps downloaded wheels."""
    lock = lock_path(product).read_text(encoding="utf-8")
    download(lock, cache)
    wheels = [wheel, *locked_wheels(lock, cache)]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / REQUIREMENTS).write_text(requirements(lock, wheel), encoding="utf-8")
        (directory / SBOM).write_bytes(make_sbom(product, __version__, wheels))
        files = {each: directory / each for each in (REQUIREMENTS, SBOM)}
        files |= {f"wheels/{each.name}": each for each in wheels}
        manifest = ReleaseManifest(
            product,
            __version__,
            PLATFORM,
            PYTHON,
            sum(map(unpacked_size, wheels)) * _BYTE_CODE,
            {name: FileEntry(path.stat().st_size, sha256(path)) for name, path in files.items()},
            MINIMUM_VERSIONS.get(product),
        )
        archive = into / manifest.archive_name
        write_archive(archive, manifest, key.sign(manifest.encode()), files, time)
    return archive


def requirements(lock: str, wheel: Path) -> str:
    """Return the wheels that pip installs: our own wheel, and the locked wheels except pip's."""
    others = [line for line in lock.splitlines() if not line.startswith(f"{PIP}==")]
    return "\n".join((f"cogwork=={__version__} --hash=sha256:{sha256(wheel)}", *others)) + "\n"


def download(lock: str, cache: Path) -> None:
    """Download the wheels that the cache does not have."""
    if len(locked_wheels(lock, cache)) == len(lock.splitlines()):
        return
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(lock)
        file.flush()
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--only-binary", ":all:", "--require-hashes", "--dest", str(cache)),
                *("--requirement", file.name),
            ],
            check=True,
        )


def locked_wheels(lock: str, cache: Path) -> list[Path]:
    """Return the wheels of the cache whose hash is in the lock."""
    hashes = {line.rpartition("sha256:")[2] for line in lock.splitlines()}
    return [each for each in sorted(cache.glob("*.whl")) if sha256(each) in hashes]


def build_wheel(into: Path, time: int) -> Path:
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--wheel-dir", str(into), "."),
        ],
        check=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(time)},
    )
    (wheel,) = into.glob(f"cogwork-{__version__}-*.whl")
    return wheel


def commit_time() -> int:
    """Return the time of the last commit, which is the time of all files in a release."""
    command = ["git", "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unpacked_size(wheel: Path) -> int:
    with zipfile.ZipFile(wheel) as archive:
        return sum(each.file_size for each in archive.infolist())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--key", type=Path, required=True, help="private key, an Ed25519 PEM")
    parser.add_argument("--into", type=Path, default=Path("dist"))
    parser.add_argument("--cache", type=Path, default=Path("build/wheels"))
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    options.cache.mkdir(parents=True, exist_ok=True)
    key, time = load_private_key(options.key), commit_time()
    with tempfile.TemporaryDirectory() as directory:
        wheel = build_wheel(Path(directory), time)
        for product in Product:
            archive = build_release(product, wheel, options.cache, key, options.into, time)
            print(f"{archive} {archive.stat().st_size / 1e6:.1f} MB sha256 {sha256(archive)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
