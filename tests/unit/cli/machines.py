"""Machines to draw: a realistic one, and arbitrary ones."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from cogwork.cli.machine.graph_text import DiagramNode


def component(name: str, subtype: str = "sensor") -> str:
    return f"rdk:component:{subtype}/{name}"


BELT = component("belt", "camera")
CROPPED = component("cropped", "camera")
NET = "rdk:service:mlmodel/net"
VISION = "rdk:service:vision/find"
SCALE = component("scale")

WORKSHOP = [
    DiagramNode(VISION, "rdk:builtin:mlmodel", "unhealthy", 'depends on "cropped"', (NET, CROPPED)),
    DiagramNode(CROPPED, "rdk:builtin:transform", "unhealthy", 'depends on "belt"', (BELT,)),
    DiagramNode(BELT, "acme:cameras:usb", "unhealthy", "cannot open /dev/video7: no such device"),
    DiagramNode(NET, "rdk:builtin:tflite_cpu", "configuring"),
    DiagramNode(SCALE, "rdk:builtin:fake", "ready"),
]

STATES = ("ready", "unhealthy", "configuring", "unconfigured", "removing", "never heard of")


@st.composite
def machines(draw: st.DrawFn, names: st.SearchStrategy[str] | None = None) -> list[DiagramNode]:
    """Generate machines, including those with cycles and missing dependencies."""
    anything = st.text(alphabet="ab/:<>&\"\\'\n\0\x1b\ud800\u202e]{}é日", max_size=8)
    known = draw(st.lists(names if names is not None else anything, unique=True, max_size=9))
    wanted = st.sampled_from([*known, "missing"])
    return [
        DiagramNode(
            name,
            draw(anything),
            draw(st.sampled_from(STATES)),
            draw(st.none() | anything),
            tuple(draw(st.lists(wanted, max_size=4))),
        )
        for name in draw(st.permutations(known))
    ]


def large_machine(count: int) -> list[DiagramNode]:
    """Return a large machine, the same each time."""
    chance = random.Random(count)
    names: list[str] = []
    nodes = []
    for number in range(count):
        needs = chance.sample(names[-40:], min(len(names), chance.choice((0, 0, 1, 1, 2, 3))))
        names.append(component(f"thing-{number}"))
        state = chance.choice(("ready", "ready", "ready", "unhealthy"))
        nodes.append(DiagramNode(names[-1], "fake", state, None, tuple(needs)))
    return nodes
