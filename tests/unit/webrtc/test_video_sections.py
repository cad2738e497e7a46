from __future__ import annotations

import re

import pytest

from cogwork.webrtc.video_sections import VideoSections

DATA = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:0\r\n"


def video(mid: str, *, port: int = 9, direction: str = "sendonly", extra: str = "") -> str:
    return (
        f"m=video {port} UDP/TLS/RTP/SAVPF 97\r\na={direction}\r\n"
        f"a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid\r\na=mid:{mid}\r\n{extra}"
    )


def description(*sections: str) -> str:
    mids = re.findall(r"a=mid:(\S+)", "".join(sections))
    return f"v=0\r\na=group:BUNDLE {' '.join(mids)}\r\n" + "".join(sections)


def summarize(sdp: str) -> list[tuple[str, str, str]]:
    """Return the port, the direction and the name of each video section."""
    return [
        (section.split()[1], found[0], found[1])
        for section in re.split(r"(?m)^m=", sdp)[1:]
        if section.startswith("video")
        and (
            found := [
                *re.findall(r"a=(sendonly|recvonly|inactive)", section),
                *re.findall(r"a=mid:(\S+)", section),
            ]
        )
    ]


def bundle(sdp: str) -> list[str]:
    (found,) = re.findall(r"a=group:BUNDLE (.*)", sdp)
    return str(found).split()


class Session:
    """A client that accepts what it is offered, and rejects what is rejected."""

    def __init__(self) -> None:
        self.sections = VideoSections()

    def negotiate(self, offer: str) -> tuple[str, str]:
        """Return what the client is offered, and what aiortc gets as the answer."""
        offered = self.sections.offer_to_client(offer)
        answer = offered.replace("sendonly", "recvonly").replace("v=0", "v=0\nc=client")
        return offered, self.sections.answer_from_client(answer, offer)


def test_video_in_use_is_offered_as_it_is() -> None:
    session = Session()
    offered, answer = session.negotiate(description(DATA, video("1")))
    assert summarize(offered) == [("9", "sendonly", "1")]
    assert summarize(answer) == [("9", "recvonly", "1")]
    assert bundle(offered) == bundle(answer) == ["0", "1"]


def test_packets_need_no_name_of_their_section() -> None:
    offered, _ = Session().negotiate(description(DATA, video("1")))
    assert "sdes:mid" not in offered


def test_rejected_section_is_offered_without_a_port() -> None:
    session = Session()
    offer = description(DATA, video("1"), video("2"))
    session.negotiate(offer)
    assert session.sections.reject("1")
    offered = session.sections.offer_to_client(offer)
    assert summarize(offered) == [("0", "inactive", "1"), ("9", "sendonly", "2")]
    assert bundle(offered) == ["0", "2"]


def test_rejected_section_stays_as_it_was_accepted_for_us() -> None:
    session = Session()
    session.negotiate(description(DATA, video("1")))
    session.sections.reject("1")
    offered, answer = session.negotiate(description(DATA, video("1"), video("2")))
    assert summarize(offered) == [("0", "inactive", "1"), ("9", "sendonly", "2")]
    assert summarize(answer) == [("9", "recvonly", "1"), ("9", "recvonly", "2")]
    assert bundle(answer) == ["0", "1", "2"]


def test_recycled_section_has_another_name_each_time() -> None:
    session = Session()
    offer = description(DATA, video("1"))
    session.negotiate(offer)
    names = []
    for _ in range(3):
        session.sections.reject("1")
        session.sections.recycle("1")
        offered, answer = session.negotiate(offer)
        assert bundle(offered) == ["0", summarize(offered)[0][2]]
        assert summarize(answer) == [("9", "recvonly", "1")]
        names.append(summarize(offered)[0][2])
    assert names == ["1-1", "1-2", "1-3"]


def test_section_that_was_never_accepted_is_neither_rejected_nor_renamed() -> None:
    sections = VideoSections()
    offer = description(DATA, video("1"))
    assert not sections.reject("1")
    sections.recycle("1")
    assert summarize(sections.offer_to_client(offer)) == [("9", "sendonly", "1")]


def test_client_may_reject_a_video() -> None:
    offer = description(DATA, video("1"))
    with pytest.raises(ValueError, match="the client rejected the video"):
        VideoSections().answer_from_client(description(DATA, video("1", port=0)), offer)


@pytest.mark.parametrize("answer", [description(DATA), description(DATA, video("1"), video("2"))])
def test_answer_must_have_the_sections_of_the_offer(answer: str) -> None:
    with pytest.raises(ValueError, match="does not have the same sections"):
        VideoSections().answer_from_client(answer, description(DATA, video("1")))
