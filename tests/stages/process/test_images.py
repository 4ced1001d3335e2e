"""Image statistics: what the headers of real images say, and what broken ones do not."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from gossamer.model.pages import Findings, Page
from gossamer.stages.process.images import ImageStatistics, statistics
from gossamer.world.spill import Spills


def drawn(kind: str, size: tuple[int, int] = (37, 21), frames: int = 1, **options: object) -> bytes:
    pictures = [Image.new("RGB", size, (n * 40 % 256, n, 7)) for n in range(frames)]
    for n, picture in enumerate(pictures):
        picture.putpixel((n % size[0], 0), (255, 255, 255))
    out = BytesIO()
    more = {"save_all": True, "append_images": pictures[1:], "duration": 50} if frames > 1 else {}
    pictures[0].save(out, kind, **more, **options)
    return out.getvalue()


REAL = {
    "gif": (drawn("GIF"), ("gif", 37, 21, 1)),
    "gif, animated": (drawn("GIF", frames=5), ("gif", 37, 21, 5)),
    "png": (drawn("PNG"), ("png", 37, 21, 1)),
    "png, animated": (drawn("PNG", frames=4), ("png", 37, 21, 4)),
    "jpeg": (drawn("JPEG"), ("jpeg", 37, 21, 1)),
    "jpeg, progressive": (drawn("JPEG", (400, 300), progressive=True), ("jpeg", 400, 300, 1)),
    "jpeg with a comment": (drawn("JPEG", comment=b"x" * 60_000), ("jpeg", 37, 21, 1)),
    "webp": (drawn("WEBP", (2000, 1)), ("webp", 2000, 1, 1)),
    "webp, lossless": (drawn("WEBP", lossless=True), ("webp", 37, 21, 1)),
    "webp, animated": (drawn("WEBP", frames=3), ("webp", 37, 21, 3)),
    "webp, with metadata": (drawn("WEBP", exif=b"Exif\0\0" + b"x" * 99), ("webp", 37, 21, 1)),
}


@pytest.mark.parametrize("case", REAL)
def test_what_real_images_say(case: str) -> None:
    data, expected = REAL[case]
    assert statistics(BytesIO(data)) == expected


@pytest.mark.parametrize("case", REAL)
def test_an_image_cut_anywhere_does_no_harm(case: str) -> None:
    data, (kind, width, height, frames) = REAL[case]
    for end in range(0, len(data), max(1, len(data) // 300)):
        seen = statistics(BytesIO(data[:end]))
        assert seen is None or (seen.kind == kind and seen.width in (0, width) and seen.frames <= frames)
        assert seen is None or seen.height in (0, height)


@pytest.mark.parametrize(
    "data",
    [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xd9", b"RIFF\0\0\0\0WEBPVP8 \xff\xff\xff\xff", b"<html>"],
)
def test_what_is_none_says_nothing(data: bytes) -> None:
    seen = statistics(BytesIO(data))
    assert seen is None or (seen.width, seen.height) == (0, 0)


def test_hostile_lengths_cost_a_bounded_number_of_blocks() -> None:
    assert statistics(BytesIO(b"\x89PNG\r\n\x1a\n" + b"\0\0\0\0zzzz\0\0\0\0" * 200_000)) is not None
    assert statistics(BytesIO(b"\xff\xd8" + b"\xff\xe0\0\2" * 200_000)) is None


def test_the_columns_and_a_body_on_disk(tmp_path: Path) -> None:
    """By its bytes, whatever the server called it, and without reading what lies between the headers."""
    data = drawn("PNG", (5000, 10)) + b"trailing" * 10
    spill = Spills(tmp_path, "sha1").make()
    spill.write(data)
    for page in (
        Page("https://e.example/", "image/jpeg", "", (), data),
        Page("https://e.example/", "image/jpeg", "", (), data[:10], spill),
    ):
        found = Findings()
        ImageStatistics().process(page, found)
        assert found.columns == {"image_kind": "png", "image_width": 5000, "image_height": 10, "image_frames": 1}
        assert found.columns.keys() == ImageStatistics.columns.keys()
