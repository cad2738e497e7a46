"""Creates the script that installs a cloud's releases on a machine without Cogwork."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from cogwork.cloud.updates import machine_installer
from cogwork.cloud.updates.releases import Release
from cogwork.core.errors import CogworkError
from cogwork.core.versions.product import Product
from cogwork.core.versions.version_order import order_of

_SCRIPT: Final = """\
#!/usr/bin/python3 -I
import sys

if not sys.flags.isolated:  # somebody may have put modules beside it, which would run as root
    sys.exit("cogwork: not installed: run it with python3 -I")

{source}

RELEASES = json.loads({releases!r})
KEY = {key!r}

if __name__ == "__main__":
    sys.exit(main(RELEASES, KEY, sys.argv[1:]))
"""

_FUTURE: Final = "from __future__ import annotations\n"
"""An import that must stay the first statement of the script."""

Chosen = dict[str, dict[Product, Release]]
"""The chosen release of each product, by platform."""


class NothingToInstall(CogworkError):
    """No platform has a release of both products."""

    status = "FAILED_PRECONDITION"


def choose_releases(releases: Iterable[Release]) -> Chosen:
    """Return the newest releases for platforms that have both products. Raise NothingToInstall."""
    found: Chosen = {}
    for each in sorted(releases, key=lambda release: order_of(release.version)):
        found.setdefault(each.platform, {})[each.product] = each
    complete = {name: chosen for name, chosen in sorted(found.items()) if len(chosen) == 2}
    if not complete:
        raise NothingToInstall(
            "no platform has a release of both the server and the agent; add them with: "
            "cogwork-cloud release add FILE"
        )
    return complete


def make_script(chosen: Chosen, url: str, key: str) -> str:
    """Return the script. `url` is the cloud's address, `key` the publisher's public key."""
    releases = {
        platform: {product: _describe(each, url) for product, each in products.items()}
        for platform, products in chosen.items()
    }
    source = Path(machine_installer.__file__).read_text(encoding="utf-8")
    source = source.replace(_FUTURE, "").strip()
    return _SCRIPT.format(source=source, releases=json.dumps(releases, indent=1), key=key)


def _describe(release: Release, url: str) -> dict[str, Any]:
    return {
        "url": f"{url.rstrip('/')}{release.path}",
        "filename": release.filename,
        "sha256": release.digest,
        "size": release.size,
    }
