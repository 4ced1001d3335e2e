"""Walls are recognized by their headers and markup; pages that only write about them are pages."""

from __future__ import annotations

import pytest

from gossamer.model.errors import ConfigError
from gossamer.stages.process.walls import SMALL_BYTES_MAX, Walls, offer_of

WALLS = Walls.ours()
URL = "https://shop.example.org/item"
# Shortened from what the products send: status, title, markup, and the product.
SENT = [
    (403, "Just a moment...", "<script>(function(){window._cf_chl_opt={cvId:'3'};", "cloudflare"),
    (403, "Attention Required! | Cloudflare", '<h1 data-translate="block_headline">Sorry', "cloudflare"),
    (403, "Access Denied", "<p>https&#58;&#47;&#47;errors&#46;edgesuite&#46;net&#47;18&#46;2d", "akamai"),
    (200, "Challenge Validation", '<div id="sec-if-cpt-container" style="display: none">', "akamai"),
    (403, "shop.example.org", "<script data-cfasync=x src='https://ct.captcha-delivery.com/c.js'>", "datadome"),
    (200, "shop.example.org", "<script data-cfasync=x src='https://ct.captcha-delivery.com/i.js'>", "datadome"),
    (403, "Access to this page has been denied", '<div id="px-captcha" role="main">', "human"),
    (403, "", "Request unsuccessful. Incapsula incident ID: 877000560", "imperva"),
    (200, "", '<iframe id="main-iframe" src="/_Incapsula_Resource?SWUDNSAI=31&xinfo=1" frameborder=0>', "imperva"),
    (405, "Human Verification", "<script>window.gokuProps = {};</script>", "aws-waf"),
    (202, "", "<script>window.awsWafCookieDomainList = [];window.gokuProps = {};</script>", "aws-waf"),
    (200, "Making sure you're not a bot!", '<script id="anubis_version" type="application/json">"1.24.0"', "anubis"),
    (200, "Checking you are not a bot", 'href="/.well-known/.git.gammaspectra.live/git/go-away/s.css"', "go-away"),
    (429, "Vercel Security Checkpoint", "<script src=/.well-known/vercel/security/static/c.js>", "vercel"),
    (202, "Robot Challenge Screen", '<meta content="0;/.well-known/sgcaptcha/?r=%2F">', "siteground"),
    (200, "You are being redirected...", "<script>var s={},sucuri_cloudproxy_js='';", "sucuri"),
    (403, "DDoS-Guard", '<script src="/.well-known/ddos-guard/js-challenge/index.js">', "ddos-guard"),
    (200, "Request Rejected", "The requested URL was rejected. Please consult with your administrator.<br>", "f5"),
    (429, "", "<script>window.KPSDK={};KPSDK.now=Date.now;KPSDK.start=KPSDK.now();</script>", "kasada"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "title", "markup", "name"), SENT)
def test_what_products_send_is_recognized(status: int, title: str, markup: str, name: str) -> None:
    body = f"<html><head><title>{title}</title></head><body>{markup}</body></html>".encode()
    wall = WALLS.in_page(URL, title, body) if status < 300 else WALLS.in_error(body)
    assert wall is not None
    assert (wall.name, wall.consent) == (name, False)
    assert wall.source.startswith("https://")


@pytest.mark.parametrize(("_", "title", "markup", "__"), SENT)
def test_a_page_that_quotes_one_is_a_page(_: int, title: str, markup: str, __: str) -> None:
    """An article may have the markup in an example, or the title, or both with more around them."""
    article = "<p>words of an article about it</p>" * 300
    assert len(article) > SMALL_BYTES_MAX
    quoted = f"<title>How it works</title><pre>{markup}</pre>{article}".encode()
    assert WALLS.in_page(URL, "How it works", quoted) is None
    assert WALLS.in_page(URL, "How it works", quoted[:1_000]) is None
    assert WALLS.in_page(URL, title or "A title", article.encode()) is None
    assert WALLS.in_page(URL, f"{title} - explained", quoted) is None


@pytest.mark.parametrize(
    ("name", "value", "wall"),
    [
        ("cf-mitigated", "challenge", "cloudflare"),
        ("CF-Mitigated", "Challenge", "cloudflare"),
        ("cf-mitigated", "challenged by no one", None),
        ("cf-ray", "challenge", None),
        ("x-amzn-waf-action", "captcha", "aws-waf"),
        ("x-vercel-mitigated", "deny", "vercel"),
        ("sg-captcha", "challenge", "siteground"),
        ("server", "cloudflare", None),
    ],
)
def test_headers_name_a_wall(name: str, value: str, wall: str | None) -> None:
    found = WALLS.in_headers((("Content-Type", "text/html"), (name, value)))
    assert (found.name if found is not None else None) == wall


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://consent.google.de/ml?continue=https://google.de/", "google"),
        ("https://consent.yahoo.com/v2/collectConsent?sessionId=1", "yahoo"),
        ("https://myprivacy.dpgmedia.nl/consent?siteKey=1", "dpg"),
        ("https://www.google.de/", None),
    ],
)
def test_consent_pages_are_marked(url: str, name: str | None) -> None:
    wall = WALLS.in_page(url, "A title", b"<p>text")
    assert (wall.name if wall is not None else None) == name
    assert wall is None or wall.consent


def test_an_operators_rules_take_the_place_of_ours() -> None:
    rules = Walls.read('[[wall]]\nname = "mine"\nsource = "x"\nbody = ["my wall"]\n', "walls.toml")
    found = rules.in_error(b"<p>my wall")
    assert found is not None
    assert found.name == "mine"
    assert rules.in_error(b"window._cf_chl_opt") is None
    assert Walls.read("", "empty").in_error(b"window._cf_chl_opt") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[wall]]\nname = 'x'", "source"),
        ("[[wall]]\nname = 'x'\nsource = ''\nbody = 1", "body"),
        ("[[wall]]\nname = 'x'\nsource = ''\nbodies = ['a']", "bodies"),
        ("[[wall]]\nname = 'x'\nsource = ''\nheaders = { a = '(' }", "unterminated"),
        ("wall", "mine"),
    ],
)
def test_mistakes_in_rules_are_one_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        Walls.read(text, "mine.toml")
    assert "\n" not in str(caught.value)


def test_an_offer_is_what_the_headers_say_of_a_price() -> None:
    headers = (("Crawler-Price", "USD 0.01"), ("crawler-error", "MissingCrawlerPrice"), ("Server", "x"))
    assert offer_of(headers) == "crawler-price: USD 0.01; crawler-error: MissingCrawlerPrice"
    assert offer_of((("Server", "x"),)) == ""
    assert len(offer_of((("crawler-price", "9" * 5_000),))) == 1_000
