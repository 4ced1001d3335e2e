"""Commands that read a crawl in a store: which of them bring it here."""

from __future__ import annotations

import pytest

from gossamer.cli.stored import with_local


@pytest.mark.parametrize("option", [["--cluster", "10.0.0.1:6379"], ["--cluster=10.0.0.1:6379"]])
def test_an_export_on_a_cluster_brings_nothing_to_this_machine(option: list[str]) -> None:
    words = ["export", "s3://nowhere/crawl", "--to", "jsonl", "-o", "out", *option]
    with with_local(words) as passed:
        assert passed == words
