"""Remotes: other machines whose resources are part of this one.

1. `manager.py` compares the configured remotes with the connected ones. Each `Remote`
   (`remote.py`) has its own loop: connect and log in, start a session, list the resources twice
   a second (less often if many change: `change_limit.py`), and connect again when the connection
   is lost. `machine_dialing.py` decides how to connect: over gRPC (`dialing.py`), or over WebRTC
   through a cloud (`webrtc_dialing.py`). Over gRPC, heartbeats and calls have a connection each,
   because images would delay heartbeats in a slow network; if heartbeats are late, both get
   another connection (`grpc_connection.py`).
2. A remote and its resources are nodes of the graph. The resource `camera` of the remote `line`
   is called `line:camera` here (`names.py`, pure). Lists are read in parts (`listed_members.py`,
   pure), because another machine decides how long they are. `frames.py` (pure) renames frames,
   which `robot/frame_system.py` joins with the machine's own frames.
3. `session.py` offers the resources to the graph while the connection lasts. Their objects and
   the calls of clients work like those for modules; the proxy replaces the name in each request
   (`wire/messages/raw_request.py`), and `wire/clients/metadata_channel.py` replaces the client's
   login and session.
4. As on this machine, motion that a client starts on a remote stops when the client is lost. If
   this machine is lost, its session on the other machine expires, which stops the motion there.
"""
