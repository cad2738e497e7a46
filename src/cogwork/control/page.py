"""The plain page at `/status`, for browsers without scripts: resources, states and reasons.

If the control page is missing, this page is also at `/`.
"""

from __future__ import annotations

import base64
import hashlib
import html
from typing import Any
from urllib.parse import quote

from cogwork import __version__
from cogwork.config.source.config_report import ConfigState, describe_report, format_reported
from cogwork.core import duration

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0; }
p { margin: .3rem 0 1.5rem; opacity: .75; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 500; opacity: .6; }
td, th { padding: .45rem .8rem .45rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
td small, .config small { display: block; opacity: .65; }
.config, .notice { opacity: 1; padding-left: .8rem; border-left: .25rem solid #d4a017; }
.config.refused, .config.faulty { border-color: #d1242f; }
.state { white-space: nowrap; }
.state::before { content: ""; display: inline-block; width: .6rem; height: .6rem;
  border-radius: 50%; margin-right: .5rem; background: #8a8a8a; }
.ready::before { background: #2da44e; }
.unhealthy::before { background: #d1242f; }
.configuring::before, .unconfigured::before { background: #d4a017; }
.cameras { display: flex; flex-wrap: wrap; gap: 1rem; margin-bottom: 1.5rem; }
figure { margin: 0; flex: 1 1 18rem; max-width: 30rem; }
figure img { width: 100%; border-radius: .4rem; background: #8882; }
figcaption { opacity: .65; font-size: .85rem; }
"""
_CAMERA_PREFIX = "rdk:component:camera/"
_MAX_IMAGES = 8
_SCRIPT = """
for (const image of document.querySelectorAll("figure img")) {
  const source = image.src;
  image.onload = () => setTimeout(() => { image.src = source + "?" + Date.now(); }, 200);
}
"""
"""Script that requests the next image after one is loaded, so a slow connection gets fewer
images."""


def _csp_hash(inline: str) -> str:
    digest = base64.b64encode(hashlib.sha256(inline.encode()).digest())
    return f"'sha256-{digest.decode()}'"


CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src {_csp_hash(_STYLE)}; script-src {_csp_hash(_SCRIPT)}; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Allows the page's own style, script and images, and blocks injected content."""


_GOOD_STATES = ("ready", "running", "finished")
"""States of resources, modules, processes and packages that need no attention."""
_PROGRESS_STATES = ("downloading", "unpacking")


def render_page(view: dict[str, Any], now: float, notice: str | None = None) -> str:
    rows = [
        *view["resources"],
        *(_program_as_resource(f"module/{each['name']}", each) for each in view.get("modules", ())),
        *(
            _program_as_resource(f"process/{each['id']}", each)
            for each in view.get("processes", ())
        ),
        *(_package_as_resource(each) for each in view.get("packages", ())),
    ]
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        "<meta http-equiv=refresh content=5>"
        f"<title>Cogwork</title><style>{_STYLE}</style><h1>Cogwork {__version__}</h1>"
        f"<p>{_render_summary(view)}</p>{_render_notice(notice)}"
        f"{_render_config(view.get('configuration'), now)}"
        f"{_render_images(view['resources'])}{_render_table(rows, view, now)}</html>"
    )


def _render_summary(view: dict[str, Any]) -> str:
    resources = view["resources"]
    ready = sum(resource["state"] == "ready" for resource in resources)
    parts = [view["state"], f"{ready} of {len(resources)} resources ready"]
    if view["revision"]:
        parts.append(f"configuration {view['revision']}")
    return html.escape(" · ".join(parts))


def _render_notice(notice: str | None) -> str:
    return f"<p class=notice>{html.escape(notice)}</p>" if notice is not None else ""


def _render_config(report: dict[str, Any] | None, now: float) -> str:
    """Render a summary of the problems in the configuration file, and the first of its
    diagnostics."""
    words = describe_report(report, now) if report is not None else None
    if report is None or words is None:
        return ""
    first = "".join(
        f"<small>{html.escape(format_reported(each))}</small>" for each in report["diagnostics"][:1]
    )
    return f"<p class='config {html.escape(report['state'])}'>{html.escape(words)}{first}</p>"


def _render_images(resources: list[dict[str, Any]]) -> str:
    cameras = [
        resource["name"].removeprefix(_CAMERA_PREFIX)
        for resource in resources
        if resource["name"].startswith(_CAMERA_PREFIX) and resource["state"] == "ready"
    ]
    if not cameras:
        return ""
    figures = "".join(
        f"<figure><img src='/camera/{quote(name)}' alt='image of camera {html.escape(name)}'>"
        f"<figcaption>{html.escape(name)}</figcaption></figure>"
        for name in cameras[:_MAX_IMAGES]
    )
    return f"<div class=cameras>{figures}</div><script>{_SCRIPT}</script>"


def _render_table(resources: list[dict[str, Any]], view: dict[str, Any], now: float) -> str:
    if not resources:
        report = view.get("configuration")
        if report is not None and report["state"] == ConfigState.REFUSED:
            return "No resources are running: fix the configuration file and save it."
        return "No resources are configured yet: add one to the configuration file and save it."
    # List resources that need attention first.
    ordered = sorted(resources, key=lambda resource: resource["state"] in _GOOD_STATES)
    rows = "".join(_render_row(resource, now) for resource in ordered)
    return f"<table><tr><th>state<th>resource<th>why<th>since</tr>{rows}</table>"


def _program_as_resource(name: str, program: dict[str, Any]) -> dict[str, Any]:
    process = f"process {program['pid']}" if program["pid"] else ""
    return {**program, "name": name, "model": process}


def _package_as_resource(package: dict[str, Any]) -> dict[str, Any]:
    done, total = package["done"], package["total"]
    is_going_on = total and package["state"] in _PROGRESS_STATES
    return {
        **package,
        "name": f"package/{package['name']}",
        "model": package["version"],
        "reason": f"{100 * done // total} %" if is_going_on else package["reason"],
    }


def _render_row(resource: dict[str, Any], now: float) -> str:
    api, _, name = resource["name"].partition("/")
    state = html.escape(resource["state"])
    kind = html.escape(f"{api} {resource['model']}")
    since = duration.render(max(0, round(now - resource["since"])))
    ignored = "".join(
        f"<small>ignored: {html.escape(each)}</small>"
        for each in resource.get("ignored_settings", ())
    )
    return (
        f"<tr><td class='state {state}'>{state}"
        f"<td><b>{html.escape(name)}</b><small>{kind}</small>"
        f"<td>{html.escape(resource['reason'] or '')}{ignored}<td>{since}</tr>"
    )
