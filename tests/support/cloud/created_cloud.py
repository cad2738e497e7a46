"""A cloud as `cogwork-cloud init` creates it, in a few milliseconds from the second one on."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from cogwork.cloud.commands.create_cloud import NewCloud, create_cloud
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.core.clock import Clock, SystemClock
from cogwork.core.files import atomic


class _Template(NamedTuple):
    new: NewCloud
    files: dict[str, bytes]


_templates: dict[tuple[str, str, float | None], _Template] = {}


def copy_new_cloud(directory: Path, domain: str, organization: str, clock: Clock) -> NewCloud:
    """Create a cloud in a directory.

    Making its RSA key would take most of the time of many tests, so those clouds of a process that
    are created at the same time have the same keys.
    """
    created = None if isinstance(clock, SystemClock) else clock.time()
    key = domain, organization, created
    if key not in _templates:
        _templates[key] = _make_template(domain, organization, clock)
    template = _templates[key]
    atomic.make_directory(directory)
    for name, content in template.files.items():
        file = directory / name
        file.touch(0o600)
        file.write_bytes(content)
    return template.new


def _make_template(domain: str, organization: str, clock: Clock) -> _Template:
    with tempfile.TemporaryDirectory() as there:
        new = create_cloud(CloudDirectory(Path(there)), domain, organization, clock)
        files = {each.name: each.read_bytes() for each in Path(there).iterdir()}
    return _Template(new, files)
