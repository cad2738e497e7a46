"""A machine's resources and what each depends on: as a tree for terminals, as DOT for Graphviz."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cogwork.config.diagnose import printable
from cogwork.config.render import Paint, plain
from cogwork.graph.name import BUILTIN_FAMILY, BUILTIN_NAMESPACE

NOTHING = "this machine has no resources"
MISSING = "missing"
COLOURS = {
    "ready": ("#1a7f37", "#3fb950"),
    "unhealthy": ("#cf222e", "#f85149"),
    "configuring": ("#bf8700", "#d29922"),
    "unconfigured": ("#6e7781", "#8b949e"),
    "removing": ("#8250df", "#a371f7"),
    MISSING: ("#cf222e", "#f85149"),
}
"""On a light ground, and on a dark one."""


@dataclass(frozen=True, slots=True)
class Drawn:
    name: str
    """The full one, such as `rdk:component:camera/belt`."""
    model: str
    state: str
    """`ready`, `unhealthy`, `configuring`, `unconfigured` or `removing`."""
    reason: str | None = None
    depends_on: tuple[str, ...] = ()
    """Full names."""

    @property
    def short(self) -> str:
        return printable(self.name.partition("/")[2] or self.name)

    @property
    def about(self) -> str:
        """What it is: `camera · webcam`."""
        api, slash, _ = self.name.partition("/")
        subtype = api.rpartition(":")[2] if slash else ""
        model = self.model.removeprefix(f"{BUILTIN_NAMESPACE}:{BUILTIN_FAMILY}:")
        return printable(" · ".join(word for word in (subtype, model) if word))

    @property
    def look(self) -> str:
        """The state it is coloured by."""
        return self.state if self.state in COLOURS else "unconfigured"

    @property
    def condition(self) -> str:
        """Its state, with the reason for it."""
        return printable(f"{self.state}: {self.reason}" if self.reason else self.state)


def by_name(nodes: Iterable[Drawn]) -> dict[str, Drawn]:
    """Sorted, and with a stand-in for whatever something depends on and nobody has."""
    known = {node.name: node for node in nodes}
    wanted = {name for node in known.values() for name in node.depends_on}
    for name in wanted - known.keys():
        known[name] = Drawn(name, "", MISSING, "it is not part of this machine")
    return dict(sorted(known.items()))


def dependencies(known: Mapping[str, Drawn]) -> Iterator[tuple[Drawn, Drawn]]:
    for node in known.values():
        for name in sorted(set(node.depends_on)):
            yield node, known[name]


_STYLES = {"ready": "dim", "unhealthy": "red", MISSING: "red"}


def as_text(nodes: Sequence[Drawn], paint: Paint = plain) -> str:
    """A tree for each resource that nothing depends on; what it depends on is under it."""
    known = by_name(nodes)
    depended_on = {needed.name for _, needed in dependencies(known)}
    # Where all are in a cycle there is no root, and the first by name will do.
    roots = sorted(known, key=lambda name: (name in depended_on, name))
    shown: set[str] = set()
    lines = [
        line for root in roots if root not in shown for line in _tree(root, known, shown, paint)
    ]
    return "\n".join(lines) or NOTHING


def _tree(root: str, known: Mapping[str, Drawn], shown: set[str], paint: Paint) -> Iterator[str]:
    """A line for each resource; one that was shown before gets a line and no branches."""
    todo = [(root, "", "")]
    while todo:
        name, guide, under = todo.pop()
        yield guide + _told(known[name], name in shown, paint)
        if name in shown:
            continue
        shown.add(name)
        branches = sorted(set(known[name].depends_on), reverse=True)
        for number, branch in enumerate(branches):
            fork, trunk = ("└─ ", "   ") if number == 0 else ("├─ ", "│  ")
            todo.append((branch, under + fork, under + trunk))


def _told(node: Drawn, again: bool, paint: Paint) -> str:
    style = _STYLES.get(node.state, "yellow")
    if again:
        return f"{node.short}  {paint(f'{printable(node.state)}, see above', style)}"
    about = f"  {paint(node.about, 'dim')}" if node.about else ""
    return f"{paint(node.short, 'bold')}{about}  {paint(node.condition, style)}"


def as_dot(nodes: Sequence[Drawn]) -> str:
    known = by_name(nodes)
    return "\n".join(
        (
            "digraph machine {",
            "  rankdir=LR;",
            '  node [shape=box, style=rounded, penwidth=2, fontname="Helvetica"];',
            *map(_dot_node, known.values()),
            *(
                f"  {json.dumps(node.name)} -> {json.dumps(to.name)};"
                for node, to in dependencies(known)
            ),
            "}",
        )
    )


def _dot_node(node: Drawn) -> str:
    style = ', style="rounded,dashed"' if node.state == MISSING else ""
    return (
        f"  {json.dumps(node.name)} ["
        f'label="{_dot_text(node.short)}\\n{_dot_text(node.about)}", '
        f'tooltip="{_dot_text(node.condition)}", color="{COLOURS[node.look][0]}"{style}];'
    )


def _dot_text(text: str) -> str:
    """Graphviz reads backslashes and HTML entities in a label."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
