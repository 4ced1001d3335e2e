"""Digests are written as RFC 4648 says, whatever their length."""

from __future__ import annotations

from base64 import b32encode

from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.pages import digest_text


@given(st.binary(min_size=20, max_size=20) | st.binary(min_size=32, max_size=32))
def test_a_digest_is_written_in_base_32(digest: bytes) -> None:
    assert digest_text("sha1", digest) == f"sha1:{b32encode(digest).decode()}"
