"""The oldest versions that may be installed on a machine that has run this release.

Raise a minimum when a release fixes something that must not return, such as a vulnerability. The
manifest of a release contains the minimum of its product. The agent also applies the minimums that
it was built with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogwork.core.versions.product import Product

MINIMUM_VERSIONS: Final[Mapping[Product, str]] = {
    # Agents before 0.2.0 ignore minimums, so each of them would accept any old server.
    Product.AGENT: "0.2.0",
}
