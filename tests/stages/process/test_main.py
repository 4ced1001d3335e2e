"""Main content: the trees, the set of blocks with the highest expected F1, and what is added to it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.stages.process.main import Forest, Trees, choose_blocks, complete_blocks, main_blocks, with_captions
from gossamer.stages.process.outline import Outline, outline_of
from gossamer.stages.process.signals import Weights, names_of, page_names, signals, words_of


def page(markup: str) -> Outline:
    made = outline_of(markup, 1_000)
    assert made is not None
    return made


def test_trees_are_asked_level_by_level_as_one_by_one() -> None:
    random = np.random.RandomState(7)
    count, depth, columns = 9, 3, 5
    trees = Trees(
        features=random.randint(0, columns, (depth, count)).tolist(),
        borders=random.rand(depth, count).round(2).tolist(),
        leaves=random.randint(-900, 900, (count, 2**depth)).tolist(),
        bias=0.25,
    )
    rows = random.rand(40, columns).astype(np.float32)
    expected = []
    for row in rows:
        score = trees.bias
        for tree in range(count):
            answers = [
                row[trees.features[level][tree]] > np.float32(trees.borders[level][tree]) for level in range(depth)
            ]
            score += trees.leaves[tree][sum(bool(answer) << level for level, answer in enumerate(answers))] / 1_000
        expected.append(1 / (1 + np.exp(-score)))
    np.testing.assert_allclose(Forest(trees).likely(rows), expected, rtol=1e-5)


@given(st.lists(st.tuples(st.floats(0.01, 0.99), st.integers(1, 200)), min_size=1, max_size=7))
def test_no_set_of_blocks_has_a_higher_expected_f_score(blocks: list[tuple[float, int]]) -> None:
    """The score, with less weight on recall, is expected over pages whose estimates are off by equal odds."""
    likely = np.array([one for one, _ in blocks], dtype=np.float32)
    words = np.array([one for _, one in blocks], dtype=np.float32)

    def score(keep: list[int]) -> float:
        mean = 0.0
        for shift, chance in ((-3.0, 0.0545), (-1.5, 0.244), (0.0, 0.403), (1.5, 0.244), (3.0, 0.0545)):
            odds = likely / (1 - likely) * np.exp(shift)
            there = odds / (1 + odds) * words
            mean += chance * 1.6 * there[keep].sum() / (words[keep].sum() + 0.6 * max(float(there.sum()), 20.0))
        return mean

    best = max(
        score(list(keep)) for size in range(1, len(blocks) + 1) for keep in combinations(range(len(blocks)), size)
    )
    assert score(np.flatnonzero(choose_blocks(likely, words)).tolist()) == pytest.approx(best, rel=1e-3)


def test_gaps_headings_and_code_are_added() -> None:
    body = (
        "<nav>n</nav><div><h1>a</h1><h2>b</h2><p>c<p>d<pre>e</pre><p>f</div><div><pre>g</pre></div><footer>h</footer>"
    )
    outline = page(body)
    keep = [block.text in ("c", "f") for block in outline.blocks]
    assert [
        block.text for block, keeps in zip(outline.blocks, complete_blocks(outline, keep), strict=True) if keeps
    ] == list("abcdefg")
    assert complete_blocks(outline, [False] * len(outline.blocks)) == [False] * len(outline.blocks)


def test_what_follows_a_list_that_is_kept_is_part_of_the_text_too() -> None:
    outline = page("<article><ul><li>kept</ul><dl><dt>A<dd>one<dd>two<dd>three</dl><p>kept</article><dl><dd>no</dl>")
    keep = [block.text == "kept" for block in outline.blocks]
    assert complete_blocks(outline, keep) == [True] * 6 + [False]


@pytest.mark.parametrize(
    ("between", "is_kept"),
    [
        ("<div><table><tr><th>A<th>B<tr><td>1<td>2<tr><td>3<td>4</table></div>", True),
        ("<figure><table><tr><th>A<th>B<tr><td>1<td>2</table><figcaption>Prices</figcaption></figure>", True),
        ("<dl><dt>A<dd>one<dd>two<dt>B<dd>three</dl>", True),
        ("<ul><li>a<ul><li>b<li>c</ul><li>d</ul>", True),
        ("<h2>A</h2><div><table><tr><td>1<td>2<tr><td>3<td>4</table></div>", True),
        ("<ul class=share-buttons><li><a href=/f>F</a><li><a href=/t>T</a></ul>", False),
        ("<blockquote><p>a</p><p>b</p><p>c</p><footer>d</footer></blockquote>", True),
        ("<figure><figcaption>a</figcaption></figure><div><p>b</div><div><p>c</div><div><p>d</div>", False),
        ("<ul>" + "<li><a href=/x>other page</a>" * 4 + "</ul>", False),
        ("<ul>" + "<li>item" * 25 + "</ul>", False),
        ("<ul>" + f"<li>{'word ' * 31}" * 4 + "</ul>", False),
    ],
)
def test_what_stands_between_two_paragraphs_of_a_text_is_part_of_it(between: str, is_kept: bool) -> None:
    outline = page(f"<article><p>before</p>{between}<p>after</p></article>")
    keep = [block.text in ("before", "after") for block in outline.blocks]
    made = complete_blocks(outline, keep)
    assert made == ([True] * len(made) if is_kept else keep)


@pytest.mark.parametrize(
    ("after", "is_kept"),
    [
        ("<table><tr><td>1<td>2<tr><td>3<td>4</table>", True),
        ("<h2>A</h2><div><table><tr><td>1<td>2</table></div>", False),
        ("<h2>A</h2><table><tr><td>1<td>2</table>", True),
        ("<dl><dt>Throws<dd>an error</dl>", True),
        ("<table>" + "<tr><td><a href=/x>another page</a><td>2" * 2 + "</table>", False),
        ("<table>" + f"<tr><td>{'word ' * 61}<td>{'word ' * 61}</table>", False),
        ("</article><table><tr><td>1<td>2</table>", False),
    ],
)
def test_a_text_may_end_with_a_short_table_or_definitions(after: str, is_kept: bool) -> None:
    outline = page(f"<article><p>kept</p>{after}</article>")
    keep = [block.text == "kept" for block in outline.blocks]
    assert complete_blocks(outline, keep) == ([True] * len(keep) if is_kept else keep)


@pytest.mark.parametrize(
    ("post", "kept", "is_kept"),
    [
        ("<div class=post><p>{}</p></div>", 4, True),
        ("<tr><td><div class=comhead>by me<div class=post><span>{}</span></div>", 4, True),
        ("<div><p>{}</p></div>", 4, False),
        ("<div class=post><p>{}</p></div>", 2, False),
        ("<div class=post><p><a href=/>{}</a></p></div>", 4, False),
    ],
)
def test_a_short_post_of_a_thread_is_kept_with_the_others(post: str, kept: int, is_kept: bool) -> None:
    outline = page("".join(post.format(f"post {n}" if n < kept else "+1") for n in range(5)))
    keep = [block.text.startswith("post") for block in outline.blocks]
    made = [block.text for block, keeps in zip(outline.blocks, complete_blocks(outline, keep), strict=True) if keeps]
    assert ("+1" in made) == is_kept


def test_a_formula_between_paragraphs_is_part_of_the_text() -> None:
    outline = page("<main><p>kept</p><math><mi>x</mi></math><p>kept</p>Advertisement<p>kept</p></main>")
    keep = complete_blocks(outline, [block.text == "kept" for block in outline.blocks])
    assert keep == [True, True, True, False, True]


def test_captions_between_paragraphs_are_kept_for_markdown() -> None:
    figure = "<figure><img src=i.png><figcaption>caption <a href=/c>credit</a> of five words</figcaption></figure>"
    cards = "<figure><figcaption><a href=/x>another page</a></figcaption></figure>"
    outline = page(f"<article><p>kept</p>{figure}<p>kept</p>{cards}<p>kept</p></article>{figure}")
    keep = complete_blocks(outline, [block.text == "kept" for block in outline.blocks])
    assert keep == [True, False, True, False, True, False]
    assert with_captions(outline, keep) == [True, True, True, False, True, False]


def test_all_code_beside_content_is_added() -> None:
    outline = page("<div><pre>a</pre><pre>b</pre></div><p>kept<pre>c</pre><pre>d</pre><nav>e</nav>")
    keep = [block.text == "kept" for block in outline.blocks]
    assert complete_blocks(outline, keep) == [True, True, True, True, True, False]


def test_a_table_of_short_cells_is_kept_as_a_whole() -> None:
    rows = "".join(f"<tr><td>day {number}<td>nine" for number in range(4))
    outline = page(f"<p>before<table>{rows}</table><p>after<table>{rows}</table>")
    names = [block.text for block in outline.blocks]
    for wanted, expected in ((names[1:4], 8), (names[1:2], 0)):
        keep = [at < 9 and text in wanted for at, text in enumerate(names)]
        made = complete_blocks(outline, keep)
        assert made[1:9] == ([True] * 8 if expected else keep[1:9])
        assert not any(made[9:])
    long = page("<table>" + f"<tr><td>{'word ' * 30}<td>b" * 4 + "</table>")
    keep = [at in (0, 2) for at in range(len(long.blocks))]
    assert complete_blocks(long, keep)[4:] == keep[4:]


def test_terms_stay_with_what_defines_them() -> None:
    outline = page("<dl><dt>kept<dd>yes<dt>dropped<dd>no</dl>")
    keep = [block.text == "yes" for block in outline.blocks]
    kept = [block.text for block, keeps in zip(outline.blocks, complete_blocks(outline, keep), strict=True) if keeps]
    assert kept == ["kept", "yes"]


def test_names_of_an_element_are_its_tag_classes_and_their_words() -> None:
    assert names_of("section", " class='postBody-main x1' id=Top role=main hidden") == [
        "<section", "role=main", ".postbody-main", ".x1", ".top", "postbody", "main", "top",
    ]  # fmt: skip
    assert names_of("div", "") == []


_TELLING = {
    "<p": 0.5,
    "<li": -0.25,
    ".item": 2.0,
    "item": 1.0,
    "nav": -4.0,
    "role=main": 8.0,
    "hidden": -16.0,
    "x": 0.5,
}
_WRITTEN = st.lists(
    st.one_of(
        st.builds(
            ' {}="{}"'.format, st.sampled_from(["class", "id", "role", "data-x"]), st.text("itemNavx- ", max_size=40)
        ),
        st.sampled_from([" class=nav", " hidden", " style='display:none'", " role=main", ' itemprop="x/y"', " a=b"]),
    ),
    max_size=4,
)


@given(st.sampled_from(["p", "div", "li"]), _WRITTEN)
def test_the_score_of_an_element_is_that_of_its_names(name: str, parts: list[str]) -> None:
    rest = "".join(parts)
    weights = Weights(_TELLING, {}, {"item": [1.0] * 7, ".nav": [2.0] * 7})
    names = names_of(name, rest)
    score, places = weights.of_element((name, rest))
    assert score == pytest.approx(sum(_TELLING.get(one, 0.0) for one in names))
    assert sorted(places) == [place for place, one in enumerate(["item", ".nav"], 1) if one in names]


@given(st.lists(st.text("aBc dé©1_", min_size=1, max_size=150), min_size=1, max_size=6), st.text("aBc dé", max_size=9))
def test_the_score_of_a_text_is_that_of_its_first_words(texts: list[str], title: str) -> None:
    known = {"aa": 1.0, "ab": 2.0, "cé": 4.0, "©": 8.0}
    outline = page(f"<title>{title}</title>" + "".join(f"<p>{text}" for text in texts))
    if not outline.blocks:
        return
    rows = signals(outline, Weights({}, known, {}), "")
    titled = set(words_of(title))
    for row, block in zip(rows, outline.blocks, strict=True):
        words = words_of(block.text)
        assert row[5] == sum(known.get(word, 0.0) for word in words)
        assert row[7] == pytest.approx(len(titled.intersection(words)) / max(1, len(words)))


def test_what_speaks_for_a_type_of_page() -> None:
    outline = page('<script type="application/ld+json">{"@type": "Product"}</script>x')
    assert page_names(outline, "https://e.example/shop/a/red-shoe?x=1") == [
        "@Product",
        "/3",
        "/shop",
        "-2",
        "red",
        "shoe",
    ]


def test_each_block_has_its_row_whatever_the_page_holds() -> None:
    weights = Weights({"<p": 1.0}, {"word": 0.5}, {"<p": [0.0] * 7})
    width = signals(page("<p>word"), weights, "").shape[1]
    for body in ("<p>word" * 50, "<title>t</title>x", "<h1>a</h1>" * 3 + "<ul><li><a href=x>y</a></ul>"):
        outline = page(body)
        rows = signals(outline, weights, "https://e.example/")
        assert rows.shape == (len(outline.blocks), width)
        assert np.isfinite(rows).all()
    assert main_blocks(page("<br><img>"), "") == []


def test_the_end_of_a_long_page_is_content_as_its_beginning_is() -> None:
    section = "<section><h2>Part {0}</h2><p>{1} This is a paragraph of part {0}, which says something.</p></section>"
    body = "".join(
        section.format(number, "Words of an article go on and on, sentence by sentence. " * 6) for number in range(600)
    )
    outline = page(f"<nav><ul><li><a href=/>Home</a></ul></nav><main><article><h1>Long</h1>{body}</article></main>")
    keep = main_blocks(outline, "https://e.example/articles/long-article")
    assert sum(keep[-200:]) == 200
    assert not keep[0]
