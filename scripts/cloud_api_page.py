"""Render the reference page of the fleet API: every method, served or refused."""

from __future__ import annotations

from scripts.api_page import load_service

from cogwork.cloud.fleet.app_service import APP_SERVICE, served_methods
from cogwork.cloud.fleet.unserved_methods import UNSERVED_METHODS

_INTRO = """\
# Fleet API

What `cogwork-cloud` serves of the public fleet API, which the SDK's `AppClient` uses. A method that
is not served returns `UNIMPLEMENTED` with the reason. Machines use `viam.app.v1.RobotService`, and
their agents `viam.app.agent.v1.AgentDeviceService`; packages are in
`viam.app.packages.v1.PackageService`. These are served as a whole.

"""


def render_cloud_api_page() -> str:
    served = set(served_methods())
    methods = [method.name for method in load_service(APP_SERVICE).methods]
    rows = "\n".join(_render_row(name, name in served) for name in methods)
    count = f"{len(served)} of {len(methods)} methods are served."
    return f"{_INTRO}## `{APP_SERVICE}`\n\n{count}\n\n| method | |\n|---|---|\n{rows}\n"


def _render_row(name: str, is_served: bool) -> str:
    return f"| {name} | {'served' if is_served else f'refused: {UNSERVED_METHODS[name]}'} |"
