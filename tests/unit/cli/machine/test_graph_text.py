"""The resources of a machine as text and as DOT."""

from __future__ import annotations

import random
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.machines import BELT, SCALE, WORKSHOP, component, large_machine, machines

from cogwork.cli.machine.graph_text import NO_RESOURCES, DiagramNode, as_dot, as_text


class TestText:
    def test_tree_of_a_machine(self) -> None:
        assert as_text(WORKSHOP).splitlines() == [
            "scale  sensor · fake  ready",
            'find  vision · mlmodel  unhealthy: depends on "cropped"',
            '├─ cropped  camera · transform  unhealthy: depends on "belt"',
            "│  └─ belt  camera · acme:cameras:usb  "
            "unhealthy: cannot open /dev/video7: no such device",
            "└─ net  mlmodel · tflite_cpu  configuring",
        ]

    def test_machine_without_resources(self) -> None:
        assert as_text([]) == NO_RESOURCES == "this machine has no resources"

    def test_shared_dependency_is_expanded_once(self) -> None:
        top, left, right, shared, deep = map(component, ("top", "a", "b", "shared", "deep"))
        nodes = [
            DiagramNode(top, "", "ready", None, (left, right)),
            DiagramNode(left, "", "ready", None, (shared,)),
            DiagramNode(right, "", "ready", None, (shared,)),
            DiagramNode(shared, "", "unhealthy", "it broke", (deep,)),
            DiagramNode(deep, "", "ready"),
        ]
        assert as_text(nodes).splitlines() == [
            "top  sensor  ready",
            "├─ a  sensor  ready",
            "│  └─ shared  sensor  unhealthy: it broke",
            "│     └─ deep  sensor  ready",
            "└─ b  sensor  ready",
            "   └─ shared  unhealthy, see above",
        ]

    def test_cycle_ends_with_a_reference(self) -> None:
        one, two = component("one"), component("two")
        nodes = [
            DiagramNode(one, "", "unhealthy", "a cycle", (two,)),
            DiagramNode(two, "", "unhealthy", "a cycle", (one, two)),
        ]
        assert as_text(nodes).splitlines() == [
            "one  sensor  unhealthy: a cycle",
            "└─ two  sensor  unhealthy: a cycle",
            "   ├─ one  unhealthy, see above",
            "   └─ two  unhealthy, see above",
        ]

    def test_missing_dependency_is_marked(self) -> None:
        assert as_text([DiagramNode(SCALE, "fake", "unhealthy", None, (BELT,))]).splitlines() == [
            "scale  sensor · fake  unhealthy",
            "└─ belt  camera  missing: not part of this machine",
        ]

    def test_states_are_colored(self) -> None:
        def paint(text: str, style: str) -> str:
            return f"<{style} {text}>"

        lines = as_text(WORKSHOP, paint).splitlines()
        assert lines[0] == "<bold scale>  <dim sensor · fake>  <dim ready>"
        assert lines[1].endswith('<red unhealthy: depends on "cropped">')
        assert lines[4].endswith("<yellow configuring>")

    def test_chain_deeper_than_the_recursion_limit(self) -> None:
        names = [component(f"{number:05}") for number in range(3000)]
        chain = [
            DiagramNode(name, "", "ready", None, tuple(names[number + 1 : number + 2]))
            for number, name in enumerate(names)
        ]
        assert len(as_text(chain).splitlines()) == 3000

    @given(machines())
    def test_tree_has_one_line_per_node_and_branch_per_edge(self, nodes: list[DiagramNode]) -> None:
        lines = as_text(nodes).splitlines()
        if not nodes:
            return
        names = {node.name for node in nodes} | {n for node in nodes for n in node.depends_on}
        edges = {(node.name, needed) for node in nodes for needed in node.depends_on}
        again = sum(line.endswith(", see above") for line in lines)
        branches = sum("─ " in line for line in lines)
        assert len(lines) - again == len(names)
        assert branches == len(edges)

    @given(machines(), st.randoms())
    def test_output_does_not_depend_on_the_order_of_nodes(
        self, nodes: list[DiagramNode], chance: random.Random
    ) -> None:
        shuffled = chance.sample(nodes, len(nodes))
        assert as_text(shuffled) == as_text(nodes)
        assert as_dot(shuffled) == as_dot(nodes)

    @given(machines())
    def test_output_contains_no_control_characters(self, nodes: list[DiagramNode]) -> None:
        assert as_text(nodes).replace("\n", "").isprintable()


QUOTED = r'"((?:[^"\\]|\\.)*)"'
NODE = re.compile(rf'  {QUOTED} \[label={QUOTED}, tooltip={QUOTED}, color="(#\w{{6}})".*\];')
EDGE = re.compile(rf"  {QUOTED} -> {QUOTED};")


class TestDot:
    def test_dot_of_a_machine(self) -> None:
        lines = as_dot(WORKSHOP).splitlines()
        assert (
            f'  "{BELT}" [label="belt\\ncamera · acme:cameras:usb", '
            'tooltip="unhealthy: cannot open /dev/video7: no such device", color="#cf222e"];'
        ) in lines
        assert '  "rdk:component:camera/cropped" -> "rdk:component:camera/belt";' in lines

    def test_missing_dependency_is_dashed(self) -> None:
        dot = as_dot([DiagramNode(SCALE, "fake", "ready", None, (BELT,))])
        assert re.search(rf'"{BELT}" \[.*style="rounded,dashed"\];', dot)

    @given(machines())
    def test_dot_contains_every_node_and_edge(self, nodes: list[DiagramNode]) -> None:
        first, _, _, *lines, last = as_dot(nodes).split("\n")
        assert (first, last) == ("digraph machine {", "}")
        drawn = {match[1] for line in lines if (match := NODE.fullmatch(line))}
        edges = {(match[1], match[2]) for line in lines if (match := EDGE.fullmatch(line))}
        assert len(drawn) + len(edges) == len(lines)
        assert len(drawn) == len(
            {node.name for node in nodes} | {name for node in nodes for name in node.depends_on}
        )
        assert len(edges) == len({(node.name, to) for node in nodes for to in node.depends_on})
        assert {name for edge in edges for name in edge} <= drawn

    @pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
    @pytest.mark.parametrize("name", ['a"b', "a\\", "\\N", "a\nb", "a];b[", "<b>", "&lt;", "日本"])
    def test_graphviz_accepts_the_dot(self, name: str) -> None:
        nodes = [*WORKSHOP, DiagramNode(name, name, name, name, (name, BELT))]
        done = subprocess.run(
            ["dot", "-Tplain"],
            input=as_dot(nodes).encode(),
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        kinds = [line.split()[0] for line in done.stdout.splitlines()]
        assert (kinds.count(b"node"), kinds.count(b"edge")) == (6, 5)


def test_large_machine_is_complete() -> None:
    assert len(re.findall("thing-299 ", as_text(large_machine(300)))) == 1
