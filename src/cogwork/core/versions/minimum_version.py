"""The oldest versions that a machine may go back to once it has had a release of this source.

Raise one when a release fixes something that must not come back, such as a vulnerability. The
manifest of a release has the one of its product, and the agent also applies those that it was built
with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogwork.core.versions.product import Product

MINIMUM_VERSIONS: Final[Mapping[Product, str]] = {
    # Agents before 0.2.0 know no minimum: through one of them, every old server would be accepted.
    Product.AGENT: "0.2.0",
}
