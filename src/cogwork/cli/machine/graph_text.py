"""A machine's resource graph: as a tree for terminals, and as DOT for Graphviz."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cogwork.config.check.diagnostic_format import Paint, paint_plain
from cogwork.config.check.diagnostics import replace_unprintable
from cogwork.graph.name import BUILTIN_FAMILY, BUILTIN_NAMESPACE

NO_RESOURCES = "this machine has no resources"
MISSING = "missing"
COLORS = {
    "ready": "#1a7f37",
    "unhealthy": "#cf222e",
    "configuring": "#bf8700",
    "unconfigured": "#6e7781",
    "removing": "#8250df",
    MISSING: "#cf222e",
}


@dataclass(frozen=True, slots=True)
class DiagramNode:
    name: str
    """Full name, such as `rdk:component:camera/belt`."""
    model: str
    state: str
    """The state: `ready`, `unhealthy`, `configuring`, `unconfigured` or `removing`."""
    reason: str | None = None
    depends_on: tuple[str, ...] = ()
    """The full names of the dependencies."""

    @property
    def short_name(self) -> str:
        return replace_unprintable(self.name.partition("/")[2] or self.name)

    @property
    def type_label(self) -> str:
        """API subtype and model, such as `camera · webcam`."""
        api, slash, _ = self.name.partition("/")
        subtype = api.rpartition(":")[2] if slash else ""
        model = self.model.removeprefix(f"{BUILTIN_NAMESPACE}:{BUILTIN_FAMILY}:")
        return replace_unprintable(" · ".join(word for word in (subtype, model) if word))

    @property
    def display_state(self) -> str:
        """The state that determines the color."""
        return self.state if self.state in COLORS else "unconfigured"

    @property
    def state_text(self) -> str:
        """The state with its reason."""
        return replace_unprintable(f"{self.state}: {self.reason}" if self.reason else self.state)


def index_nodes(nodes: Iterable[DiagramNode]) -> dict[str, DiagramNode]:
    """Return the nodes sorted by name, with a placeholder for each missing dependency."""
    known = {node.name: node for node in nodes}
    wanted = {name for node in known.values() for name in node.depends_on}
    for name in wanted - known.keys():
        known[name] = DiagramNode(name, "", MISSING, "not part of this machine")
    return dict(sorted(known.items()))


def iter_edges(known: Mapping[str, DiagramNode]) -> Iterator[tuple[DiagramNode, DiagramNode]]:
    for node in known.values():
        for name in sorted(set(node.depends_on)):
            yield node, known[name]


_STYLES = {"ready": "dim", "unhealthy": "red", MISSING: "red"}


def as_text(nodes: Sequence[DiagramNode], paint: Paint = paint_plain) -> str:
    """Draw a tree for each resource without dependents, with its dependencies below it."""
    known = index_nodes(nodes)
    depended_on = {needed.name for _, needed in iter_edges(known)}
    # A cycle has no root, so draw it from the first resource by name.
    roots = sorted(known, key=lambda name: (name in depended_on, name))
    shown: set[str] = set()
    lines = [
        line
        for root in roots
        if root not in shown
        for line in _render_tree(root, known, shown, paint)
    ]
    return "\n".join(lines) or NO_RESOURCES


def _render_tree(
    root: str, known: Mapping[str, DiagramNode], shown: set[str], paint: Paint
) -> Iterator[str]:
    """Yield a line for each resource. A resource that was already shown is not expanded again."""
    todo = [(root, "", "")]
    while todo:
        name, guide, under = todo.pop()
        yield guide + _format_node(known[name], name in shown, paint)
        if name in shown:
            continue
        shown.add(name)
        branches = sorted(set(known[name].depends_on), reverse=True)
        for number, branch in enumerate(branches):
            fork, trunk = ("└─ ", "   ") if number == 0 else ("├─ ", "│  ")
            todo.append((branch, under + fork, under + trunk))


def _format_node(node: DiagramNode, shown: bool, paint: Paint) -> str:
    style = _STYLES.get(node.state, "yellow")
    if shown:
        return f"{node.short_name}  {paint(f'{replace_unprintable(node.state)}, see above', style)}"
    about = f"  {paint(node.type_label, 'dim')}" if node.type_label else ""
    return f"{paint(node.short_name, 'bold')}{about}  {paint(node.state_text, style)}"


def as_dot(nodes: Sequence[DiagramNode]) -> str:
    known = index_nodes(nodes)
    return "\n".join(
        (
            "digraph machine {",
            "  rankdir=LR;",
            '  node [shape=box, style=rounded, penwidth=2, fontname="Helvetica"];',
            *map(_dot_node, known.values()),
            *(
                f"  {json.dumps(node.name)} -> {json.dumps(to.name)};"
                for node, to in iter_edges(known)
            ),
            "}",
        )
    )


def _dot_node(node: DiagramNode) -> str:
    style = ', style="rounded,dashed"' if node.state == MISSING else ""
    return (
        f"  {json.dumps(node.name)} ["
        f'label="{_escape_dot(node.short_name)}\\n{_escape_dot(node.type_label)}", '
        f'tooltip="{_escape_dot(node.state_text)}", '
        f'color="{COLORS[node.display_state]}"{style}];'
    )


def _escape_dot(text: str) -> str:
    """Escape backslashes, quotes and HTML entities, which Graphviz interprets in labels."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
