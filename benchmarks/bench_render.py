"""What rendering brings and costs: pages, links, processor time and wall time with `never`, `auto` and `always`.

python benchmarks/bench_render.py [site | signals]

`site` crawls the mixed site of the acceptance test on loopback in each mode; processor time is that of the crawl with
its browsers. `signals` measures what `auto` costs on pages that need no browser, beside what processing them costs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.acceptance.mixed import is_resource, mixed_site  # noqa: E402 - found by the line above
from tests.acceptance.test_render import Site, rows  # noqa: E402
from tests.stages.process.pages import standard_modules  # noqa: E402

from gossamer.features.render.choice import RenderChoice, place_of  # noqa: E402 - as below
from gossamer.model.pages import Page  # noqa: E402
from gossamer.stages.process.chain import Modules  # noqa: E402
from gossamer.stages.process.options import ProcessOptions  # noqa: E402
from gossamer.stages.process.scripted import ANCHORS_MANY, signal_of  # noqa: E402
from gossamer.state.epoch import Epochs  # noqa: E402
from gossamer.state.store import Store  # noqa: E402
from gossamer.url.name import Namer  # noqa: E402
from gossamer.world.dice import Dice  # noqa: E402

DOCUMENTATION = Path("/usr/share/doc/python3-doc/html")
PAGES_MAX, ROUNDS = 300, 3
LOOK_S = 0.1


def crawled(mode: str, server: Site, directory: Path) -> str:
    """Return the row of the table for one mode."""
    options = (
        "--allow-private",
        "--quiet",
        "--politeness",
        "own",
        "--delay",
        "0.05",
        "--render",
        mode,
        "--set",
        "render.cpu_share_max=1",
    )
    command = [sys.executable, "-m", "gossamer", "crawl", f"{server.url}/", "-o", str(directory), *options]
    began = time.monotonic()
    process, own_s = subprocess.Popen(command), 0.0
    while process.poll() is None:
        own_s = max(own_s, cpu_s_of(process.pid))
        time.sleep(LOOK_S)
    wall_s = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    asked = [sys.executable, "-m", "gossamer", "status", str(directory), "--json"]
    rendering = json.loads(subprocess.run(asked, check=True, capture_output=True).stdout)["rendering"]
    found = [row for row in rows(directory).values() if row["outcome"] == "fetched"]
    rendered = sum(row["rendered"] == "rendered" for row in found)
    browsers_s, links = rendering.get("cpu_s", 0.0), int(rendering.get("links_gained", 0))
    return (
        f"| {mode} | {len(found)} | {rendered} | {links} | {own_s + browsers_s:.1f} | {browsers_s:.1f} | {wall_s:.0f} |"
    )


def cpu_s_of(supervisor: int) -> float:
    """Return the processor seconds of a crawl without its browsers, which their guards count: not all of their
    processes are in the sum that the system makes of a process and its children.
    """
    total = 0.0
    with suppress(OSError):
        for pid in (supervisor, *Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def site() -> None:
    """Print a table of the three modes."""
    pages = mixed_site()
    server = Site(pages)
    print(f"{sum(not is_resource(path) for path in pages)} pages")
    print("| mode | pages | rendered | links gained | CPU s | of these in browsers | wall s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for mode in ("never", "auto", "always"):
            print(crawled(mode, server, Path(folder) / mode), flush=True)
    server.close()


def signals() -> None:
    """Print microseconds a page of Debian's python3-doc: to find links, and for `auto` to look at it."""
    options, name = ProcessOptions(), Namer().name
    modules = Modules(standard_modules(options), options)
    bodies = [path.read_bytes() for path in sorted(DOCUMENTATION.rglob("*.html"))[:PAGES_MAX]]
    urls = [name(f"https://docs.test/library/{n}.html") for n in range(len(bodies))]
    named = [url for url in urls if url is not None]
    pages = [Page(url.text, "text/html", "utf-8", (), body) for url, body in zip(named, bodies, strict=True)]
    found = [modules.process(page).findings.links for page in pages]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store", 1 << 20, 1 << 20)
        choice = RenderChoice(Epochs(store), Dice(1))
        chosen_us, processed_us = [], []
        for _ in range(ROUNDS):
            began = time.process_time()
            for url, body, links in zip(named, bodies, found, strict=True):
                anchors = sum([one.link_type == "anchor" for one in links[: 2 * ANCHORS_MANY]])
                if (signal := signal_of(body, anchors)) is not None:
                    place = place_of(url, signal)
                    if choice.choose(place):
                        choice.learn(place, (), gains_text=False)
            chosen_us.append((time.process_time() - began) / len(pages) * 1e6)
            began = time.process_time()
            for page in pages:
                modules.process(page)
            processed_us.append((time.process_time() - began) / len(pages) * 1e6)
        store.close()
    ours, theirs = min(chosen_us), min(processed_us)
    size = sum(map(len, bodies)) / len(bodies) / 1024
    beside = f"{theirs:.0f} us to process: {ours / theirs:.2%}"
    print(f"{len(pages)} pages of {size:.0f} KB: {ours:.1f} us to choose, {beside}")


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["signals", "site"]
    for one in wanted:
        {"signals": signals, "site": site}[one]()
