from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.unit.cli.machines import WORKSHOP

from cogwork.cli.machine.graph_text import as_dot
from cogwork.cli.machine.graphviz import CannotDraw, draw

needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


@needs_graphviz
@pytest.mark.parametrize(
    ("form", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_graphviz_draws_images(form: str, start: bytes) -> None:
    assert draw(as_dot(WORKSHOP), form).startswith(start)


@needs_graphviz
def test_graphviz_error_is_reported() -> None:
    with pytest.raises(CannotDraw, match="syntax error"):
        draw("digraph {", "svg")


def test_missing_graphviz_is_reported_with_advice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotDraw, match=r"install the package graphviz .* or use the format dot"):
        draw(as_dot(WORKSHOP), "svg")
