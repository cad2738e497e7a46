"""Parsers of label files and of what exporters write beside a model."""

from __future__ import annotations

from tests.fuzz.target import ContractViolation, Target, allow_errors, decode_lossy, split_texts

from cogwork.drivers.mlmodel.file_metadata import parse_file_metadata
from cogwork.resource.labels import MAX_LABELS, InvalidLabels, parse_labels
from cogwork.resource.messages.structs import to_struct


def target_labels(data: bytes) -> None:
    for text in {decode_lossy(data), split_texts(data)[0]}:
        with allow_errors(data, InvalidLabels):
            labels = parse_labels(text)
            if not 0 < len(labels) <= MAX_LABELS:
                raise ContractViolation(f"{len(labels)} labels")
            for name in labels.names.values():
                name.encode()


def target_notes(data: bytes) -> None:
    """Check that notes never refuse a model and fit into a message."""
    names, description, *others = (*decode_lossy(data).split("\0"), "", "")
    texts = {"names": names, "description": description}
    notes = parse_file_metadata(texts | {str(at): text for at, text in enumerate(others)})
    to_struct(notes.properties).SerializeToString()


_LABELS = [
    b"cat\ndog\n\nbird",
    b"cat, dog, bird",
    b"7 cat\n9: dog\n11,bird",
    b'["cat", "dog"]',
    b"{7: 'cat', 8: 'd\\x41g'}",
    b'{"cat": 7, "dog": 8}',
    b'item { id: 7 name: "/m/01" display_name: "c\\303\\274t" keypoints { id: 1 } }',
    b'id,name\n0,"cat, black"\n1,dog',
    b"[cat]\n[dog]",
]
_TOKENS = (b"item {", b"id: 1", b'name: "', b"\\", b"\\9", b"\\777", b"}", b"{", b"[", b"]", b"'",
           b'"', b"\n", b",", b":", b";", b"\t", b"#", b"<", b">", b"\\x41",
           b"\\u0041", b"index")  # fmt: skip

TARGETS = (
    Target("labels.file", target_labels, lambda: _LABELS, ("cogwork.resource.labels",), _TOKENS),
    Target(
        "labels.notes",
        target_notes,
        lambda: [
            b"{0: 'cat'}\0A model\0[640, 640]\0detect\x001e3\0{'a': (1, None, True)}\0'\\ud800'",
            b"\0\x00-1\0{[]: 1}\0{1, 2}\0b'x'\x001j\x000x" + b"f" * 50,
        ],
        ("cogwork.drivers.mlmodel.file_metadata",),
        (*_TOKENS, b"\0", b"(", b")", b"-", b"~", b"0x", b"b'", b"j", b"None"),
    ),
)
