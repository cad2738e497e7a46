"""An IP camera on loopback whose pictures show when they were drawn. Run by benchmarks.video.

It serves 1280x720 JPEGs over HTTP as most IP cameras do (multipart/x-mixed-replace), and prints its
port. Each picture has a time code at the top: the milliseconds of the system clock, modulo 2^20, as
20 black and white squares with the highest bit first, and below them the same squares inverted.
"""

from __future__ import annotations

import asyncio
import sys
import time
from itertools import count
from typing import Any

import cv2
import numpy as np

from cogwork.drivers.camera.conveyor import Conveyor

WIDTH, HEIGHT = 1280, 720
RATE = 15
BITS = 20
SQUARE = WIDTH // BITS
_BACKGROUNDS = 4 * RATE
_BOUNDARY = "picture"


def main() -> int:
    return asyncio.run(serve())


async def serve() -> int:
    """Serve until standard input ends."""
    backgrounds = render_backgrounds()

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await send_pictures(writer, backgrounds)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the server or this process ends
        finally:
            writer.close()

    async with await asyncio.start_server(send, "127.0.0.1", 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    return 0


def render_backgrounds() -> list[Any]:
    conveyor = Conveyor(seed=7, width=WIDTH, height=HEIGHT)
    return [conveyor.render(conveyor.scene_at(each / RATE))[0] for each in range(_BACKGROUNDS)]


async def send_pictures(writer: asyncio.StreamWriter, backgrounds: list[Any]) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\n"
        b"Content-Type: multipart/x-mixed-replace; boundary=" + _BOUNDARY.encode() + b"\r\n\r\n"
    )
    start = time.monotonic()
    for number in count():
        await asyncio.sleep(start + number / RATE - time.monotonic())
        picture = encode_picture(backgrounds[number % len(backgrounds)])
        head = (
            f"--{_BOUNDARY}\r\nContent-Type: image/jpeg\r\nContent-Length: {len(picture)}\r\n\r\n"
        )
        writer.write(head.encode() + picture + b"\r\n")
        await writer.drain()


def encode_picture(pixels: Any) -> bytes:
    """Draw the time code into a picture, and return it as JPEG."""
    milliseconds = int(time.time() * 1000) % (1 << BITS)
    bits = np.array([milliseconds >> bit & 1 for bit in reversed(range(BITS))], np.uint8) * 255
    squares = np.repeat(bits, SQUARE)[None, :, None]
    pixels[:SQUARE] = squares
    pixels[SQUARE : 2 * SQUARE] = 255 - squares
    return cv2.imencode(".jpg", pixels, (cv2.IMWRITE_JPEG_QUALITY, 80))[1].tobytes()


if __name__ == "__main__":
    sys.exit(main())
