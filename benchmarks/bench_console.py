"""What the console costs a running crawl, nobody looking and three browsers looking on.

A crawl of a made web runs in this process with its console in the same loop; three Chromium browsers, each a process
of its own, have the page open. The time that the console takes of the loop is what it measures itself: each step of
each handler, and each piece that is parsed. Prints milliseconds for each second of wall time;
`--json FILE` writes them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gossamer import Crawler
from gossamer.console.access import access_of
from gossamer.console.server import serve_app
from gossamer.console.service import CRAWL_SHARE, Service
from gossamer.console.serving import console_app
from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess
from gossamer.world.loop import LoopShare

HOSTS, PAGES, DELAY_S = 2_000, 120_000, 5.0
WARM_S, MEASURE_S = 8.0, 15.0
BROWSER = """
import sys
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
    page = browser.new_page()
    page.goto(sys.argv[1])
    page.wait_for_selector("#link.live")
    print("open", flush=True)
    sys.stdin.read()
    assert page.locator("#link").inner_text() == "live"
    browser.close()
"""


def browsers(address: str, count: int) -> list[subprocess.Popen[bytes]]:
    found = [
        subprocess.Popen([sys.executable, "-c", BROWSER, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    for browser in found:
        assert browser.stdout is not None
        assert browser.stdout.readline() == b"open\n"
    return found


async def measured(crawler: Crawler, share: LoopShare, count: int, address: str) -> dict[str, float]:
    opened = await asyncio.to_thread(browsers, address, count)
    await asyncio.sleep(WARM_S)
    console_s, all_s, pages, wall = share.spent_s, time.process_time(), crawler.status()["pages"], time.monotonic()
    await asyncio.sleep(MEASURE_S)
    lasted_s = time.monotonic() - wall
    status = crawler.status()
    assert status["state"] == "running", "the web is too small for this machine"
    found = {
        "browsers": count,
        "console_ms_a_s": 1000 * (share.spent_s - console_s) / lasted_s,
        "process_ms_a_s": 1000 * (time.process_time() - all_s) / lasted_s,
        "pages_a_s": (status["pages"] - pages) / lasted_s,  # type: ignore[operator]
        "hosts_active": float(status["hosts_active"]),  # type: ignore[arg-type]
    }
    for browser in opened:
        assert browser.stdin is not None
        browser.stdin.close()
    assert await asyncio.to_thread(lambda: [browser.wait(30) for browser in opened]) == [0] * count
    return found


async def run(web: SimwebProcess, directory: Path) -> list[dict[str, float]]:
    crawler = Crawler(
        web.seeds, output=directory, politeness="own", delay=DELAY_S, scope="any", allow_private=True,
        hosts=str(web.hosts_file), settings={"console.port": 0},
    )  # fmt: skip
    options = crawler.config.console
    async with Service(options.connections_max, CRAWL_SHARE) as service:
        app = console_app(crawler, access_of(directory / "state", options), service)
        async with serve_app(app, options, 0, service) as address, asyncio.TaskGroup() as group:
            crawling = group.create_task(crawler.run())
            found = [await measured(crawler, service.share, count, f"{address}/") for count in (0, 1, 3)]
            crawler.stop(now=True)
            await crawling
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    target = parser.parse_args().json
    with (
        tempfile.TemporaryDirectory() as name,
        SimwebProcess(
            SimwebOptions.plain(hosts=HOSTS, pages=PAGES, bytes_median=8_000, latency_s=0.02), Path(name) / "web"
        ) as web,
    ):
        rows = asyncio.run(run(web, Path(name) / "crawl"))
    print("browsers   console, ms CPU/s   whole process, ms CPU/s   pages/s   active hosts")
    for row in rows:
        print(
            f"{row['browsers']:8.0f}{row['console_ms_a_s']:21.2f}{row['process_ms_a_s']:26.0f}"
            f"{row['pages_a_s']:10.1f}{row['hosts_active']:15,.0f}"
        )
    if target is not None:
        target.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
