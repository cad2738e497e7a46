"""Lock the dependencies of releases for this platform: `python -m scripts.release.lock`.

Writes `packaging/locks/<product>-<platform>-py<version>.txt` with the hash of every wheel. A
release contains these and nothing else, until someone runs this again and reviews the difference.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from cogwork.agent.slots.interpreter import PYTHON
from cogwork.core.versions.platform_name import PLATFORM
from cogwork.core.versions.product import Product

LOCKS: Final = Path("packaging/locks")
EXTRAS: Final = {
    Product.SERVER: "camera,onnx,tflite,webrtc,gpio,serial",
    Product.AGENT: "",
}
PIP: Final = "pip"
"""The name of pip's package, which is part of every release because pip installs the other
wheels."""


def lock_path(product: Product) -> Path:
    return LOCKS / f"{product}-{PLATFORM.replace('/', '-')}-py{PYTHON}.txt"


def resolve(product: Product) -> list[str]:
    """Return a line of requirements for each wheel that the product needs, except our own."""
    extras = f"[{EXTRAS[product]}]" if EXTRAS[product] else ""
    report = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"),
            *("--only-binary", ":all:", "--report", "-", f".{extras}", PIP),
        ],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    lines = []
    for each in json.loads(report)["install"]:
        name = each["metadata"]["name"].lower().replace("_", "-")
        if name != "cogwork":
            digest = each["download_info"]["archive_info"]["hashes"]["sha256"]
            lines.append(f"{name}=={each['metadata']['version']} --hash=sha256:{digest}")
    return sorted(lines)


def main() -> int:
    LOCKS.mkdir(exist_ok=True)
    for product in Product:
        path = lock_path(product)
        lines = resolve(product)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{path}: {len(lines)} wheels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
