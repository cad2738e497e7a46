"""A component without geometries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viam.proto.common import Geometry


class NoGeometry:
    async def get_geometries(self, **_: Any) -> Sequence[Geometry]:
        return []
