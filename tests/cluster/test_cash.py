"""Cash of hosts (OPIC) that moves between shards."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gossamer.assembly.home import Home
from gossamer.config import Config
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.stages.frontier.accounts import HOST, Account
from gossamer.state.schema import PARTITIONED
from gossamer.state.store import Store
from tests.cluster.crawls import config_of, crawl
from tests.faults.shards import Shards

WEB = SimwebOptions(
    seed=4, hosts=16, hosts_per_site=1, pages=200, bytes_median=2_000, same_host_share=0.4, behaviours=("distinct",)
)


@pytest.mark.heavy
@pytest.mark.promise(
    "Several shards",
    "Cash (`opic`) moves between hosts of all shards; none is lost or made when a shard's process is killed.",
)
def test_cash_moves_between_shards_and_is_never_made(tmp_path: Path) -> None:
    directory = tmp_path / "crawl"
    rounds = 0

    async def meddle(running: Shards) -> None:
        nonlocal rounds
        rounds += 1
        if rounds % 3 == 0 and running.deaths < 6:
            number = running.deaths % 2
            await running.kill(number)
            await running.start(number)

    with SimwebProcess(WEB, tmp_path / "web") as simweb:
        config = config_of(simweb, directory, 2, "frontier.priority=opic")
        _, running = crawl(config, directory, 2, meddle, lost=0.1, doubled=0.1, delay_s_max=0.05)
    held = [_cash(config, directory, shard) for shard in (0, 1)]
    assert running.deaths
    assert all(held)
    assert sum(sum(one.values()) for one in held) == pytest.approx(sum(len(one) for one in held))
    # Within each shard alone, the sums would be those of its hosts.
    assert sum(held[0].values()) != pytest.approx(len(held[0]))


def _cash(config: Config, directory: Path, shard: int) -> dict[str, float]:
    store = Store(Home(directory, shard, 2).store)
    try:
        return {
            key[3:].decode(): msgspec.msgpack.decode(data, type=Account).cash
            for key, data in store.scan("account", *PARTITIONED)
            if key[2:3] == HOST.encode()
        }
    finally:
        store.close()
