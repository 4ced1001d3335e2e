"""Checkpoints that are made while the crawl goes on: what changes between commit and copy is not in them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gossamer.api import verify_of
from gossamer.assembly.building import assemble
from gossamer.assembly.values import Shard
from gossamer.config import configure, effective_toml


def assembled(directory: Path) -> Shard:
    config = configure(options={"allow_private": True}, sets=(), seeds=("http://a.example/",))
    directory.mkdir()
    (directory / "crawl.toml").write_text(effective_toml(config))
    return assemble(config, directory)


async def checkpoint_beside_a_drop(directory: Path) -> Path:
    """Make a checkpoint; logs become a table as soon as its commit is durable."""
    shard = assembled(directory)
    journals, committer = shard.kept.storage.journals, shard.kept.committer
    names = ["state/tables/pages-000-1.journal", "state/tables/links-000-1.journal"]
    for name in names:
        journals.close(journals.create(name))
    await committer.commit()
    await committer.commit()  # Now they are final, and this is committed.
    note = committer.on_epoch

    def drop(number: int) -> None:
        assert note is not None
        note(number)
        while names:
            journals.drop(names.pop())

    committer.on_epoch = drop
    checkpoint = await shard.kept.checkpoint()
    assert not names
    await shard.close()
    return checkpoint


async def two_checkpoints_at_once(directory: Path) -> list[Path]:
    shard = assembled(directory)
    made = list(await asyncio.gather(*[shard.kept.checkpoint() for _ in range(6)]))
    await shard.close()
    return made


def test_a_log_that_becomes_a_table_meanwhile_is_in_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = asyncio.run(checkpoint_beside_a_drop(tmp_path / "crawl"))
    assert [one.says() for one in verify_of(checkpoint, deep=True).damage] == []


def test_checkpoints_that_are_requested_at_once_are_all_sound(tmp_path: Path) -> None:
    for checkpoint in set(asyncio.run(two_checkpoints_at_once(tmp_path / "crawl"))):
        assert [one.says() for one in verify_of(checkpoint, deep=True).damage] == []
