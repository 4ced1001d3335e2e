"""The report of the league table: the same tables as Markdown and as one HTML page that needs no other file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 68rem; padding: 0 1rem; color: #1c2126;
  background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .3rem; } p { margin: .3rem 0 .8rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid #d5dadf; vertical-align: top; }
th:first-child, td:first-child, td.text, th.text { text-align: left; } th { font-weight: 600; }
td.bar, td.count { white-space: nowrap; }
td.bar { background: linear-gradient(to right, #bcd8ee var(--part), transparent var(--part)); }
tr.ours td:first-child { font-weight: 600; }
@media (prefers-color-scheme: dark) {
  body { color: #e4e7ea; background: #15181b; } th, td { border-color: #3a4046; }
  td.bar { background: linear-gradient(to right, #23506f var(--part), transparent var(--part)); } }
"""


class Cell(NamedTuple):
    """One value as it is shown; a number has a bar as long as its share of the column's largest."""

    text: str
    number: float | None = None


class Table(NamedTuple):
    """One table: its first column names the crawler."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]


Rounds = Sequence[Mapping[str, Any]]


def middle(rounds: Rounds, name: str) -> float:
    """Return the median over the rounds."""
    return float(median(one[name] for one in rounds))


def worst(rounds: Rounds, name: str) -> int:
    """Return the largest of the rounds: of what should not happen at all."""
    return int(max(one[name] for one in rounds))


def rounds_of(result: Mapping[str, Any]) -> int:
    """Return how many rounds the first trial had."""
    return max(len(rounds) for rounds in next(iter(result["trials"].values())).values())


def tables(result: Mapping[str, Any]) -> list[Table]:
    """Return the tables of what was measured; a trial that was left out has none."""
    trials, made = result["trials"], []
    each = f"Up to {result['per_host']} requests at once to a host, no delay."
    if "docs" in trials:
        made.append(_speed("Python's documentation behind nginx", each, trials["docs"], denied=False))
    if "light" in trials:
        made.append(_speed("Light pages: PostgreSQL's documentation behind nginx", each, trials["light"], denied=False))
    if "web" in trials:
        note = f"{each} The web has twenty hosts with robots.txt of many kinds, redirects, frames, encodings and "
        note += (
            "spellings; its generator knows which pages a correct crawl finds, and which addresses robots.txt forbids."
        )
        made.append(_speed("Synthetic web", note, trials["web"], denied=True))
    if "polite" in trials:
        made.append(_polite(result, trials["polite"]))
    if "kill" in trials:
        made.append(_kill(result, trials["kill"]))
    if result["text"]:
        cells = [Cell(f"{result['text'][name]:.3f}", result["text"][name]) for name in ("f1", "precision")]
        note = (
            f"The {result['text']['pages']:,} pages of the Web Content Extraction Benchmark (WCXB, folder `dev`). The "
            "other crawlers extract no main text. Gossamer's model is trained on these pages; on hosts that it was not "
            "trained on, F1 is 0.861."
        )
        made.append(Table("Main text", note, ("F1", "precision"), [("Gossamer", cells)]))
    stores = [(name, [Cell(peer["stores"])]) for name, peer in result["peers"].items()]
    made.append(Table("What each crawler stores", "In all measurements above.", ("stores",), stores))
    return made


def _speed(title: str, note: str, trial: Mapping[str, Rounds], *, denied: bool) -> Table:
    rows = []
    for name, rounds in trial.items():
        found, cpu_s, peak, wall_s = (middle(rounds, one) for one in ("found", "cpu_s", "peak_bytes", "wall_s"))
        cells = [
            Cell(f"{found:,.0f} of {rounds[0]['exist']:,}", found), Cell(f"{cpu_s:.2f}", cpu_s),
            Cell(f"{found / cpu_s:,.0f}", found / cpu_s), Cell(f"{peak / 1e6:,.0f}", peak),
            Cell(f"{wall_s:.1f}{_cut(rounds)}", wall_s),
        ]  # fmt: skip
        rows.append((name, [*cells, _fault(worst(rounds, "denied"))] if denied else cells))
    columns = ("pages found", "CPU, s", "pages per CPU-second", "peak memory, MB", "wall time, s")
    return Table(title, note, (*columns, "forbidden URLs requested") if denied else columns, rows)


def _polite(result: Mapping[str, Any], trial: Mapping[str, Rounds]) -> Table:
    rows = [
        (name, [
            Cell(f"{middle(rounds, 'found'):,.0f} of {rounds[0]['exist']:,}"),
            Cell(f"{middle(rounds, 'wall_s'):.1f}{_cut(rounds)}", middle(rounds, "wall_s")),
            Cell(f"{worst(rounds, 'early'):,} of {rounds[0]['of']:,}"),
            Cell(f"{worst(rounds, 'broken'):,} of {rounds[0]['asked']:,}"),
        ])
        for name, rounds in trial.items()
    ]  # fmt: skip
    delay = f"{result['delay_s']:g} s"
    note = (
        f"A synthetic web of eight hosts, two of them with a Crawl-delay of {result['crawl_delay_s']:g} s. Each "
        f"crawler is set to a delay of {delay} and, if it has such a limit, to one request at once to a host."
    )
    columns = ("pages found", "wall time, s", f"requests sooner than {delay}", "requests sooner than Crawl-delay")
    return Table("Polite", note, columns, rows)


def _kill(result: Mapping[str, Any], trial: Mapping[str, Rounds]) -> Table:
    rows = []
    for name, peer in result["peers"].items():
        if name in trial:
            lost, doubled, again = (worst(trial[name], one) for one in ("lost", "doubled", "again"))
            cells = [_fault(lost), _fault(doubled), Cell(f"{again:,}", again), Cell(peer["resume"] + _cut(trial[name]))]
        else:
            cells = [Cell("-"), Cell("-"), Cell("-"), Cell("cannot resume")]
        rows.append((name, cells))
    exist = next(iter(trial.values()))[0]["exist"]
    note = (
        f"All processes are killed with `kill -9` when half of the documentation ({exist:,} pages) was sent; then the "
        "crawler is restarted in its own way. Lost pages and pages kept twice are counted in its final output, in the "
        "worst round."
    )
    columns = ("pages lost", "pages kept twice", "requested again", "resumes by")
    return Table("Killed in the middle", note, columns, rows)


def _fault(count: int) -> Cell:
    return Cell(f"{count:,}", count)


def _cut(rounds: Rounds) -> str:
    """Return a mark where a round did not come to its end."""
    return "" if all(one["ended"] for one in rounds) else " (did not end)"


def markdown(result: Mapping[str, Any]) -> str:
    """Return the report as Markdown."""
    parts = []
    for table in tables(result):
        lines = [
            f"| | {' | '.join(table.columns)} |",
            f"| --- |{''.join(' --: |' if one else ' --- |' for one in _figures(table))}",
        ]
        lines += [f"| {name} | {' | '.join(cell.text for cell in cells)} |" for name, cells in table.rows]
        parts.append(f"## {table.title}\n\n{table.note}\n\n" + "\n".join(lines))
    return "\n\n".join([*parts, "## Not measured\n\n" + "\n".join(f"- {one}" for one in absent(result))]) + "\n"


def _figures(table: Table) -> list[bool]:
    """Return which columns hold figures."""
    return [any(_is_figure(cells[n]) for _, cells in table.rows) for n in range(len(table.columns))]


def _is_figure(cell: Cell) -> bool:
    return cell.number is not None or " of " in cell.text or cell.text == "-"


def absent(result: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each crawler and figure that is left out."""
    lines = [f"{name}: {reason}." for name, reason in result["missing"].items()]
    return lines if result["text"] else [*lines, "Main text: give `--wcxb DIR`, a folder of the WCXB benchmark."]


def page(result: Mapping[str, Any]) -> str:
    """Return the report as one HTML page."""
    body = []
    for table in tables(result):
        largest = [max((cells[n].number or 0.0 for _, cells in table.rows), default=0.0)
                   for n in range(len(table.columns))]  # fmt: skip
        head = "<th scope=col>crawler</th>" + "".join(
            f"<th scope=col{'' if one else ' class=text'}>{escape(name)}</th>"
            for name, one in zip(table.columns, _figures(table), strict=True)
        )
        lines = "".join(_line(name, cells, largest) for name, cells in table.rows)
        body.append(
            f"<h2>{escape(table.title)}</h2><p>{escape(table.note.replace('`', ''))}</p><div class=wide><table>"
            f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
        )
    left = "".join(f"<li>{escape(one.replace('`', ''))}</li>" for one in absent(result))
    intro = f"Medians; rounds: {rounds_of(result)}, in turns on one machine. Processor time and memory are those of "
    intro += "all processes of a crawl; wall time includes what else the machine did. Bars compare within a column."
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Gossamer beside other crawlers</title><style>{STYLE}</style></head><body><main>"
        f"<h1>Gossamer beside other crawlers</h1><p>{intro}</p>{''.join(body)}"
        f"<h2>Not measured</h2><ul>{left}</ul></main></body></html>\n"
    )


def _line(name: str, cells: Sequence[Cell], largest: Sequence[float]) -> str:
    shown = []
    for cell, most in zip(cells, largest, strict=True):
        if cell.number is None:
            shown.append(f"<td class={'count' if _is_figure(cell) else 'text'}>{escape(cell.text)}</td>")
        else:
            part = 100 * cell.number / most if most else 0.0
            shown.append(f'<td class=bar style="--part:{part:.1f}%">{escape(cell.text)}</td>')
    ours = " class=ours" if name.startswith("Gossamer") else ""
    return f"<tr{ours}><td>{escape(name)}</td>{''.join(shown)}</tr>"


def write(result: Mapping[str, Any], output: Path) -> None:
    """Write the report in both forms."""
    (output / "league.json").write_text(json.dumps(result, indent=1) + "\n")
    (output / "league.md").write_text(markdown(result))
    (output / "league.html").write_text(page(result))
    print(f"{output / 'league.html'} and league.md")
