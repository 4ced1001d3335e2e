"""A site whose pages are made in every way: by its server, by Preact in the browser, by both."""

from __future__ import annotations

import json
from pathlib import Path

PREACT = Path(__file__).parent / "data/preact-11.2.0.js"
WORDS = "A server has written these words, and a browser shows them as they are. " * 12
HEAD = "<!doctype html><meta charset=utf-8><title>{title}</title><script src=/statistics.js></script>"
STATISTICS = "window.visits = (window.visits || 0) + 1;"

DOCS, PLAIN, SSR, MENU, LISTS, ITEMS = 300, 60, 40, 30, 8, 8
ONLY_EACH, BY_MENU = 3, 10
AHEAD = 12
"""Pages of its section that a page links to."""

APP = """
import {h, render, Component} from "/preact.js";
class Page extends Component {
  componentDidMount() {
    fetch("/api/shop.json").then(answer => answer.json()).then(items => this.setState({items}));
  }
  render({path}, {items}) {
    if (!items) return h("p", null, "Loading …");
    if (path == "/shop/") return h("ul", null, items.map(item => h("li", null, h("a", {href: item.url}, item.name))));
    const item = items.find(one => one.url == path);
    return h("main", null, h("h1", null, item.name), h("p", null, item.text));
  }
}
render(h(Page, {path: location.pathname}), document.querySelector("#app"));
"""
MORE = """
for (const n of JSON.parse(document.querySelector("#more").textContent)) {
  const link = document.querySelector("main").appendChild(document.createElement("a"));
  link.href = `/only/${n}`; link.textContent = `Only ${n}`;
}
"""
MENU_JS = f"""
for (let n = 0; n < {BY_MENU}; n++) {{
  const link = document.body.appendChild(document.createElement("a"));
  link.href = `/by-menu/${{n}}`; link.textContent = `Menu ${{n}}`;
}}
"""
SHELL = (
    "<!doctype html><meta charset=utf-8><title>Shop</title><noscript>You need to enable JavaScript to run this app."
    '</noscript><div id="app"></div><script type=module src=/app.js></script>'
)


def _links(section: str, first: int, end: int) -> str:
    return "".join(f"<a href=/{section}/{n}>{section} {n}</a> " for n in range(first, min(first + AHEAD, end)))


def _page(title: str, body: str, head: str = HEAD) -> str:
    return f"{head.format(title=title)}<main><h1>{title}</h1><p>{title}: {WORDS}</p>{body}</main>"


def mixed_site() -> dict[str, str]:
    """Return pages and resources by path. Rendering all of them finds all pages."""
    sections = ("docs/0", "plain/0", "ssr/0", "menu/0", "list/0", "shop/")
    site = {"/": _page("Start", "".join(f"<a href=/{one}>{one}</a> " for one in sections))}
    for n in range(DOCS):
        site[f"/docs/{n}"] = _page(f"Documentation {n}", _links("docs", n + 1, DOCS) + _links("docs", 0, n))
    for n in range(PLAIN):
        site[f"/plain/{n}"] = _page(f"Plain {n}", _links("plain", n + 1, PLAIN), "<title>{title}</title>")
    for n in range(SSR):
        body = f"<div id=__next>{_links('ssr', n + 1, SSR)}</div><script id=__NEXT_DATA__ type=application/json>{{}}"
        site[f"/ssr/{n}"] = _page(f"Rendered by the server {n}", f"{body}</script>")
    for n in range(MENU):
        site[f"/menu/{n}"] = _page(f"Menu {n}", _links("menu", n + 1, MENU) + "<script src=/menu.js></script>")
    for n in range(LISTS):
        more = json.dumps([*range(ONLY_EACH * n, ONLY_EACH * (n + 1))])
        body = _links("list", n + 1, min(n + 4, LISTS)) + _links("docs", 0, DOCS)
        body += f"<script id=more type=application/json>{more}</script></main><script src=/more.js></script>"
        site[f"/list/{n}"] = _page(f"List {n}", body)
    bare = "<title>{title}</title>"
    site |= {f"/only/{n}": _page(f"Only {n}", "", bare) for n in range(ONLY_EACH * LISTS)}
    site |= {f"/by-menu/{n}": _page(f"By the menu {n}", "", bare) for n in range(BY_MENU)}
    site |= dict.fromkeys(("/shop/", *(f"/shop/item/{n}" for n in range(ITEMS))), SHELL)
    items = [{"url": f"/shop/item/{n}", "name": f"Item {n}", "text": f"{WORDS} {n}"} for n in range(ITEMS)]
    return site | {
        "/api/shop.json": json.dumps(items), "/app.js": APP, "/preact.js": PREACT.read_text(encoding="utf-8"),
        "/more.js": MORE, "/menu.js": MENU_JS, "/statistics.js": STATISTICS,
    }  # fmt: skip


RESOURCES = frozenset(("/api/shop.json", "/app.js", "/preact.js", "/more.js", "/menu.js", "/statistics.js"))
