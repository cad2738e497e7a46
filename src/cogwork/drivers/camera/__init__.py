"""Cameras: from a device or a stream to frames in memory.

A `Frame` (`resource/frame.py`) is an image in memory with its time and source. It is read-only,
passed by reference, and encoded on demand, once for each type, in threads of the camera.
Built-in cameras provide `frames` in addition to the SDK's interface; the bytes of other cameras
are decoded once.

Each device or stream has one capture loop in a thread (`capture.py`). It keeps only the newest
image and reopens a lost source; until it is open again, `fault` says why it was lost. Work for each
image, such as a transform, is done on demand and once for all callers (`core/single_flight.py`).
`media/image_header.py` checks image bytes before OpenCV decodes them.
"""
