"""What takes up no room: asked for its geometries, it has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viam.proto.common import Geometry


class Shapeless:
    async def get_geometries(self, **_: Any) -> Sequence[Geometry]:
        return []
