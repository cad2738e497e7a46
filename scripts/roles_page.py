"""Renders docs/reference/roles.md: the role that each method of the public API requires."""

from __future__ import annotations

from collections import defaultdict

from cogwork.auth.roles import ROLE_BY_OTHER_METHOD, ROLE_BY_PATH, Role, required_role
from cogwork.graph.public_apis import PUBLIC_APIS, SERVICE_BY_API
from cogwork.resource.sdk import clean_import as sdk
from cogwork.resource.services.api_methods import load_methods

assert sdk.VERSION  # `sdk` must be imported before the SDK itself
from viam.gen.robot.v1 import robot_pb2  # noqa: E402


def _render_other_methods() -> str:
    return "; ".join(
        f"{role.name.lower()}: "
        + ", ".join(f"`{name}`" for name, each in ROLE_BY_OTHER_METHOD.items() if each is role)
        for role in (Role.VIEWER, Role.OPERATOR)
    )


_HEAD = "\n\n".join(
    (
        "# Roles",
        "A key of a machine has a role, which limits what its clients may call: see\n"
        "[Put it on a network](../guides/put-it-on-a-network.md). Each role includes the ones "
        "before it.",
        "An owner may call everything. So a method of the public API that the tables below do not "
        "list for another role\nrequires an owner: shells, file copies, tunnels and shutdown, and "
        "every method that this release does not know.",
        "Methods of APIs that modules define require an operator.",
        "A module or a remote may serve another version of the public API. Methods that only such "
        "a version has require\nan owner, too, because what they do is unknown, except: "
        f"{_render_other_methods()}.",
        "The HTTP pages, the logs and the "
        "pictures of\ncameras require a viewer; reading, checking and saving the configuration "
        "over HTTP requires an owner.",
        "This page is generated from the code.\n",
    )
)
_TITLES = {
    Role.VIEWER: "Viewer: moves nothing and changes nothing",
    Role.OPERATOR: "Operator: moves and changes what the machine has",
    Role.OWNER: "Owner: everything",
}


def render_roles_page() -> str:
    parts = [_HEAD]
    for role, title in _TITLES.items():
        parts.append(f"\n## {title}\n\n| API | methods |\n|---|---|\n")
        for api, methods in sorted(_methods_of(role).items()):
            parts.append(f"| {api} | {', '.join(f'`{name}`' for name in sorted(methods))} |\n")
    return "".join(parts)


def _methods_of(role: Role) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for api, path in _public_methods():
        if required_role(path, is_public=True) is role:
            found[api].append(path.rpartition("/")[2])
    return found


def _public_methods() -> list[tuple[str, str]]:
    """Return all methods with the name of their API."""
    methods = [
        (f"{api.kind} {api.subtype}", method.path)
        for api, public in PUBLIC_APIS.items()
        if public.is_served and api in SERVICE_BY_API
        for method in load_methods(public, lambda *_: None)
    ]
    service = robot_pb2.DESCRIPTOR.services_by_name["RobotService"]
    methods += [("machine", f"/{service.full_name}/{each.name}") for each in service.methods]
    assert set(ROLE_BY_PATH) <= {path for _, path in methods}
    return methods
