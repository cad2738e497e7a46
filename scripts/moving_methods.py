"""Renders web/src/machine/moving_methods.ts: the methods that move a resource."""

from __future__ import annotations

from cogwork.graph.public_apis import PUBLIC_APIS, SERVICE_BY_API
from cogwork.resource.services.api_methods import load_methods
from cogwork.robot.motion.moving_methods import is_motion_service_move, sets_in_motion

_HEAD = """\
/**
 * The methods that set something in motion, and so belong to the session of their client. The
 * machine has the same list, from the descriptors of the public API.
 *
 * This file is generated from the code: run `make docs`.
 */
export const MOVING_METHODS: ReadonlySet<string> = new Set([
"""


def render_moving_methods() -> str:
    return "".join((_HEAD, *(f"  '{path}',\n" for path in list_moving_methods()), "]);\n"))


def list_moving_methods() -> list[str]:
    return sorted(
        method.path
        for api, public in PUBLIC_APIS.items()
        if public.is_served and api in SERVICE_BY_API
        for method in load_methods(public, lambda *_: None)
        if is_motion_service_move(method) or sets_in_motion(method)
    )
