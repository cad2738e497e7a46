"""Runs Graphviz, which draws DOT files."""

from __future__ import annotations

import subprocess

from cogwork.core.errors import CogworkError

IMAGE_FORMATS = ("svg", "png", "pdf")
_TIMEOUT = 60.0
"""Timeout in seconds. Graphviz takes several seconds for thousands of nodes."""


class CannotDraw(CogworkError):
    """Graphviz is missing or failed."""


def draw(dot: str, image_format: str) -> bytes:
    """Return an image of a graph in one of `IMAGE_FORMATS`."""
    try:
        drawn = subprocess.run(  # noqa: S603 - the user's own Graphviz
            ("dot", f"-T{image_format}"),  # noqa: S607 - found by PATH
            input=dot.encode(),
            capture_output=True,
            timeout=_TIMEOUT,
            check=True,
        )
    except FileNotFoundError:
        raise CannotDraw(
            "Graphviz, which draws the images, is not installed: install the package graphviz "
            "of your system, or use the format dot or text"
        ) from None
    except subprocess.TimeoutExpired:
        raise CannotDraw(
            f"Graphviz did not finish within {_TIMEOUT:g} s; use the format dot or text"
        ) from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip()
        raise CannotDraw(f"Graphviz failed: {reason or f'exit code {error.returncode}'}") from None
    return drawn.stdout
