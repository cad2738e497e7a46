"""The manifest in the archive of a release.

Only machines verify the signature, because they must not trust the cloud. The cloud only refuses an
archive without one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import IO, Any, Final

from cogwork.archives.tar import BadArchive, Member, MemberKind, TarReader
from cogwork.core.errors import InvalidRequest
from cogwork.core.versions.product import Product

MAX_SIZE: Final = 2 << 30
"""Maximum size of an archive in bytes."""
_MANIFEST: Final = "manifest.json"
_MAX_MANIFEST: Final = 1 << 20
_SIGNATURE: Final = "manifest.sig"
_SIGNATURE_SIZE: Final = 64
_ADVICE: Final = "build releases with: make release RELEASE_KEY=KEY.pem"
_VERSION: Final = re.compile(r"(?=.{3,64}$)\d+(\.[0-9A-Za-z+_-]+)+", re.ASCII)
"""A version begins with a digit, and has a dot to differ from the name of a channel."""
_PLATFORM: Final = re.compile(r"[a-z0-9]{1,20}/[a-z0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class ArchiveManifest:
    product: Product
    version: str
    platform: str
    """Such as `linux/amd64`."""
    minimum_version: str = ""
    """The oldest version that machines accept after this release; empty to accept all."""

    @property
    def filename(self) -> str:
        return f"cogwork-{self.product}-{self.version}-{self.platform.replace('/', '-')}.tar"


def is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def read_manifest(file: IO[bytes]) -> ArchiveManifest:
    """Return the manifest of an archive, read from its beginning.

    Raise InvalidRequest if it is not valid, or if the archive is not signed.
    """
    try:
        members = iter(reader := TarReader(file.read))
        manifest = _parse_manifest(_read_json(reader, next(members, None)))
        signature = next(members, None)
    except BadArchive as error:
        raise InvalidRequest(f"this is not a release: {error}; {_ADVICE}") from None
    if signature is None or (signature.path, signature.size) != (_SIGNATURE, _SIGNATURE_SIZE):
        raise InvalidRequest(
            "the release is not signed, so no machine would install it: its second file must be "
            f"{_SIGNATURE}, the Ed25519 signature of its {_MANIFEST}; {_ADVICE}"
        )
    return manifest


def _read_json(reader: TarReader, member: Member | None) -> Any:
    if member is None or member.path != _MANIFEST or member.kind is not MemberKind.FILE:
        raise BadArchive(f"the archive does not begin with {_MANIFEST}")
    if member.size > _MAX_MANIFEST:
        raise BadArchive(f"the {_MANIFEST} is larger than {_MAX_MANIFEST >> 20} MiB")
    try:
        return json.loads(b"".join(reader.content()))
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the {_MANIFEST} is not JSON: {error}") from None


def _parse_manifest(found: Any) -> ArchiveManifest:
    values = found if isinstance(found, dict) else {}
    product, version, platform = (values.get(key) for key in ("product", "version", "platform"))
    if product not in tuple(Product):
        raise InvalidRequest(
            f"the product in the {_MANIFEST} is {_show(product)}; it must be "
            + " or ".join(f'"{each}"' for each in Product)
        )
    if not isinstance(version, str) or not is_version(version):
        raise InvalidRequest(
            f"the version in the {_MANIFEST} is {_show(version)}; it must be one such as 1.4.0"
        )
    if not isinstance(platform, str) or not _PLATFORM.fullmatch(platform):
        raise InvalidRequest(
            f"the platform in the {_MANIFEST} is {_show(platform)}; it must be one such as "
            "linux/amd64"
        )
    minimum = values.get("minimum_version", "")
    if minimum != "" and not (isinstance(minimum, str) and is_version(minimum)):
        raise InvalidRequest(
            f"the minimum_version in the {_MANIFEST} is {_show(minimum)}; it must be a version "
            "such as 1.4.0"
        )
    return ArchiveManifest(Product(product), version, platform, minimum)


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:100]
