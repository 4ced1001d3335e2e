"""A hundred thousand sites, each for itself: the preset `whitelist` against a synthetic web on loopback.

Every front page and, on most sites, a page or two more; of each page only the links within its own site are followed.
Reports the crawl's own CPU time and its peak memory, and the server's beside it. `--sites N` for fewer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.process import SimwebProcess

SOURCE = Path(__file__).parents[1] / "src"
QUICK = (
    "politeness.delay_s_min=0", "politeness.delay_factor=0", "politeness.site_delay_s=0", "politeness.per_site=0",
    "politeness.per_address=0", "politeness.address_delay_s=0", "politeness.delay_s_max=0",
)  # fmt: skip


def options_of(sites: int, pages: int) -> SimwebOptions:
    """Return a web of sites with one host each, some hundred names to an address."""
    return SimwebOptions.plain(
        hosts=sites, pages=pages, hosts_per_site=1, bare_names=True, names_per_address=max(5, sites // 100),
        links_per_page=10, bytes_median=3_000, zipf_exponent=0.5, same_host_share=0.5,
    )  # fmt: skip


def command_of(directory: Path, domains: Path, hosts: Path) -> list[str]:
    """Return the crawl as it is typed, the politeness of loopback apart."""
    command = [sys.executable, "-m", "gossamer", "crawl", "--preset", "whitelist", "--domains", str(domains)]
    command += ["--hosts", str(hosts), "--allow-private", "--quiet", "-o", str(directory)]
    return command + [word for one in QUICK for word in ("--set", one)]


def peak_and_cpu(pid: int) -> tuple[int, float]:
    """Return the peak of a process's memory in bytes and its CPU seconds so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return peak, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(sites: int, pages: int, work: Path) -> dict[str, float]:
    """Crawl, and return what it took."""
    with SimwebProcess(options_of(sites, pages), work / "web") as web:
        domains = work / "domains.txt"
        domains.write_text(
            "".join(f"{number},www.{host.site}:{web.port}\n" for number, host in enumerate(web.web.hosts, 1))
        )
        began = time.monotonic()
        crawl = subprocess.Popen(
            command_of(work / "crawl", domains, web.hosts_file), env={**os.environ, "PYTHONPATH": str(SOURCE)}
        )
        peak, cpu_s = 0, 0.0
        while crawl.poll() is None:
            time.sleep(0.5)
            for child in (
                Path(f"/proc/{crawl.pid}/task/{crawl.pid}/children").read_text().split() if crawl.poll() is None else ()
            ):
                try:
                    peak, cpu_s = peak_and_cpu(int(child))
                except (OSError, StopIteration):
                    continue
        assert crawl.returncode == 0, "the crawl failed"
        took_s = time.monotonic() - began
        expected = sum(host.pages for host in web.web.hosts)
        server_cpu_s = peak_and_cpu(web.pid)[1]
    table = f"read_parquet('{work}/crawl/pages/*.parquet')"
    links = f"read_parquet('{work}/crawl/links/*.parquet')"
    pages_fetched, hosts, astray = duckdb.sql(
        f"SELECT count(*) FILTER (outcome = 'fetched'), count(DISTINCT host), "
        f"count(*) FILTER (referrer <> '' AND split_part(split_part(referrer, '/', 3), ':', 1) <> site) FROM {table}"
    ).fetchall()[0]
    (to_others,) = duckdb.sql(
        f"SELECT count(*) FROM {links} WHERE split_part(from_url, '/', 3) <> split_part(to_url, '/', 3)"
    ).fetchall()[0]
    return {
        "sites": sites, "pages": pages_fetched, "pages_expected": expected, "hosts": hosts, "astray": astray,
        "links_to_others": to_others, "took_s": took_s, "cpu_s": cpu_s, "peak_mib": peak / (1 << 20),
        "server_cpu_s": server_cpu_s,
    }  # fmt: skip


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sites", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=0, help="over all sites; one and a half a site by default")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="whitelist-") as work:
        found = measured(given.sites, given.pages or given.sites * 3 // 2, Path(work))
    for name, value in found.items():
        print(f"{name:>16} {value:12,.1f}" if isinstance(value, float) else f"{name:>16} {value:12,}")
    print(f"{'µs a page':>16} {1e6 * found['cpu_s'] / max(found['pages'], 1):12,.0f}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
