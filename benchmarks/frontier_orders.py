"""What orders, reputation and budgets cost: µs of CPU for each call, medians of five rounds.

    python benchmarks/frontier_orders.py

Links are those of pages of 60 links, 80 % within the host, over 2,000 hosts by Zipf's law. Commits are not in it.
"""

from __future__ import annotations

import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gossamer.model.links import Link
from gossamer.model.standing import Standing
from gossamer.model.visits import Contact
from gossamer.stages.frontier.accounts import Accounts, Reputation
from gossamer.stages.frontier.budgets import Budgets
from gossamer.stages.frontier.host import Host
from gossamer.stages.frontier.options import BudgetOptions, PolitenessOptions, politeness
from gossamer.stages.frontier.priority import BestFirst, BreadthFirst, Combined, HostOpic, LargerSites
from gossamer.stages.frontier.record import RECORD_VERSION, HostRecord, host_prefix
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer
from gossamer.url.url import Url

HOSTS, PAGES, LINKS, ROUNDS = 2_000, 300, 60, 5
SAME_HOST = 0.8
POLITE = politeness(PolitenessOptions())


def pages() -> list[tuple[Url, list[Link]]]:
    """Return pages with their links."""
    dice, namer = random.Random(1), Namer()
    weights = list(itertools.accumulate(1 / rank for rank in range(1, HOSTS + 1)))
    made = []
    for number in range(PAGES):
        hosts = dice.choices(range(HOSTS), cum_weights=weights, k=LINKS + 1)
        page = f"https://www.host-{hosts[0]}.example/page-{number}.html"
        texts = [
            f"https://www.host-{hosts[0] if dice.random() < SAME_HOST else host}.example/library/page-{place}.html"
            for place, host in enumerate(hosts[1:])
        ]
        named = [Link(url, "anchor", 2, 0, page) for url in namer.names(texts) if url is not None]
        url = namer.name(page)
        assert url is not None
        made.append((url, named))
    return made


def cost_us(work: Callable[[], int]) -> float:
    """Return the CPU time of one call of the many that `work` makes."""
    costs = []
    for _ in range(ROUNDS):
        before = time.process_time()
        calls = work()
        costs.append((time.process_time() - before) / calls * 1e6)
    return statistics.median(costs)


def levels(level: Callable[[Link], int], links: list[Link]) -> int:
    for link in links:
        level(link)
    return len(links)


def host_levels(level: Callable[[Standing], int], calls: int) -> int:
    standing = Standing("a.test", 500, 10, 1, 12.0, 0.4)
    for _ in range(calls):
        level(standing)
    return calls


def main() -> None:
    """Print the table."""
    web = pages()
    links = [link for _, found in web for link in found]
    many = {f"/section-{number}/": 1 for number in range(1_000)}
    rows: list[tuple[str, Callable[[], int]]] = [
        ("breadth_first, a URL", partial(levels, BreadthFirst().level, links)),
        ("best_first of 3 patterns, a URL", partial(levels, best(3, many).level, links)),
        ("best_first of 1,000 patterns, a URL", partial(levels, best(1_000, many).level, links)),
        ("combined, a URL", partial(levels, Combined().level, links)),
    ]
    orders = (LargerSites(), HostOpic(), Combined())
    rows += [(f"{type(one).__name__}, a host", partial(host_levels, one.host_level, len(links))) for one in orders]
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory) / "store")
        epochs = Epochs(store)
        for name, kinds in (("linking sites", (True, False)), ("cash", (False, True))):
            reputation = Reputation(epochs, Accounts(epochs, 20_000), linking=kinds[0], cash=kinds[1])
            rows.append((f"{name}, a page of {LINKS} links", partial(linked, reputation, web)))
        budgets = Budgets(
            epochs, Accounts(epochs, 20_000), None, BudgetOptions(host_pages=10**9, site_pages=10**9), 0.0
        )
        hosts = [host_of(url) for url, _ in web]
        rows.append(("budgets, a question", partial(asked, budgets, hosts * 20)))
        rows.append(("budgets, a visit charged", partial(charged, budgets, hosts * 20)))
        for name, work in rows:
            work()
            print(f"{name:<40} {cost_us(work):8.2f} µs")
        store.close()


def best(count: int, scores: dict[str, int]) -> BestFirst:
    some = dict(itertools.islice(scores.items(), count))
    return BestFirst(some)


def linked(reputation: Reputation, web: list[tuple[Url, list[Link]]]) -> int:
    for url, links in web:
        reputation.count_links(url, links, 100)
    return len(web)


def host_of(url: Url) -> Host:
    return Host(HostRecord(RECORD_VERSION, url.host), url.partition, host_prefix(url.partition, url.host), 1, POLITE)


def asked(budgets: Budgets, hosts: list[Host]) -> int:
    for host in hosts:
        budgets.verdict(host)
    return len(hosts)


def charged(budgets: Budgets, hosts: list[Host]) -> int:
    contact = Contact(0.2, "answered", wire_bytes=20_000)
    for host in hosts:
        budgets.lend(host)
        budgets.spend(host, contact, page=True)
        budgets.note_return(host)
    return len(hosts)


if __name__ == "__main__":
    main()
