"""Reputation: distinct sites counted in bounded room; cash that is moved and never made."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gossamer.model.links import Link
from gossamer.stages.frontier.accounts import HOST, SITE, SMALLEST_MAX, Accounts, Reputation, add_linking, linking_sites
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from tests.stages.frontier.names import named


def links(*texts: str) -> list[Link]:
    return [Link(named(text), "anchor", 1) for text in texts]


def test_few_sites_are_counted_exactly_and_once() -> None:
    smallest: list[int] = []
    hashes = [random.Random(1).getrandbits(64) for _ in range(1)] + list(range(0, 60_000, 1000))
    for value in hashes + hashes:
        add_linking(smallest, value)
    assert linking_sites(smallest) == len(set(hashes))
    assert smallest == sorted(set(hashes))


@pytest.mark.parametrize("sites", [100, 2_000, 50_000])
def test_many_sites_are_estimated_in_bounded_room(sites: int) -> None:
    """Twenty estimates: their mean is near, and each within four standard errors."""
    estimates = []
    for seed in range(20):
        dice, smallest = random.Random(seed), []
        for _ in range(sites):
            value = dice.getrandbits(64)
            add_linking(smallest, value)
            add_linking(smallest, value)
        assert len(smallest) == SMALLEST_MAX
        estimates.append(linking_sites(smallest) / sites)
    error = 1 / (SMALLEST_MAX - 2) ** 0.5
    assert all(abs(estimate - 1) < 4 * error for estimate in estimates)
    assert abs(sum(estimates) / 20 - 1) < 4 * error / 20**0.5


def opened(path: Path, *, linking: bool = True, cash: bool = False) -> tuple[Store, Epochs, Accounts, Reputation]:
    store = Store(path, 1 << 20, 1 << 20)
    epochs = Epochs(store)
    accounts = Accounts(epochs, 100)
    return store, epochs, accounts, Reputation(epochs, accounts, linking=linking, cash=cash)


def commit(epochs: Epochs, accounts: Accounts, reputation: Reputation) -> None:
    reputation.cut()
    accounts.cut()
    epochs.close_at_once()


def linking_of(accounts: Accounts, reputation: Reputation, site: str) -> float:
    url = named(f"http://{site}/")
    return reputation.linking(accounts.get(SITE, url.partition, site).account)


def test_what_counts_is_other_sites_not_pages_nor_hosts(tmp_path: Path) -> None:
    store, epochs, accounts, reputation = opened(tmp_path)
    target = links("http://www.target.com/a", "http://target.com/b")
    for page in range(5):
        for host in ("www.one.com", "blog.one.com", "two.com"):
            reputation.count_links(named(f"http://{host}/{page}"), target, 1)
        reputation.count_links(named(f"http://shop.target.com/{page}"), target, 1)
    assert linking_of(accounts, reputation, "target.com") == 2
    assert linking_of(accounts, reputation, "one.com") == 0
    commit(epochs, accounts, reputation)
    reputation.count_links(named("http://three.com/"), target, 1)
    store.close()  # What came after the commit is lost with its epoch, and its page is fetched again.
    store, epochs, accounts, reputation = opened(tmp_path)
    assert reputation.linking_max == 2
    reputation.count_links(named("http://two.com/again"), target, 1)
    assert linking_of(accounts, reputation, "target.com") == 2
    reputation.count_links(named("http://three.com/"), target, 1)
    assert linking_of(accounts, reputation, "target.com") == reputation.linking_max == 3
    store.close()


def test_cash_is_moved_never_made_and_flows_to_whom_is_linked_to(tmp_path: Path) -> None:
    store, epochs, accounts, reputation = opened(tmp_path, linking=False, cash=True)
    dice = random.Random(1)
    hosts = [f"h{number}.test" for number in range(30)]
    mean = dict.fromkeys(hosts, 0.0)
    for step in range(2_000):
        # Half of all links lead to the first host.
        to = [hosts[0] if dice.random() < 0.5 else dice.choice(hosts) for _ in range(4)]
        page = named(f"http://{dice.choice(hosts)}/{step}")
        reputation.count_links(page, links(*(f"http://{host}/x" for host in to)), queued=dice.randrange(5))
        for host in hosts:
            mean[host] += reputation.cash(named(f"http://{host}/").partition, host) / 2_000
        if step % 500 == 499:
            commit(epochs, accounts, reputation)
    held = {host: reputation.cash(named(f"http://{host}/").partition, host) for host in hosts}
    assert sum(held.values()) == pytest.approx(len(hosts))
    assert mean[hosts[0]] > 3 * max(mean[host] for host in hosts[1:])
    store.close()
    store, epochs, accounts, reputation = opened(tmp_path, linking=False, cash=True)
    again = {host: reputation.cash(named(f"http://{host}/").partition, host) for host in hosts}
    assert again == held
    reputation.count_links(named("http://h1.test/"), [], 0)
    assert reputation.cash(named("http://h1.test/").partition, "h1.test") == held["h1.test"]
    store.close()


def test_a_page_gives_its_part_of_its_hosts_cash_in_equal_shares(tmp_path: Path) -> None:
    """Of three URLs to come and itself it is a quarter; two of its three links lead to one host."""
    store, _, _, reputation = opened(tmp_path, linking=False, cash=True)
    reputation.count_links(
        named("http://a.test/"), links("http://b.test/1", "http://b.test/2", "http://c.test/"), queued=3
    )
    held = [reputation.cash(named(f"http://{name}.test/").partition, f"{name}.test") for name in "abc"]
    assert held == pytest.approx([0.75, 1 + 0.25 * 2 / 3, 1 + 0.25 / 3])
    store.close()


def test_cash_that_a_page_of_many_links_gives_its_own_host_is_not_lost(tmp_path: Path) -> None:
    """The giver's account left the memory meanwhile, and what came back to it went to a copy that nobody kept."""
    store, epochs, accounts, reputation = opened(tmp_path, linking=False, cash=True)
    hosts = ["giver.test"]
    for page in range(4):
        hosts += (others := [f"h{number}.p{page}.test" for number in range(150)])
        to = links(*(f"http://{host}/" for host in [*others, "giver.test"]))
        reputation.count_links(named(f"http://giver.test/{page}"), to, queued=1)
        commit(epochs, accounts, reputation)
    held = [reputation.cash(named(f"http://{host}/").partition, host) for host in hosts]
    assert sum(held) == pytest.approx(len(hosts), abs=1e-9)
    store.close()


def test_a_split_site_has_one_account_on_a_shard_whatever_partition_its_hosts_have(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20, 1 << 20)
    epochs = Epochs(store)
    accounts = Accounts(epochs, 100, split=frozenset(["a.test"]))
    held = accounts.get(SITE, 7, "a.test")
    held.account.pages = 3
    accounts.touch(held)
    accounts.cut()
    again = Accounts(epochs, 100, split=frozenset(["a.test"]))
    assert again.get(SITE, 8, "a.test").account.pages == 3
    assert again.get(HOST, 8, "a.test").account.pages == 0
    assert Accounts(epochs, 100).get(SITE, 7, "b.test").key[:2] == (7).to_bytes(2)
    store.close()


def test_accounts_in_memory_are_bounded_and_none_is_lost(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20, 1 << 20)
    epochs = Epochs(store)
    accounts = Accounts(epochs, 100)
    for number in range(1_000):
        held = accounts.get(HOST, number % 4096, f"h{number}")
        held.account.pages = number
        accounts.touch(held)
        if number % 50 == 49:
            accounts.cut()
            assert len(accounts._held) <= 160
    for number in range(1_000):
        assert accounts.get(HOST, number % 4096, f"h{number}").account.pages == number
    assert len(accounts._held) <= 110
    store.close()


def test_an_account_that_left_between_asking_and_touching_is_not_lost(tmp_path: Path) -> None:
    store = Store(tmp_path, 1 << 20, 1 << 20)
    accounts = Accounts(Epochs(store), 100)
    held = accounts.get(HOST, 1, "giver")
    for number in range(300):
        accounts.get(HOST, 1, f"h{number}")
    held.account.cash = 5.0
    accounts.touch(held)
    assert accounts.get(HOST, 1, "giver").account.cash == 5.0
    store.close()
