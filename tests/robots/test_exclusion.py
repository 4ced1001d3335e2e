import pytest

from gossamer.model.errors import ConfigError
from gossamer.robots.exclusion import Exclusions

LIST = """
# asked by mail
example.org
.below.example   # and all below it
*.star.example
Bücher.example
[2001:DB8::1]
192.0.2.1
"""


@pytest.mark.parametrize(
    ("host", "covered"),
    [
        ("example.org", True),
        ("www.example.org", False),
        ("below.example", True),
        ("a.b.below.example", True),
        ("notbelow.example", False),
        ("star.example", True),
        ("x.star.example", True),
        ("xn--bcher-kva.example", True),
        ("[2001:db8::1]", True),
        ("192.0.2.1", True),
        ("example", False),
        ("", False),
    ],
)
def test_who_is_left_alone(host: str, covered: bool) -> None:
    assert Exclusions(LIST.splitlines()).covers(host) is covered


def test_an_empty_list_covers_nobody() -> None:
    assert not Exclusions().covers("example.org")


@pytest.mark.parametrize("line", ["two words", "https://example.org/", "a/b", "*", ".", "x*y", "example.org:80", "a@b"])
def test_a_line_that_is_no_host_is_named(line: str) -> None:
    with pytest.raises(ConfigError, match=r"line 2: .* is no host"):
        Exclusions(["ok.example", line])


def test_the_list_follows_its_file() -> None:
    exclusions = Exclusions()
    assert exclusions.update("a.example", 1.0)
    assert exclusions.is_current(1.0)
    assert not exclusions.update("b.example", 1.0)
    assert exclusions.covers("a.example")
    assert exclusions.update("b.example", 2.0)
    assert exclusions.covers("b.example")
    assert not exclusions.covers("a.example")
    with pytest.raises(ConfigError):
        exclusions.update("no host", 3.0)
    assert exclusions.covers("b.example")
