"""The bill of materials of a release, in CycloneDX. Pure, apart from reading the wheels."""

from __future__ import annotations

import email.parser
import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cogwork.core.versions.product import Product


def make_sbom(product: Product, version: str, wheels: Sequence[Path]) -> bytes:
    """Return the bill of materials. The same wheels give the same bytes."""
    name = f"cogwork-{product}"
    value = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": name,
                "name": name,
                "version": version,
            }
        },
        "components": [_describe(wheel) for wheel in sorted(wheels)],
    }
    return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"


def _describe(wheel: Path) -> dict[str, Any]:
    metadata = _read_metadata(wheel)
    name, version = metadata["Name"], metadata["Version"]
    url = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    component = {
        "type": "library",
        "bom-ref": url,
        "name": name,
        "version": version,
        "purl": url,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}],
    }
    if expression := metadata.get("License-Expression"):
        component["licenses"] = [{"expression": expression}]
    return component


def _read_metadata(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    return dict(email.parser.HeaderParser().parsestr(text).items())
