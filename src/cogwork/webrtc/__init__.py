"""The WebRTC process: connections to WebRTC clients, their data channels and videos.

1. Clients send offers to `SignalingService` (`robot/services/signaling.py`) on the public port,
   with their login. Offers to a signaling server elsewhere are answered by `server/answerer.py`.
   Both pass them to `wire/transports/webrtc_peers.py`, which limits the number of clients.
2. `serving/webrtc_process.py` starts this process with the first offer (`main.py`) and hands
   over one end of a socket. `peer.py` answers the offer. `data_relay.py` moves messages between
   the data channel and the socket; `inbound_stream.py` puts them in order. `aiortc_internals.py`
   accesses internals of aiortc that have no public interface.
3. The server serves the messages of the socket from its handler table
   (`wire/transports/data_channel.py`), with the login of the signaling call.
4. For video, `robot/video` takes the frames of a camera and encodes them once for all viewers,
   or forwards the video that the camera encodes itself. `video_negotiation.py` negotiates tracks
   with a client, and `video_sections.py` (pure) translates their descriptions. `track_frames.py`
   passes the frames to the tracks (`video_track.py`). If a viewer needs a key frame, its track
   requests one.
"""
