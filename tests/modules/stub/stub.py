"""A module that starts in a few milliseconds: HTTP/2 and gRPC by hand, and no library.

It says it is ready, agrees to everything and echoes commands. What it sends must be small: it does
not look at its client's windows. `STUB_EXIT` is `ready` or `add`: it exits with code 7 once it has
answered that.
"""

# The parts of `socket` and `os` that are written in C: theirs take a third of the start.
import _socket
import posix
import select
import sys

EXIT_CODE = 7


def main() -> None:
    listener = _listener(sys.argv[1], tcp="--tcp-mode" in sys.argv)
    poll = select.poll()
    poll.register(listener.fileno(), select.POLLIN)
    connections: dict[int, Connection] = {}
    while True:
        for number, _ in poll.poll():
            if number == listener.fileno():
                accepted, _address = listener._accept()  # type: ignore[attr-defined]
                connections[accepted] = Connection(accepted)
                poll.register(accepted, select.POLLIN)
            elif not connections[number].take():
                poll.unregister(number)
                posix.close(number)
                del connections[number]


def _listener(address: str, *, tcp: bool) -> _socket.socket:
    if tcp:
        host, _, port = address.rpartition(":")
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
    else:
        listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        listener.bind(address)
    listener.listen(16)
    return listener


DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
ACK = END_STREAM = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY = 0x20

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WIDEST = (1 << 31) - 1


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload


def more_room(size: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, 0, size.to_bytes(4, "big"))


# SETTINGS_INITIAL_WINDOW_SIZE: no stream holds its client back, nor does the connection.
OPENING = frame(SETTINGS, 0, 0, b"\0\4" + WIDEST.to_bytes(4, "big")) + more_room(WIDEST - 65535)


class Connection:
    def __init__(self, number: int) -> None:
        self._number = number
        self._received = b""
        self._began = False
        self._headers = Headers()
        self._block = b""
        self._calls: dict[int, list[bytes]] = {}
        self._leaves = False

    def take(self) -> bool:
        """Answers what has come; False when there will be no more."""
        try:
            more = posix.read(self._number, 1 << 18)
        except ConnectionError:
            return False
        if not more:
            return False
        self._received += more
        answer = b"" if self._began else self._begin()
        while self._began and (whole := self._frame()) is not None:
            answer += self._answer(*whole)
        try:
            while answer:
                answer = answer[posix.write(self._number, answer) :]
        except OSError:
            return False
        if self._leaves:
            posix._exit(EXIT_CODE)
        return True

    def _begin(self) -> bytes:
        if len(self._received) < len(PREFACE):
            return b""
        self._received = self._received[len(PREFACE) :]
        self._began = True
        return OPENING

    def _frame(self) -> tuple[int, int, int, bytes] | None:
        received = self._received
        size = 9 + int.from_bytes(received[:3], "big")
        if len(received) < 9 or len(received) < size:
            return None
        self._received = received[size:]
        stream = int.from_bytes(received[5:9], "big") & WIDEST
        return received[3], received[4], stream, received[9:size]

    def _answer(self, kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        if kind == SETTINGS:
            return b"" if flags & ACK else frame(SETTINGS, ACK, 0, b"")
        if kind == PING:
            return b"" if flags & ACK else frame(PING, ACK, 0, payload)
        if kind == DATA:
            room = more_room(len(payload)) if payload else b""
            if stream in self._calls:
                self._calls[stream][1] += _without_padding(kind, flags, payload)
            return room + self._heard(flags, stream)
        if kind in (HEADERS, CONTINUATION):
            self._block += _without_padding(kind, flags, payload)
            return self._called(stream) if flags & END_HEADERS else b""
        if kind == RESET:
            self._calls.pop(stream, None)
        return b""

    def _called(self, stream: int) -> bytes:
        self._calls[stream] = [self._headers.path(self._block), b""]
        self._block = b""
        return b""

    def _heard(self, flags: int, stream: int) -> bytes:
        """Answers a whole call, or the first message of one that it does not know.

        Not its headers alone: some clients, told no while they send, do not look why.
        """
        if stream not in self._calls:
            return b""
        path, body = self._calls[stream]
        if path in METHODS and not flags & END_STREAM:
            return b""
        del self._calls[stream]
        if path not in METHODS:
            return frame(HEADERS, END_HEADERS | END_STREAM, stream, HEAD + UNKNOWN)
        self._leaves |= path == LAST
        return reply(stream, path, body)


def _without_padding(kind: int, flags: int, payload: bytes) -> bytes:
    if kind == CONTINUATION:
        return payload
    if flags & PADDED:
        payload = payload[1 : len(payload) - payload[0]]
    return payload[5:] if kind == HEADERS and flags & PRIORITY else payload


def reply(stream: int, path: bytes, body: bytes) -> bytes:
    message = METHODS[path]
    if path == DO_COMMAND:
        message = b"".join(field(1, each) for each in fields(body[5:], 2))
    framed = b"\0" + len(message).to_bytes(4, "big") + message
    parts = [framed[at : at + 16384] for at in range(0, len(framed), 16384)]
    return (
        frame(HEADERS, END_HEADERS, stream, HEAD)
        + b"".join(frame(DATA, 0, stream, part) for part in parts)
        + frame(HEADERS, END_HEADERS | END_STREAM, stream, WELL)
    )


def header(name: bytes, value: bytes) -> bytes:
    """As it is, into no table."""
    return bytes((0, len(name))) + name + bytes((len(value),)) + value


HEAD = b"\x88" + header(b"content-type", b"application/grpc")
WELL = header(b"grpc-status", b"0")
UNKNOWN = header(b"grpc-status", b"12") + header(b"grpc-message", b"the stub does not serve this")


def varint(value: int) -> bytes:
    some = b""
    while value > 127:
        some += bytes((value & 127 | 128,))
        value >>= 7
    return some + bytes((value,))


def field(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + varint(len(value)) + value


def fields(message: bytes, wanted: int) -> list[bytes]:
    """The values of one field of a message in which all have a length."""
    found, at = [], 0
    while at < len(message):
        number = message[at] >> 3
        size, at = integer(message, at + 1)
        if number == wanted:
            found.append(message[at : at + size])
        at += size
    return found


def integer(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 128:
            return value, at


NAME = field(1, b"rdk") + field(2, b"component") + field(3, b"generic")
SERVED = field(1, NAME) + field(2, b"viam.component.generic.v1.GenericService")
READY = b"\x08\x01" + field(2, field(1, field(1, SERVED) + field(2, b"acme:stub:thing")))


DO_COMMAND = b"/viam.component.generic.v1.GenericService/DoCommand"
MODULE = b"/viam.module.v1.ModuleService/"
METHODS = {
    MODULE + b"Ready": READY,
    MODULE + b"ValidateConfig": b"",
    MODULE + b"AddResource": b"",
    MODULE + b"ReconfigureResource": b"",
    MODULE + b"RemoveResource": b"",
    DO_COMMAND: b"",
}
"""What each replies."""

LAST = {b"ready": MODULE + b"Ready", b"add": MODULE + b"AddResource"}.get(
    posix.environ.get(b"STUB_EXIT", b"")
)


class Headers:
    """HPACK, as far as it takes to know the path of every call."""

    def __init__(self) -> None:
        self._dynamic: list[tuple[bytes, bytes]] = []
        self._largest = 4096

    def path(self, block: bytes) -> bytes:
        path, at = b"", 0
        while at < len(block):
            first = block[at]
            if first & 0x80:
                index, at = _number(block, at, 7)
                name, value = self._entry(index)
            elif first & 0xE0 == 0x20:
                self._largest, at = _number(block, at, 5)
                self._evict()
                continue
            else:
                kept = first & 0x40
                index, at = _number(block, at, 6 if kept else 4)
                if index:
                    name = self._entry(index)[0]
                else:
                    name, at = _string(block, at)
                value, at = _string(block, at)
                if kept:
                    self._dynamic.insert(0, (name, value))
                    self._evict()
            if name == b":path":
                path = value
        return path

    def _entry(self, index: int) -> tuple[bytes, bytes]:
        """Of the values in the static table no path is asked for."""
        if index <= len(STATIC):
            return STATIC[index - 1], b""
        return self._dynamic[index - len(STATIC) - 1]

    def _evict(self) -> None:
        while sum(32 + len(name) + len(value) for name, value in self._dynamic) > self._largest:
            self._dynamic.pop()


def _number(block: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value = block[at] & most
    if value < most:
        return value, at + 1
    more, at = integer(block, at + 1)
    return value + more, at


def _string(block: bytes, at: int) -> tuple[bytes, int]:
    coded = block[at] & 0x80
    size, at = _number(block, at, 7)
    text = block[at : at + size]
    return (_decoded(text) if coded else text), at + size


def _decoded(text: bytes) -> bytes:
    """Of Huffman's code; what is left over at the end is padding."""
    codes = _codes()
    bits = "".join(f"{each:08b}" for each in text)
    decoded, at, end = bytearray(), 0, 5
    while end <= len(bits):
        symbol = codes.get(bits[at:end])
        if symbol is None:
            end += 1
        else:
            decoded.append(symbol)
            at, end = end, end + 5
    return bytes(decoded)


def _codes() -> dict[str, int]:
    """Those of the characters that paths and gRPC's headers are made of.

    The code is canonical, so that it follows from how many bits each symbol has.
    """
    if not CODES:
        code = last = 0
        for length, symbols in LENGTHS:
            code <<= length - last
            last = length
            for symbol in symbols:
                CODES[f"{code:0{length}b}"] = symbol
                code += 1
    return CODES


CODES: dict[str, int] = {}

LENGTHS = (
    (5, b"012aceiost"),
    (6, b" %-./3456789=A_bdfghlmnpru"),
    (7, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, b"&*,;XZ"),
    (10, b'!"()?'),
    (11, b"'+|"),
    (12, b"#>"),
    (13, b"\0$@[]~"),
    (14, b"^}"),
    (15, b"<`{"),
)

STATIC = (
    b":authority :method :method :path :path :scheme :scheme :status :status :status :status"
    b" :status :status :status accept-charset accept-encoding accept-language accept-ranges accept"
    b" access-control-allow-origin age allow authorization cache-control content-disposition"
    b" content-encoding content-language content-length content-location content-range content-type"
    b" cookie date etag expect expires from host if-match if-modified-since if-none-match if-range"
    b" if-unmodified-since last-modified link location max-forwards proxy-authenticate"
    b" proxy-authorization range referer refresh retry-after server set-cookie"
    b" strict-transport-security transfer-encoding user-agent vary via www-authenticate"
).split()

if __name__ == "__main__":
    main()
