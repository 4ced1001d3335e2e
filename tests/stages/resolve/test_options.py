from __future__ import annotations

import pytest

from gossamer.options import OptionsError, convert
from gossamer.stages.resolve.options import ResolveOptions, server_address


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("9.9.9.9", "9.9.9.9:53"),
        ("127.0.0.1:5353", "127.0.0.1:5353"),
        ("2620:fe::fe", "[2620:fe::fe]:53"),
        ("[2620:fe::fe]", "[2620:fe::fe]:53"),
        ("[2620:fe::fe]:5353", "[2620:fe::fe]:5353"),
    ],
)
def test_name_servers(text: str, spelt: str) -> None:
    assert server_address(text) == spelt


@pytest.mark.parametrize("text", ["dns.example", "9.9.9.9:", "9.9.9.9:x", "9.9.9.9:70000", "", "[::1]x53", "9.9.9.9:0"])
def test_bad_name_servers_are_refused(text: str) -> None:
    with pytest.raises(OptionsError, match="expected"):
        convert(ResolveOptions, {"servers": [text]})


def test_bounds_must_be_in_order() -> None:
    with pytest.raises(OptionsError, match="above"):
        convert(ResolveOptions, {"ttl_s_min": 10, "ttl_s_max": 5})
