"""The WebRTC process: connections to WebRTC clients, their data channels and videos.

1. Clients send offers to `SignalingService` (`robot/services/signaling.py`) on the public port,
   with their login. Offers to a signaling server elsewhere are answered by `server/answerer.py`.
   Both pass them to `wire/transports/webrtc_peers.py`, which limits the number of clients.
2. `serving/webrtc_process.py` starts this process with the first offer (`main.py`) and hands
   over one end of a socket. `peer.py` answers the offer. `data_relay.py` moves messages between
   the data channel and the socket; `inbound_stream.py` puts them in order. `aiortc_internals.py`
   reaches what aiortc has no public interface for.
3. The server serves the messages of the socket from its handler table
   (`wire/transports/data_channel.py`), with the login of the signaling call.
4. For video, `robot/video` takes the frames of a camera and encodes them once for all viewers,
   or passes on what the camera encodes itself. `video_negotiation.py` negotiates tracks,
   `video_sections.py` (pure) decides what a client sees of them, and `track_frames.py` gives
   them their frames (`video_track.py`). A track asks for a key frame when a viewer needs one.
"""
