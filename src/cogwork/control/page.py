"""The plain page at `/`: which resources there are, how they do, and why."""

from __future__ import annotations

import html
from typing import Any
from urllib.parse import quote

from cogwork import __version__
from cogwork.core import duration

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0; }
p { margin: .3rem 0 1.5rem; opacity: .75; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 500; opacity: .6; }
td, th { padding: .45rem .8rem .45rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
td small { display: block; opacity: .65; }
.state { white-space: nowrap; }
.state::before { content: ""; display: inline-block; width: .6rem; height: .6rem;
  border-radius: 50%; margin-right: .5rem; background: #8a8a8a; }
.ready::before { background: #2da44e; }
.unhealthy::before { background: #d1242f; }
.configuring::before, .unconfigured::before { background: #d4a017; }
.eyes { display: flex; flex-wrap: wrap; gap: 1rem; margin-bottom: 1.5rem; }
figure { margin: 0; flex: 1 1 18rem; max-width: 30rem; }
figure img { width: 100%; border-radius: .4rem; background: #8882; }
figcaption { opacity: .65; font-size: .85rem; }
"""
_CAMERA = "rdk:component:camera/"
_MOST_PICTURES = 8
_LIVELY = """<script>
for (const eye of document.querySelectorAll("figure img")) {
  const source = eye.src;
  eye.onload = () => setTimeout(() => { eye.src = source + "?" + Date.now(); }, 200);
}
</script>"""
"""Each picture asks for the next when it is there: a slow line gets fewer of them."""


def page(view: dict[str, Any], now: float) -> str:
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        "<meta http-equiv=refresh content=5>"
        f"<title>Cogwork</title><style>{_STYLE}</style><h1>Cogwork {__version__}</h1>"
        f"<p>{_summary(view)}</p>{_pictures(view['resources'])}"
        f"{_table([*view['resources'], *map(_as_resource, view.get('modules', ()))], now)}</html>"
    )


def _summary(view: dict[str, Any]) -> str:
    resources = view["resources"]
    ready = sum(resource["state"] == "ready" for resource in resources)
    words = [view["state"], f"{ready} of {len(resources)} resources ready"]
    if view["revision"]:
        words.append(f"configuration {view['revision']}")
    return html.escape(" · ".join(words))


def _pictures(resources: list[dict[str, Any]]) -> str:
    eyes = [
        resource["name"].removeprefix(_CAMERA)
        for resource in resources
        if resource["name"].startswith(_CAMERA) and resource["state"] == "ready"
    ]
    if not eyes:
        return ""
    figures = "".join(
        f"<figure><img src='/camera/{quote(name)}' alt='what camera {html.escape(name)} sees'>"
        f"<figcaption>{html.escape(name)}</figcaption></figure>"
        for name in eyes[:_MOST_PICTURES]
    )
    return f"<div class=eyes>{figures}</div>{_LIVELY}"


def _table(resources: list[dict[str, Any]], now: float) -> str:
    if not resources:
        return "No resource is configured yet: add one to the configuration file and save it."
    # Those that need somebody come first.
    ordered = sorted(resources, key=lambda resource: resource["state"] == "ready")
    rows = "".join(_row(resource, now) for resource in ordered)
    return f"<table><tr><th>state<th>resource<th>why<th>since</tr>{rows}</table>"


def _as_resource(module: dict[str, Any]) -> dict[str, Any]:
    process = f"process {module['pid']}" if module["pid"] else ""
    return {**module, "name": f"module/{module['name']}", "model": process}


def _row(resource: dict[str, Any], now: float) -> str:
    api, _, name = resource["name"].partition("/")
    state = resource["state"]
    kind = html.escape(f"{api} {resource['model']}")
    since = duration.render(max(0, round(now - resource["since"])))
    return (
        f"<tr><td class='state {state}'>{state}"
        f"<td><b>{html.escape(name)}</b><small>{kind}</small>"
        f"<td>{html.escape(resource['reason'] or '')}<td>{since}</tr>"
    )
