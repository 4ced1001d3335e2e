"""Taken: what a crawl took of its machine, beside what the simulator computes for its pages, and published crawls."""

from collections.abc import Mapping, Sequence

from gossamer.lab.simulate.arguments import options_of
from gossamer.lab.simulate.costs import cpu_page_s, cpu_request_s
from gossamer.lab.simulate.presets import PRESETS
from gossamer.results.report.figures import CostFigures, Report, Taken


def cost_of(report: Report, taken: Mapping[str, float], disk_bytes: int, sets: Sequence[str]) -> CostFigures:
    """Return the costs of a crawl from its figures and the `cost` of its status; nothing if it did not count them.
    `sets` replace prices and units of the simulator, as `key=value`.

    The prediction is without TLS handshakes, which no table counts. Published crawls used all their cores all the time.
    Raises ConfigError: one line that names the error in `sets` and the fix.
    """
    links = min(10_000.0, report.links / max(1, report.fetched))
    options = options_of("", {"web.links_per_page": links, "web.https_share": 0.0}, sets)
    web = options.web
    machine = options.machine
    cpu_s = {name: taken.get(f"cpu_{name}_s", 0.0) for name in ("fetch", "parse", "store", "render")}
    requests = int(taken.get("requests", 0))
    if not (requests and report.fetched):
        return CostFigures()
    whole_s = sum(cpu_s.values())
    others_s = max(0, requests - report.fetched) * cpu_request_s(web, machine)
    predicted_s = report.fetched * cpu_page_s(report.body_bytes_mean, web, machine) + others_s
    sent_gb = requests * machine.sent_bytes_per_request / 1e9
    other = sent_gb * machine.price_per_gb_sent + disk_bytes / 1e9 * machine.price_per_gb_month
    core_hour = machine.price_per_hour / machine.cores
    scale = 1e6 / report.fetched
    million = [
        Taken(name, scale * spent_s / 3600, scale * (spent_s / 3600 * core_hour + other))
        for name, spent_s in (("this crawl", whole_s), ("as simulate computes it", predicted_s))
    ]
    for name, preset in PRESETS.items():
        if (one := preset.published) is not None:
            hours = one.cores * one.time_s / 3600 / one.pages * 1e6
            million.append(Taken(f"{name}, {one.cores} cores", hours, one.cost_per_million))
    memory_bytes = int(taken.get("memory_bytes_max", 0))
    return CostFigures(cpu_s, whole_s / report.fetched, requests, disk_bytes, memory_bytes, tuple(million))
