"""What it costs to tell near-duplicates, and how well they are told.

Usage: PYTHONPATH=src python benchmarks/bench_near.py [DIRECTORY OF HTML FILES]
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from gossamer.lab.simweb.options import SimwebOptions
from gossamer.lab.simweb.web import Web
from gossamer.model.pages import Sketch
from gossamer.stages.scope.templates import TemplateNode
from gossamer.stages.seen import shingles
from gossamer.stages.seen.content import NearContentSeen
from gossamer.stages.seen.shingles import sketch
from gossamer.state.epoch import Epochs
from gossamer.state.store import Store
from gossamer.url.name import Namer

DOCUMENTATION = Path("/usr/share/doc/python3.11/html")
PAGE_BYTES_MAX = 50_000
ROUNDS = 5
EDITS = (0.002, 0.01, 0.05, 0.20)
BOUND_US = 200.0


def generated(count: int = 300) -> list[bytes]:
    """Pages of a made web, where no documentation is installed."""
    web = Web(SimwebOptions.plain(hosts=1, pages=count, bytes_median=26_000, links_per_page=61.0, port=80))
    return [web.page(web.hosts[0].name, web.url(web.hosts[0], n)[7:].partition("/")[2]).body for n in range(count)]


def us(work: Callable[[object], object], things: Sequence[object]) -> float:
    """Return processor microseconds a thing, the best of some rounds."""
    spent = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for thing in things:
            work(thing)
        spent.append((time.process_time() - started) / len(things) * 1e6)
    return min(spent)


def edited(text: bytes, share: float, words: Sequence[bytes], dice: random.Random) -> bytes:
    """Return a text of which a share of the words was replaced, or left out."""
    return b" ".join(
        (dice.choice(words) if dice.random() < 0.7 else b"") if dice.random() < share else word
        for word in text.split(b" ")
    )


def costs(pages: list[bytes]) -> float:
    texts = [shingles.text_of(page) for page in pages]
    words = [shingles.words_of(text) for text in texts]
    hashes = [shingles.shingles_of(*each) for each in words]
    whole = us(lambda page: sketch(page, lowest=False), pages)  # type: ignore[arg-type]
    rows = [
        ("text between tags", us(shingles.text_of, pages)),  # type: ignore[arg-type]
        ("words", us(shingles.words_of, texts)),  # type: ignore[arg-type]
        ("shingles", us(lambda each: shingles.shingles_of(*each), words)),  # type: ignore[misc]
        ("simhash", us(shingles.simhash_of, hashes)),  # type: ignore[arg-type]
        ("least hashes, for traps", us(shingles.lowest_of, hashes)),  # type: ignore[arg-type]
        ("the whole sketch, for near-duplicates", whole),
        ("a look at a watched template", us(TemplateNode().judge, [sketch(page) for page in pages])),  # type: ignore[arg-type]
    ]
    lookup = lookups([sketch(page) for page in pages])
    rows.append(("lookup and remembering", lookup))
    kilobytes = statistics.mean(map(len, pages)) / 1024
    print(f"{len(pages)} pages of {kilobytes:.1f} KB, {statistics.mean(map(len, hashes)):.0f} shingles each")
    for name, cost in rows:
        print(f"  {name:<38} {cost:7.1f} us")
    total = whole + lookup
    print(f"  {'near-duplicate detection':<38} {total:7.1f} us a page; at most {BOUND_US:.0f} asked for")
    return total


def lookups(sketches: list[Sketch]) -> float:
    url = Namer().name("http://example.org/")
    assert url is not None
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory) / "store")
        near = NearContentSeen(Epochs(store), "host")
        dice = random.Random(1)
        for _ in range(20_000):
            near.remember(Sketch(0, dice.getrandbits(64), 100), url)

        def both(one: object) -> None:
            assert isinstance(one, Sketch)
            if near.find(one, url) is None:
                near.remember(one, url)

        cost = us(both, sketches)
        store.close()
    return cost


def quality(pages: list[bytes]) -> None:
    texts = [text for page in pages if len(text := shingles.text_of(page)) > 1_500]
    words = [word for text in texts[:50] for word in text.split()]
    originals = [sketch(text).simhash for text in texts]
    pairs = [(a ^ b).bit_count() for at, a in enumerate(originals) for b in originals[:at]]
    print(f"\n{len(texts)} different pages, {len(pairs)} pairs: taken for near-duplicates {at_most(pairs, 3)}")
    print("recall, a share of the words changed at random:")
    for share in EDITS:
        dice = random.Random(5)
        found = [
            (sketch(edited(text, share, words, dice)).simhash ^ original).bit_count()
            for text, original in zip(texts, originals, strict=True)
        ]
        right = at_most(found, 3)
        wrong = at_most(pairs, 3)
        print(
            f"  {share:5.1%}  recall {right / len(found):4.0%}  precision {right / max(1, right + wrong):5.1%}"
            f"  mean distance {statistics.mean(found):4.1f} bits"
        )
    frame = texts[0][:4_000]
    for share in (0.5, 0.8, 0.95):
        own = max(1, int(len(frame) * (1 - share) / share))
        framed = [sketch(frame + b" " + text[200 : 200 + own]).simhash for text in texts]
        near = [(a ^ b).bit_count() for at, a in enumerate(framed) for b in framed[:at]]
        print(f"pages that are {share:.0%} frame and else different: {at_most(near, 3) / len(near):.1%} of pairs near")


def at_most(distances: Iterable[int], bits: int) -> int:
    return sum(distance <= bits for distance in distances)


def main() -> int:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTATION
    files = [path.read_bytes() for path in sorted(directory.rglob("*.html"))]
    pages = [page for page in files if len(page) < PAGE_BYTES_MAX] or generated()
    total = costs(pages)
    quality(pages)
    return 0 if total <= BOUND_US else 1


if __name__ == "__main__":
    sys.exit(main())
