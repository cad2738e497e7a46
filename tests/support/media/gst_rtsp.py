r"""Serves a moving image over RTSP on loopback until the process ends.

Run with Debian's own Python, which has GStreamer: `gst_rtsp.py PORT ELEMENT…`, with the elements
that encode and pack the image; `--picture ELEMENTS` before them replaces those that make it. It
prints `listening` once it listens; without a port it ends at once, with 0 if everything needed is
installed.
"""

from __future__ import annotations

import sys
from typing import Any

import gi  # type: ignore[import-not-found]

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # type: ignore[import-not-found] # noqa: E402

PICTURE = (
    "videotestsrc is-live=true pattern=ball"
    " ! video/x-raw,format=I420,width=320,height=240,framerate=15/1"
)


def main(port: str = "", *elements: str) -> None:
    Gst.init(None)
    if port:
        shown = elements[1:] if elements[0] == "--picture" else (PICTURE, *elements)
        serve(port, " ! ".join(shown))


def serve(port: str, pipeline: str) -> None:
    factory: Any = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(f"( {pipeline} name=pay0 )")
    factory.set_shared(True)
    server: Any = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(port)
    server.get_mount_points().add_factory("/test", factory)
    if not server.attach(None):
        sys.exit(f"cannot listen on port {port}")
    print("listening", flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main(*sys.argv[1:])
