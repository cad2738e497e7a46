"""A machine's resources as an SVG picture that needs nothing else: no Graphviz, script or font."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from cogwork.cli.drawing import COLOURS, MISSING, NOTHING, Drawn, by_name, dependencies
from cogwork.cli.layout import Curve, Layout, Point, arrange
from cogwork.config.diagnose import printable

_MARGIN = 24.0
_HEADER = 56.0
_NARROWEST, _WIDEST = 104.0, 248.0
_PADDING, _EDGE = 16.0, 10.0
"""What is left free beside a text, on its left and on its right."""
_NAME, _SMALL = 7.6, 5.5
"""How wide a letter of a name and of what is under it is on average; a box cuts off the rest."""
_ARROW = 7.0

_STYLE = """
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


def as_svg(nodes: Sequence[Drawn]) -> str:
    """Dependents on the left, what they depend on to their right; legible by day and by night."""
    known = by_name(nodes)
    width = _box_width(known.values())
    heights = {name: _box_height(node) for name, node in known.items()}
    dependents: dict[str, list[Drawn]] = {name: [] for name in known}
    for node, needed in dependencies(known):
        dependents[needed.name].append(node)
    layout = arrange(
        heights, width, ((node.name, name) for name in known for node in dependents[name])
    )
    # Lines to what is in trouble come last, above the others.
    lines = sorted(known.values(), key=_in_trouble)
    return _page(
        known.values(),
        layout,
        [
            *(_lines(node, dependents[node.name], layout, width) for node in lines),
            *(_box(node, layout.corners[name], width) for name, node in known.items()),
        ],
    )


def _page(nodes: Iterable[Drawn], layout: Layout, drawn: Iterable[str]) -> str:
    """The ground, a line that sums up and explains the colours, and what is drawn."""
    counts = Counter(node.look for node in nodes)
    resources = counts.total() - counts[MISSING]
    title = f"{resources} resource{'' if resources == 1 else 's'}" if counts else NOTHING
    legend = [(look, f"{counts[look]} {look}") for look in COLOURS if counts[look]]
    said = "   ".join((title, *(f"● {count}" for _, count in legend)))
    width = max(layout.width, len(said) * _NAME) + 2 * _MARGIN
    height = layout.height + _HEADER + _MARGIN
    dots = "".join(
        f'<tspan dx="14" class="dot {look}">●</tspan><tspan dx="5">{count}</tspan>'
        for look, count in legend
    )
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="cogwork" role="img" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<title>{', '.join((title, *(count for _, count in legend)))}</title>",
            f"<style>{_style()}</style>",
            '<rect class="ground" width="100%" height="100%"/>',
            f'<text class="about" x="{_MARGIN:.0f}" y="32">'
            f'<tspan class="name">{title}</tspan>{dots}</text>',
            f'<g transform="translate({_MARGIN:.0f} {_HEADER:.0f})">',
            *drawn,
            "</g>",
            "</svg>",
        )
    )


def _style() -> str:
    light = "".join(
        f".cogwork .{look}{{color:{colour}}}\n" for look, (colour, _) in COLOURS.items()
    )
    dark = "".join(f".cogwork .{look}{{color:{colour}}}\n" for look, (_, colour) in COLOURS.items())
    return f"{_STYLE}{light}@media (prefers-color-scheme:dark){{{_DARK_STYLE}{dark}}}\n"


def _in_trouble(node: Drawn) -> bool:
    return node.look in ("unhealthy", MISSING)


def _classes(kind: str, node: Drawn) -> str:
    return f"{kind} {node.look}{' trouble' if _in_trouble(node) else ''}"


def _lines(node: Drawn, dependents: Sequence[Drawn], layout: Layout, width: float) -> str:
    """All that lead to one box."""
    if not dependents:
        return ""
    curves = layout.wires.get(node.name, ())
    strokes = [_stroke(curve) for curve in curves]
    heads = dict.fromkeys(_head(curve) for curve in curves if curve.on is None)
    if node in dependents:
        loop, head = _loop(layout.corners[node.name], width)
        strokes.append(loop)
        heads[head] = None
    names = ", ".join(dependent.short for dependent in dependents)
    depend = "depends" if len(dependents) == 1 else "depend"
    return (
        f'<g class="{_classes("lines", node)}">'
        f"<title>{html.escape(f'{names} {depend} on {node.short}')}</title>"
        f'<path class="line" d="{"".join(strokes)}"/><path class="head" d="{"".join(heads)}"/></g>'
    )


def _stroke(curve: Curve) -> str:
    (x1, y1), (x2, y2), on = curve
    middle = (x1 + x2) / 2
    bend = f"C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    return f"M{x1:.1f} {y1:.1f}{bend}" + ("" if on is None else f"H{on:.1f}")


def _head(curve: Curve) -> str:
    x, y = curve.end
    back = math.copysign(_ARROW, curve.start.x - x)
    return f"M{x:.1f} {y:.1f}l{back:.1f} {-_ARROW / 2:.1f}v{_ARROW:.1f}z"


def _loop(corner: Point, width: float) -> tuple[str, str]:
    """The line of a box that depends on itself: out of its roof and in again."""
    x, y = corner.x + width - 36, corner.y
    return (
        f"M{x:.1f} {y:.1f}c0 -16 18 -16 18 {-_ARROW / 2:.1f}",
        f"M{x + 18:.1f} {y:.1f}l{-_ARROW / 2:.1f} {-_ARROW:.1f}h{_ARROW:.1f}z",
    )


def _box(node: Drawn, corner: Point, width: float) -> str:
    height = _box_height(node)
    words = (printable(node.name), printable(node.model), node.condition)
    everything = "\n".join(word for word in words if word)
    return "".join(
        (
            # An svg of its own, so that nothing in it is drawn beyond its edge.
            f'<svg class="{_classes("box", node)}" x="{corner.x:.1f}" y="{corner.y:.1f}" '
            f'width="{width:.0f}" height="{height:.0f}">',
            f"<title>{html.escape(everything)}</title>",
            f'<rect class="body" x=".5" y=".5" rx="6" '
            f'width="{width - 1:.0f}" height="{height - 1:.0f}"/>',
            f'<path class="bar" d="M6 0A6 6 0 0 0 0 6V{height - 6:.0f}A6 6 0 0 0 6 {height:.0f}"/>',
            *_texts(node, width - _PADDING - _EDGE),
            "</svg>",
        )
    )


def _texts(node: Drawn, room: float) -> Iterator[str]:
    texts = (
        ("name", 20, _without_middle(node.short, int(room / _NAME))),
        ("about", 36, _without_end(node.about, int(room / _SMALL))),
        ("why", 52, _without_end(_remark(node), int(room / _SMALL))),
    )
    for kind, y, text in texts:
        if text:
            yield f'<text class="{kind}" x="{_PADDING:.0f}" y="{y}">{html.escape(text)}</text>'


def _remark(node: Drawn) -> str:
    """What a box says of a resource that is not simply ready."""
    if node.look == "ready":
        return ""
    return printable(node.reason or node.state)


def _box_width(nodes: Iterable[Drawn]) -> float:
    """One for all, so that layers line up: the longest text decides, within limits."""
    texts = [
        max(len(node.short) * _NAME, len(node.about) * _SMALL, len(_remark(node)) * _SMALL)
        for node in nodes
    ]
    return float(round(min(_WIDEST, max((_NARROWEST, *texts)) + _PADDING + _EDGE)))


def _box_height(node: Drawn) -> float:
    return 62.0 if _remark(node) else 46.0


def _without_end(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _without_middle(name: str, letters: int) -> str:
    """What tells long names apart is at their beginnings and ends."""
    if len(name) <= letters:
        return name
    end = (letters - 1) // 2
    return f"{name[: letters - 1 - end]}…{name[-end:]}"
