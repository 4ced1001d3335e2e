"""Floods: answers in the most expensive framing, and answers without end that hold little or nothing."""

from __future__ import annotations

from gossamer.lab.simweb.answers import HTML, Answer, Made, Manner
from gossamer.lab.simweb.sheet import Place, Sheet, leaf

AT = "/floods/"
BYTEWISE_SENTENCES = 2_000
"""Some 200 KB in chunks of one byte, with a link at the end that proves that they were read."""
ENDLESS: tuple[tuple[Manner, tuple[str, ...]], ...] = (
    ("flood_bytes", ("timeout", "too_large")),
    ("flood_extension", ("protocol_error", "timeout")),
    ("flood_folded", ("protocol_error", "timeout")),
    ("flood_interim", ("protocol_error", "timeout")),
    ("flood_headers", ("protocol_error", "timeout")),
    ("flood_trailers", ("protocol_error", "timeout", "fetched")),
    ("flood_head_bytes", ("protocol_error", "too_large")),
)
"""What happens, and the outcomes that are as right as the first (`truth.OUTCOME_OF_MANNER`)."""


def pages(place: Place) -> dict[str, Made]:
    """Return the corner."""
    index = Sheet(place, AT, "Floods")
    path, proof = f"{AT}bytes", f"{AT}proof.html"
    text = place.some(BYTEWISE_SENTENCES, path)
    bytewise = Sheet(place, path).tag(f"<p>{text}</p>").anchor(proof)
    found = {path: Made((Answer(200, HTML, bytewise.html().encode(), "bytewise"),), bytewise.marks)}
    for manner, also in ENDLESS:
        found[AT + manner] = Made((Answer(200, HTML, b"", manner),), also=(*also, "host_closed"), once=False)
    for path in found:
        index.anchor(path)
    return found | {proof: leaf(place, proof), AT: index.made()}
