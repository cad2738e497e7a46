"""Images and video: headers, encoding and decoding, and groups of encoded frames."""
