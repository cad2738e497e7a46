"""The video sections of a session description, as the client sees them. Pure.

A section is rejected when its video ends. For the next video, the section is recycled under another
name: clients in Go never reuse an inactive section, and browsers announce a video only if its
section was unused before. aiortc does not support rejected sections, so its description is
translated. In aiortc's description, a section always stays accepted.
"""

from __future__ import annotations

import re
from collections import Counter

_SECTION = re.compile(r"^(?=m=)", re.MULTILINE)
_MID_LINE = re.compile(r"^a=mid:(\S+)$", re.MULTILINE)
_MID_EXTENSION = re.compile(r"^a=extmap:\S+ urn:ietf:params:rtp-hdrext:sdes:mid\r?\n", re.MULTILINE)
_DIRECTION = re.compile(r"^a=(sendrecv|sendonly|recvonly|inactive)$", re.MULTILINE)
_PORT = re.compile(r"^(m=\w+) \d+")
_REJECTED = re.compile(r"m=\w+ 0 ")
_BUNDLE = re.compile(r"^a=group:BUNDLE.*$", re.MULTILINE)


class VideoSections:
    """Translates the sections of descriptions. Keys are the `mid` that aiortc gives to a
    section."""

    def __init__(self) -> None:
        self._uses: Counter[str] = Counter()
        """The number of times that each section was recycled."""
        self._rejected: set[str] = set()
        self._accepted: dict[str, str] = {}
        """The client's last answer for each section."""

    def reject(self, mid: str) -> bool:
        """Reject a section. Return whether the client has ever accepted it."""
        if mid not in self._accepted:
            return False
        self._rejected.add(mid)
        return True

    def recycle(self, mid: str) -> None:
        """Reuse a section, with a new name if it was rejected."""
        if mid in self._rejected:
            self._rejected.remove(mid)
            self._uses[mid] += 1

    def offer_to_client(self, sdp: str) -> str:
        """Translate an offer of aiortc for the client."""
        head, *sections = _split(sdp)
        used = [mid for each in sections if (mid := _mid_of(each)) not in self._rejected]
        bundle = "a=group:BUNDLE " + " ".join(map(self._name, used))
        return _BUNDLE.sub(bundle, head) + "".join(map(self._translate, sections))

    def answer_from_client(self, sdp: str, offer: str) -> str:
        """Translate the client's answer for aiortc. Raise ValueError if it does not match the
        offer."""
        mids = [_mid_of(each) for each in _split(offer)[1:]]
        head, *sections = _split(sdp)
        if len(sections) != len(mids):
            raise ValueError("the answer does not have the same sections as the offer")
        for index, (mid, section) in enumerate(zip(mids, sections, strict=True)):
            if mid in self._rejected:
                sections[index] = self._accepted[mid]
            elif _REJECTED.match(section):
                raise ValueError("the client rejected the video")
            else:
                sections[index] = self._accepted[mid] = _MID_LINE.sub(f"a=mid:{mid}", section)
        bundle = "a=group:BUNDLE " + " ".join(mids)
        return _BUNDLE.sub(bundle, head) + "".join(sections)

    def _name(self, mid: str) -> str:
        uses = self._uses[mid]
        return f"{mid}-{uses}" if uses else mid

    def _translate(self, section: str) -> str:
        mid = _mid_of(section)
        section = _MID_LINE.sub(f"a=mid:{self._name(mid)}", section)
        # Remove the extension: with it, packets would carry aiortc's name of the section, which the
        # client does not know.
        section = _MID_EXTENSION.sub("", section)
        if mid in self._rejected:
            section = _DIRECTION.sub("a=inactive", _PORT.sub(r"\1 0", section))
        return section


def _split(sdp: str) -> list[str]:
    """Return the text before the first section, and each section."""
    return _SECTION.split(sdp.replace("\r\n", "\n"))


def _mid_of(section: str) -> str:
    found = _MID_LINE.search(section)
    if found is None:
        raise ValueError("a media section of the session description has no mid")
    return found[1]
