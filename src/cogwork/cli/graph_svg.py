"""A machine's resource graph as self-contained SVG: no Graphviz, scripts or fonts."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from cogwork.cli.graph_layout import Curve, GraphLayout, Point, arrange
from cogwork.cli.graph_text import (
    COLORS,
    MISSING,
    NO_RESOURCES,
    DiagramNode,
    index_nodes,
    iter_edges,
)
from cogwork.config.diagnostics import replace_unprintable

_MARGIN = 24.0
_HEADER = 56.0
_MIN_BOX_WIDTH, _MAX_BOX_WIDTH = 104.0, 248.0
_PADDING_LEFT, _PADDING_RIGHT = 16.0, 10.0
"""Padding to the left and right of a text."""
_NAME_CHAR_WIDTH, _SMALL_CHAR_WIDTH = 7.6, 5.5
"""Average width of a character of the name and of the smaller text; boxes clip the overflow."""
_ARROW_SIZE = 7.0

_LIGHT_STYLE = """
.cogwork{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}
.cogwork .ground{fill:#ffffff}
.cogwork .body{fill:#f6f8fa;stroke:#d0d7de}
.cogwork .name{fill:#1f2328;font-size:13px;font-weight:600}
.cogwork .about{fill:#59636e;font-size:11px}
.cogwork .line{fill:none;stroke:#a5afba;stroke-width:1.5}
.cogwork .head{fill:#a5afba}
.cogwork .bar,.cogwork .why,.cogwork .dot{fill:currentColor}
.cogwork .why{font-size:11px}
.cogwork .trouble .body,.cogwork .trouble .line{stroke:currentColor}
.cogwork .trouble .head{fill:currentColor}
.cogwork .missing .body{stroke-dasharray:4 3}
.cogwork .lines:hover .line{stroke-width:3}
"""
_DARK_STYLE = """
.cogwork .ground{fill:#0d1117}
.cogwork .body{fill:#161b22;stroke:#3d444d}
.cogwork .name{fill:#f0f6fc}
.cogwork .about{fill:#9198a1}
.cogwork .line{stroke:#656c76}
.cogwork .head{fill:#656c76}
"""


def as_svg(nodes: Sequence[DiagramNode]) -> str:
    """Draw dependents to the left of their dependencies, with a light and a dark color scheme."""
    known = index_nodes(nodes)
    width = _box_width(known.values())
    heights = {name: _box_height(node) for name, node in known.items()}
    dependents: dict[str, list[DiagramNode]] = {name: [] for name in known}
    for node, needed in iter_edges(known):
        dependents[needed.name].append(node)
    layout = arrange(
        heights, width, ((node.name, name) for name in known for node in dependents[name])
    )
    # Draw edges to unhealthy resources last, on top of the others.
    lines = sorted(known.values(), key=_is_unhealthy)
    return _render_page(
        known.values(),
        layout,
        [
            *(_render_edges(node, dependents[node.name], layout, width) for node in lines),
            *(_render_box(node, layout.corners[name], width) for name, node in known.items()),
        ],
    )


def _render_page(nodes: Iterable[DiagramNode], layout: GraphLayout, drawn: Iterable[str]) -> str:
    """Render the background, the summary with the color legend, and the graph."""
    counts = Counter(node.display_state for node in nodes)
    resources = counts.total() - counts[MISSING]
    title = f"{resources} resource{'' if resources == 1 else 's'}" if counts else NO_RESOURCES
    legend = [(state, f"{counts[state]} {state}") for state in COLORS if counts[state]]
    header = "   ".join((title, *(f"● {count}" for _, count in legend)))
    width = max(layout.width, len(header) * _NAME_CHAR_WIDTH) + 2 * _MARGIN
    height = layout.height + _HEADER + _MARGIN
    dots = "".join(
        f'<tspan dx="14" class="dot {state}">●</tspan><tspan dx="5">{count}</tspan>'
        for state, count in legend
    )
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="cogwork" role="img" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<title>{', '.join((title, *(count for _, count in legend)))}</title>",
            f"<style>{_render_style()}</style>",
            '<rect class="ground" width="100%" height="100%"/>',
            f'<text class="about" x="{_MARGIN:.0f}" y="32">'
            f'<tspan class="name">{title}</tspan>{dots}</text>',
            f'<g transform="translate({_MARGIN:.0f} {_HEADER:.0f})">',
            *drawn,
            "</g>",
            "</svg>",
        )
    )


def _render_style() -> str:
    light = "".join(f".cogwork .{state}{{color:{color}}}\n" for state, (color, _) in COLORS.items())
    dark = "".join(f".cogwork .{state}{{color:{color}}}\n" for state, (_, color) in COLORS.items())
    return f"{_LIGHT_STYLE}{light}@media (prefers-color-scheme:dark){{{_DARK_STYLE}{dark}}}\n"


def _is_unhealthy(node: DiagramNode) -> bool:
    return node.display_state in ("unhealthy", MISSING)


def _css_classes(kind: str, node: DiagramNode) -> str:
    return f"{kind} {node.display_state}{' trouble' if _is_unhealthy(node) else ''}"


def _render_edges(
    node: DiagramNode, dependents: Sequence[DiagramNode], layout: GraphLayout, width: float
) -> str:
    """Render all edges that lead to one box."""
    if not dependents:
        return ""
    curves = layout.curves.get(node.name, ())
    strokes = [_edge_path(curve) for curve in curves]
    heads = dict.fromkeys(_arrowhead_path(curve) for curve in curves if curve.extend_to is None)
    if node in dependents:
        loop, head = _self_loop_paths(layout.corners[node.name], width)
        strokes.append(loop)
        heads[head] = None
    names = ", ".join(dependent.short_name for dependent in dependents)
    depend = "depends" if len(dependents) == 1 else "depend"
    return (
        f'<g class="{_css_classes("lines", node)}">'
        f"<title>{html.escape(f'{names} {depend} on {node.short_name}')}</title>"
        f'<path class="line" d="{"".join(strokes)}"/><path class="head" d="{"".join(heads)}"/></g>'
    )


def _edge_path(curve: Curve) -> str:
    (x1, y1), (x2, y2), on = curve
    middle = (x1 + x2) / 2
    bend = f"C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    return f"M{x1:.1f} {y1:.1f}{bend}" + ("" if on is None else f"H{on:.1f}")


def _arrowhead_path(curve: Curve) -> str:
    x, y = curve.end
    back = math.copysign(_ARROW_SIZE, curve.start.x - x)
    return f"M{x:.1f} {y:.1f}l{back:.1f} {-_ARROW_SIZE / 2:.1f}v{_ARROW_SIZE:.1f}z"


def _self_loop_paths(corner: Point, width: float) -> tuple[str, str]:
    """Return the line and arrowhead of a self-loop above a box."""
    x, y = corner.x + width - 36, corner.y
    return (
        f"M{x:.1f} {y:.1f}c0 -16 18 -16 18 {-_ARROW_SIZE / 2:.1f}",
        f"M{x + 18:.1f} {y:.1f}l{-_ARROW_SIZE / 2:.1f} {-_ARROW_SIZE:.1f}h{_ARROW_SIZE:.1f}z",
    )


def _render_box(node: DiagramNode, corner: Point, width: float) -> str:
    height = _box_height(node)
    words = (replace_unprintable(node.name), replace_unprintable(node.model), node.state_text)
    everything = "\n".join(word for word in words if word)
    return "".join(
        (
            # A nested svg clips its content.
            f'<svg class="{_css_classes("box", node)}" x="{corner.x:.1f}" y="{corner.y:.1f}" '
            f'width="{width:.0f}" height="{height:.0f}">',
            f"<title>{html.escape(everything)}</title>",
            f'<rect class="body" x=".5" y=".5" rx="6" '
            f'width="{width - 1:.0f}" height="{height - 1:.0f}"/>',
            f'<path class="bar" d="M6 0A6 6 0 0 0 0 6V{height - 6:.0f}A6 6 0 0 0 6 {height:.0f}"/>',
            *_render_texts(node, width - _PADDING_LEFT - _PADDING_RIGHT),
            "</svg>",
        )
    )


def _render_texts(node: DiagramNode, room: float) -> Iterator[str]:
    texts = (
        ("name", 20, _truncate_middle(node.short_name, int(room / _NAME_CHAR_WIDTH))),
        ("about", 36, _truncate(node.type_label, int(room / _SMALL_CHAR_WIDTH))),
        ("why", 52, _truncate(_status_note(node), int(room / _SMALL_CHAR_WIDTH))),
    )
    for kind, y, text in texts:
        if text:
            yield f'<text class="{kind}" x="{_PADDING_LEFT:.0f}" y="{y}">{html.escape(text)}</text>'


def _status_note(node: DiagramNode) -> str:
    """Return the reason or state of a resource that is not ready."""
    if node.display_state == "ready":
        return ""
    return replace_unprintable(node.reason or node.state)


def _box_width(nodes: Iterable[DiagramNode]) -> float:
    """Return one width for all boxes, so that layers line up: that of the longest text, clamped."""
    texts = [
        max(
            len(node.short_name) * _NAME_CHAR_WIDTH,
            len(node.type_label) * _SMALL_CHAR_WIDTH,
            len(_status_note(node)) * _SMALL_CHAR_WIDTH,
        )
        for node in nodes
    ]
    return float(
        round(min(_MAX_BOX_WIDTH, max((_MIN_BOX_WIDTH, *texts)) + _PADDING_LEFT + _PADDING_RIGHT))
    )


def _box_height(node: DiagramNode) -> float:
    return 62.0 if _status_note(node) else 46.0


def _truncate(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _truncate_middle(name: str, letters: int) -> str:
    """Cut a long name in the middle, because names differ mostly at their start and end."""
    if len(name) <= letters:
        return name
    end = (letters - 1) // 2
    return f"{name[: letters - 1 - end]}…{name[-end:]}"
