"""`--embeds` against nginx: of two hosts one is crawled, and of the other what its pages need, as the log has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Crawl
from tests.acceptance.nginx import Nginx

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.promise(
        "What is fetched",
        "With `--embeds` everything that pages need is fetched, and no link outside the scope is followed from there.",
    ),
]

SITE = {
    "index.html": "<link rel=stylesheet href=FAR/s/main.css><img src=/i/a.png srcset='FAR/i/b.png 2x'>"
    "<a href=/two.html>2</a><a href=FAR/off.html>off</a><iframe src=FAR/frame.html></iframe>",
    "two.html": "<style>@import 'FAR/s/other.css'; p{background:url(/i/c.png)}</style>"
    "<video poster=/i/d.png src=FAR/v.mp4></video>",
}
FAR = {
    "s/main.css": "@font-face{src:url(../f/font.woff2)} p{background:url(img.svg)}",
    "s/other.css": "@import url(deeper.css);",
    "s/deeper.css": "p{background:url(/i/e.png)}",
    "s/img.svg": "<svg xmlns='http://www.w3.org/2000/svg'><image href='/i/f.png'/></svg>",
    "frame.html": "<script src=/code.js></script><a href=/off.html>off</a>",
    "off.html": "<img src=/never.png>",
    **dict.fromkeys(("f/font.woff2", "i/e.png", "i/f.png", "i/b.png", "v.mp4", "code.js", "never.png"), "x"),
}


def test_what_pages_need_and_no_more(command: Crawl, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    tmp_path.chmod(0o755)
    with Nginx(root, tmp_path / "nginx", addresses=2) as nginx:
        near, far = nginx.origins
        for name, text in {**SITE, **FAR, **dict.fromkeys(("i/a.png", "i/c.png", "i/d.png"), "x")}.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text.replace("FAR", far))
        options = ("--allow-private", "--politeness", "own", "--no-robots", "--quiet", "--embeds")
        done = command("crawl", f"{near}/", "-o", tmp_path / "c", *options)
        assert done.returncode == 0, done.stderr
        asked = sorted((entry.host, entry.path) for entry in nginx.log())
    near_host, far_host = near.split("/")[2].partition(":")[0], far.split("/")[2].partition(":")[0]
    wanted_near = {"/", "/two.html", "/i/a.png", "/i/c.png", "/i/d.png"}
    wanted_far = {f"/{name}" for name in FAR} - {"/off.html", "/never.png"}
    assert asked == sorted([*((near_host, path) for path in wanted_near), *((far_host, path) for path in wanted_far)])
