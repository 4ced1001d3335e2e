"""A site whose pages are made in every way: by its server, by Preact, Vue and Solid in the browser, by server and React
together. Some show more when a visitor scrolls, clicks, opens a menu, or goes to a hash route.
"""

from __future__ import annotations

import json
from pathlib import Path

PREACT = Path(__file__).parent / "data/preact-11.2.0.js"
FRAMEWORKS = Path(__file__).parents[2] / ".parts/frameworks"
"""Packages of npm, each in a folder of its name: `make frameworks` puts them there."""
LIBRARIES = {
    "/vue.js": "vue/dist/vue.global.prod.js", "/vue-router.js": "vue-router/dist/vue-router.global.prod.js",
    "/react.js": "react/umd/react.production.min.js", "/react-dom.js": "react-dom/umd/react-dom.production.min.js",
    "/solid.js": "solid-js/dist/solid.js", "/solid-web.js": "solid-js/web/dist/web.js",
    "/solid-html.js": "solid-js/html/dist/html.js",
}  # fmt: skip
WORDS = "A server has written these words, and a browser shows them as they are. " * 12
HEAD = "<!doctype html><meta charset=utf-8><title>{title}</title><script src=/statistics.js></script>"
BARE = "<title>{title}</title>"
STATISTICS = "window.visits = (window.visits || 0) + 1;"

DOCS, PLAIN, SSR, MENU, LISTS, ITEMS = 300, 100, 40, 30, 8, 8
ONLY_EACH, BY_MENU = 3, 10
APP_ITEMS, HYBRID, RELATED_EACH, STORIES, BEHIND_EACH, LAZY_EACH = 5, 8, 3, 40, 4, 5
FEEDS = ("observed", "clicked", "scrolled")
ROUTES = ("/", "/guide", "/guide/first", "/about")
"""Behind `#`. The first route does not link to the third."""
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
VUE = """
const path = location.pathname;
Vue.createApp({
  template: `<p v-if="!items">Loading …</p>
    <ul v-else-if="path == '/vue/'"><li v-for="one in items"><a :href="one.url">{{ one.name }}</a></li></ul>
    <main v-else><h1>{{ found.name }}</h1><p>{{ found.text }}</p></main>`,
  data: () => ({path, items: null}),
  computed: {found() { return this.items.find(one => one.url == path); }},
  async mounted() { this.items = await (await fetch("/api/vue.json")).json(); },
}).mount("#app");
"""
SOLID = """
import {createResource} from "solid-js";
import {render} from "solid-js/web";
import html from "solid-js/html";
const path = location.pathname;
function App() {
  const [items] = createResource(async () => await (await fetch("/api/solid.json")).json());
  return () => {
    if (!items()) return html`<p>Loading …</p>`;
    if (path == "/solid/") return items().map(one => html`<li><a href=${one.url}>${one.name}</a></li>`);
    const found = items().find(one => one.url == path);
    return html`<main><h1>${found.name}</h1><p>${found.text}</p></main>`;
  };
}
render(App, document.querySelector("#app"));
"""
REACT = """
const {createElement: h, useState, useEffect} = React, sent = JSON.parse(document.querySelector("#data").textContent);
function Page() {
  const [related, setRelated] = useState([]);
  useEffect(() => { setTimeout(() => setRelated(sent.related), 500); }, []);
  return [h("h1", {key: 1}, sent.title), h("p", {key: 2}, sent.text),
          ...sent.next.map(url => h("a", {key: url, href: url}, url)),
          ...related.map(url => h("a", {key: url, href: url}, url))];
}
ReactDOM.hydrateRoot(document.querySelector("#page"), h(Page));
"""
ROUTED = """
const behind = JSON.parse(document.querySelector("#behind").textContent);
const page = path => ({template: `<main><h1>Route ${path}</h1><p>The words of ${path}.</p>
  <router-link v-if="'${path}' == '/guide'" to="/guide/first">first</router-link>
  <a v-for="url in urls" :href="url">{{ url }}</a></main>`, data: () => ({urls: behind[path]})});
const router = VueRouter.createRouter({
  history: VueRouter.createWebHashHistory(),
  routes: Object.keys(behind).map(path => ({path, component: page(path)})),
});
Vue.createApp({template: `<nav><router-link to="/guide">Guide</router-link> <router-link to="/about">About</router-link>
  </nav><router-view/>`}).use(router).mount("#app");
"""
FEED = """
const kind = location.pathname.split("/")[2], list = document.querySelector("#list");
let n = 0, loading = false;
async function more() {
  if (loading) return;
  loading = true;
  const urls = await (await fetch(`/api/feed-${kind}-${n}.json`)).json();
  n++; loading = false;
  for (const url of urls) {
    const story = list.appendChild(document.createElement("p"));
    story.style.height = "300px";
    story.innerHTML = `<a href="${url}">${url}</a>`;
  }
  if (n == 5) document.querySelector("#end").remove();
}
if (kind == "observed")
  new IntersectionObserver(seen => { if (seen.some(one => one.isIntersecting) && n < 5) more(); })
    .observe(document.querySelector("#end"));
else if (kind == "clicked")
  document.querySelector("#end").innerHTML = '<button onclick="more()">Load more …</button>';
else
  addEventListener("scroll", () => { if (n < 5 && innerHeight + scrollY > document.body.scrollHeight - 50) more(); });
"""
LAZY = """
const fill = async (node, name) => {
  for (const url of await (await fetch(`/api/lazy-${name}.json`)).json())
    node.insertAdjacentHTML("beforeend", `<a href="${url}">${url}</a>`);
};
document.querySelector("details").addEventListener("toggle", event => fill(event.target, "details"), {once: true});
document.querySelector("button").addEventListener("click", event => {
  event.target.setAttribute("aria-expanded", "true");
  fill(document.querySelector("#menu"), "menu");
});
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


APP_SHELL = '<!doctype html><meta charset=utf-8><title>{0}</title><div id="app"></div>{1}'
SOLID_IMPORTS = json.dumps({
    "imports": {"solid-js": "/solid.js", "solid-js/web": "/solid-web.js", "solid-js/html": "/solid-html.js"}
})  # fmt: skip
SHELLS = {
    "vue": APP_SHELL.format("Vue", "<script src=/vue.js></script><script src=/vue-app.js></script>"),
    "solid": APP_SHELL.format(
        "Solid", f"<script type=importmap>{SOLID_IMPORTS}</script><script type=module src=/solid-app.js></script>"
    ),
}


def _links(section: str, first: int, end: int) -> str:
    return "".join(f"<a href=/{section}/{n}>{section} {n}</a> " for n in range(first, min(first + AHEAD, end)))


def _page(title: str, body: str, head: str = HEAD) -> str:
    return f"{head.format(title=title)}<main><h1>{title}</h1><p>{title}: {WORDS}</p>{body}</main>"


def mixed_site() -> dict[str, str]:
    """Return pages and resources by path. Rendering all of them finds all pages."""
    sections = (
        "docs/0", "plain/0", "ssr/0", "menu/0", "list/0", "shop/", "vue/", "solid/", "hybrid/0", "routed/", "lazy/",
        *(f"feed/{kind}" for kind in FEEDS),
    )  # fmt: skip
    site = {"/": _page("Start", "".join(f"<a href=/{one}>{one}</a> " for one in sections))}
    for n in range(DOCS):
        site[f"/docs/{n}"] = _page(f"Documentation {n}", _links("docs", n + 1, DOCS) + _links("docs", 0, n))
    for n in range(PLAIN):
        site[f"/plain/{n}"] = _page(f"Plain {n}", _links("plain", n + 1, PLAIN), BARE)
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
    site |= {f"/only/{n}": _page(f"Only {n}", "", BARE) for n in range(ONLY_EACH * LISTS)}
    site |= {f"/by-menu/{n}": _page(f"By the menu {n}", "", BARE) for n in range(BY_MENU)}
    site |= dict.fromkeys(("/shop/", *(f"/shop/item/{n}" for n in range(ITEMS))), SHELL)
    items = [{"url": f"/shop/item/{n}", "name": f"Item {n}", "text": f"{WORDS} {n}"} for n in range(ITEMS)]
    return site | _applications() | _interactive() | {
        "/api/shop.json": json.dumps(items), "/app.js": APP, "/preact.js": PREACT.read_text(encoding="utf-8"),
        "/more.js": MORE, "/menu.js": MENU_JS, "/statistics.js": STATISTICS,
    }  # fmt: skip


def _applications() -> dict[str, str]:
    """Return what Vue and Solid show, and what a server sends for React to go on with."""
    site = {path: (FRAMEWORKS / file).read_text(encoding="utf-8") for path, file in LIBRARIES.items()}
    site |= {"/vue-app.js": VUE, "/solid-app.js": SOLID, "/react-app.js": REACT}
    for name, shell in SHELLS.items():
        urls = [f"/{name}/item/{n}" for n in range(APP_ITEMS)]
        site |= dict.fromkeys((f"/{name}/", *urls), shell)
        made = [{"url": url, "name": f"Item {url}", "text": f"{WORDS} {url}"} for url in urls]
        site[f"/api/{name}.json"] = json.dumps(made)
    for n in range(HYBRID):
        following = [f"/hybrid/{one}" for one in range(n + 1, min(n + 3, HYBRID))]
        related = [f"/related/{one}" for one in range(RELATED_EACH * n, RELATED_EACH * (n + 1))]
        data = {"title": f"Hybrid {n}", "text": f"{n}: {WORDS}", "next": following, "related": related}
        sent = f"<h1>{data['title']}</h1><p>{data['text']}</p>" + "".join(f"<a href={u}>{u}</a>" for u in following)
        site[f"/hybrid/{n}"] = (
            f"<!doctype html><meta charset=utf-8><title>Hybrid {n}</title><div id=page>{sent}</div>"
            f"<script id=data type=application/json>{json.dumps(data)}</script><script src=/react.js></script>"
            "<script src=/react-dom.js></script><script src=/react-app.js></script>"
        )
        site |= {url: _page(f"Related {url}", "", BARE) for url in related}
    return site


def _interactive() -> dict[str, str]:
    """Return pages that show more when something is done in them, what they load, and where they lead."""
    site = {"/feed.js": FEED, "/lazy.js": LAZY, "/routed.js": ROUTED}
    urls: list[str] = []
    for kind in FEEDS:
        stories = [f"/story/{kind}/{n}" for n in range(STORIES)]
        urls += stories
        each = STORIES // 5
        site |= {f"/api/feed-{kind}-{n}.json": json.dumps(stories[n * each : (n + 1) * each]) for n in range(5)}
        body = "<div id=list></div><div id=end>…</div><script src=/feed.js></script>"
        site[f"/feed/{kind}"] = _page(f"Feed {kind}", body, BARE)
    for name in ("details", "menu"):
        behind = [f"/lazy/{name}/{n}" for n in range(LAZY_EACH)]
        site[f"/api/lazy-{name}.json"] = json.dumps(behind)
        urls += behind
    menus = "<details><summary>More</summary></details><button aria-expanded=false>Menu</button><div id=menu></div>"
    site["/lazy/"] = _page("Lazy", f"{menus}<script src=/lazy.js></script>", BARE)
    routes = {path: [f"/behind{path.rstrip('/')}/{n}" for n in range(BEHIND_EACH)] for path in ROUTES}
    site["/routed/"] = APP_SHELL.format(
        "Routed",
        f"<script id=behind type=application/json>{json.dumps(routes)}</script><script src=/vue.js></script>"
        "<script src=/vue-router.js></script><script src=/routed.js></script>",
    )
    urls += [url for behind in routes.values() for url in behind]
    return site | {url: _page(url, "", BARE) for url in urls}


def is_resource(path: str) -> bool:
    """Say whether a path of the site is no page."""
    return path.endswith((".js", ".json"))
