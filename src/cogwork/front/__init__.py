"""The front process: accepts clients on the public port, and relays their bytes.

`serving/public_port.py` opens the listening sockets, and `serving/front.py` hands them to this
process (`main.py`), or runs its parts in the server if `network.front` says so.
`public_listener.py` accepts connections, and `dispatcher.py` reads the first bytes of each
(`first_bytes.py`) to tell gRPC from HTTP/1.1. If there are too many connections, `admission.py`
lets new ones wait, and `connections.py` (pure) chooses the one that is closed. `tls_socket.py`
terminates TLS.

`relay.py` and `socket_relay.py` relay HTTP/2 to the private socket of gRPC, and HTTP/1.1 to the
socket of `wire/transports/http1.py`. `http2_monitor.py` reads the relayed frames. It closes
connections that break a rule (`control_frames.py`), paces bursts of requests (`burst.py`), and
delays large requests until there is memory for them (`uploads.py`). While a burst is held back,
`held_frames.py` still forwards the frames of running requests.
"""
