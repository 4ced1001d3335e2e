"""The page's files: all that it names is there, comes from here, and may run nothing but itself."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from gossamer.console import pages
from gossamer.console.access import PAGE

FOLDER = Path(str(files("gossamer.console") / "page"))
OWN = [path for path in sorted(FOLDER.iterdir()) if not path.name.startswith("uplot")]
BANNED = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "javascript:")


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=pages.routes("/crawls/one/")))


def test_all_that_the_page_names_is_served_with_its_type(client: TestClient) -> None:
    page = client.get("/crawls/one/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    named = set(re.findall(r'(?:src|href)="(static/[^"]+)"', page.text))
    scripts = [path.read_text() for path in OWN if path.suffix == ".js"]
    imported = {f"static/{name}" for text in scripts for name in re.findall(r'from "\./([^"]+)"', text)}
    assert {"static/main.js", "static/style.css", "static/charts.js", "static/uplot-LICENSE.txt"} <= named | imported
    for name in named | imported:
        answer = client.get(f"/crawls/one/{name}")
        assert answer.status_code == 200, name
        assert PAGE.fullmatch(f"/{name}"), "it is to be had without a token"
        wanted = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "txt": "text/plain"}
        assert answer.headers["content-type"].startswith(wanted[name.rpartition(".")[2]])


def test_every_answer_says_what_may_run(client: TestClient) -> None:
    for path in ("", "static/main.js", "static/nothing.js"):
        headers = client.get(f"/crawls/one/{path}").headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_nothing_else_of_the_package_is_served(client: TestClient) -> None:
    for name in ("app.py", "../app.py", "..%2Fapp.py", "__init__.py", "main.js/x"):
        assert client.get(f"/crawls/one/static/{name}").status_code == 404


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_our_files_parse_no_markup_and_name_nobody_else(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [word for word in BANNED if word in text] == []
    addresses = set(re.findall(r"https?://[\w.-]+", text))
    assert addresses <= {"http://www.w3.org", "https://example.org"}
    if path.suffix == ".html":
        assert " style=" not in text
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=", text)


def test_the_charts_have_their_licence_beside_them() -> None:
    [library] = FOLDER.glob("uplot-*.js")
    assert library.name.removeprefix("uplot-").removesuffix(".js") in (FOLDER / "index.html").read_text()
    assert "The MIT License" in (FOLDER / "uplot-LICENSE.txt").read_text()
    assert "Leon Sorokin" in (FOLDER / "uplot-LICENSE.txt").read_text()
