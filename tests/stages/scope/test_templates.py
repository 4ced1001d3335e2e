"""Templates of addresses, from narrow to wide."""

from __future__ import annotations

import pytest

from gossamer.stages.scope.templates import TemplateNode, literal_start, templates_of, width_of, years_of


@pytest.mark.parametrize(
    ("path", "narrowest"),
    [
        ("/", "/"),
        ("/library/os.path.html", "/library/os.path.html"),
        ("/calendar/2024/01/", "/calendar/{n}/{n}/"),
        ("/p123.html", "/p{n}.html"),
        ("/cal/2024-05", "/cal/{n}-{n}"),
        ("/s/0badf00d/3.html", "/s/{id}/{n}.html"),
        ("/550e8400-e29b-41d4-a716-446655440000/x", "/{id}/x"),
        ("/shop;jsessionid=AB12/x", "/shop;jsessionid={id}/x"),
        ("/(S(abc123))/x.aspx", "/{id}/x.aspx"),
        ("/blog/how-to-bake-a-cake.html", "/blog/{title}.html"),
        ("/blog/how-to-bake-a-cake.2", "/blog/{title}"),
        ("/find?b=1&a=2&a=3", "/find?a&b"),
        ("/facade.html", "/facade.html"),
        ("/deadbeef", "/deadbeef"),
        ("/00/01/02/x", "/{n}/{n}/{n}/x"),
        ("/00/01/02/03/04/x/", "/{n}/{n}/{n}/**/x/"),
        ("/a//////b", "/a////**/b"),
    ],
)
def test_what_varies_is_left_open(path: str, narrowest: str) -> None:
    assert templates_of("http://h.example:8080" + path)[0] == narrowest


def test_each_is_wider_than_the_one_before() -> None:
    assert templates_of("http://h/a/b/c/d/e/f/") == ("/a/b/c/d/e/f/", "/a/b/c/d/e/*", "/a/*/*/**", "/*/*/*/*/*/**")
    assert templates_of("http://h/a/b?x=1") == ("/a/b?x", "/a/b?*", "/a/*", "/*/*")
    assert templates_of("http://h/") == ("/",)
    assert [width_of(one) for one in templates_of("http://h/a/b?x=1")] == [1, 2, 2, 4]


@pytest.mark.parametrize("path", ["/", "/a/{n}", "/a/b?x", "/*/*", "/a/*/*/**"])
def test_addresses_of_a_template_begin_as_it_says(path: str) -> None:
    assert path.startswith(literal_start(path))
    assert not set("{*?") & set(literal_start(path))


def test_templates_are_bounded() -> None:
    address = "http://h/" + "x" * 3000 + "?" + "&".join(f"p{n}{'y' * 90}=1" for n in range(200))
    assert all(len(template) < 1500 for template in templates_of(address))


@pytest.mark.parametrize(
    ("path", "years"),
    [
        ("/2024/01/", [2024]),
        ("/cal?year=31337&month=2", [31337]),
        ("/2024-05-06", [2024]),
        ("/item/2024", []),
        ("/shop/3456/7", []),
        ("/shop/34567/07", []),
        ("/99/1/", []),
    ],
)
def test_years_stand_before_months_or_in_parameters(path: str, years: list[int]) -> None:
    assert years_of("http://h" + path) == years


def test_links_from_a_template_that_does_not_descend_from_it_are_no_sign_of_a_maze() -> None:
    album, photo = TemplateNode(), TemplateNode()
    photo.count_links(album, 40, [])
    assert (photo.fresh_links, photo.branching, photo.through) == (0.0, 0.0, 0.0)
    photo.count_links(photo, 2, [1, 2])
    album.count_links(photo, 1, [])
    assert 0 < photo.fresh_links < photo.branching
    assert 0 < album.through < 1, "photos descend from albums"
