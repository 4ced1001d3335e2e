((wanted, bytesMax) => {
  const of = (name, from = Document.prototype) => Object.getOwnPropertyDescriptor(from, name).get.call(document);
  const state = globalThis.gossamer ??= {opened: new WeakSet(), hovered: new WeakSet(), clicked: new WeakMap(), visited: new Set(), html: "",
                                         waiting: new Set(), bytes: 0, height: -1, count: -1};
  const root = of("documentElement"), roots = root ? gossamerRoots(root, true) : [];
  const all = selector => roots.flatMap(one => [...one.querySelectorAll(selector)]).slice(0, gossamerMost.elements);
  const count = all("*").length, shown = node => node.checkVisibility();
  const leads = node => node.matches("a[href]") && !/^(#|javascript:)/i.test(node.getAttribute("href"));
  let done = 0;
  gossamerNote(roots);
  const open = () => {
    for (const node of all("details:not([open])")) {
      if (state.opened.has(node)) continue;
      state.opened.add(node); node.open = true; done++;
    }
    for (const node of all("[aria-expanded=false]:not(input, select, textarea)")) {
      if (state.opened.has(node) || node.closest("form") || leads(node) || !shown(node)) continue;
      state.opened.add(node); node.click(); done++;
    }
    for (const node of all("nav li, nav a, [role=menuitem], [aria-haspopup], li:has(> ul)")) {
      if (state.hovered.has(node)) continue;
      state.hovered.add(node);
      for (const type of ["pointerover", "pointerenter", "mouseover", "mouseenter"])
        node.dispatchEvent(new MouseEvent(type, {bubbles: type.endsWith("over")}));
    }
    // A tab takes the place of another: one with each step.
    const tab = all("[role=tab]").find(one => !state.opened.has(one) && !leads(one) && shown(one));
    if (tab) { state.opened.add(tab); tab.click(); done++; }
  };
  const MORE = new RegExp("^[^\\p{L}]*(" + [
    "(load|show|view|see|read) (next )?(\\d+ )?(more|all)\\b.{0,20}", "(\\d+ )?more( (results|items|posts|articles))?",
    "(mehr|weitere) ([\\p{L}\\d]+ )?(laden|anzeigen|zeigen|lesen)", "(mehr|weitere)( \\p{L}+)?", "(charger|afficher|voir) plus",
    "(ver|cargar|mostrar) más", "carica altri", "mostra altro", "meer (laden|tonen)", "(carregar|ver) mais",
    "もっと見る", "加载更多", "查看更多",
  ].join("|") + ")[^\\p{L}]*$", "iu");
  const more = () => {
    for (const node of all("button, [role=button], a:not([href]), a[href^='#'], a[href^='javascript:']")) {
      if (node.type == "submit" && node.form || node.disabled || !shown(node)) continue;
      const text = (node.getAttribute("aria-label") || node.textContent || "").slice(0, 80).trim();
      if (!MORE.test(text) || /^#!?\//.test(node.getAttribute("href") || "")) continue;
      if (state.clicked.get(node) === count) continue;  // The last click brought nothing.
      state.clicked.set(node, count); node.click(); done++;
    }
  };
  const scroll = () => {
    const boxes = gossamerBoxes(roots);
    const height = [root, ...boxes].reduce((sum, node) => sum + node.scrollHeight, 0);
    if (height == state.height && count == state.count) return;
    state.height = height; state.count = count;
    const before = scrollY;
    scrollTo(0, root.scrollHeight);
    for (const node of boxes) node.scrollTop = node.scrollHeight;
    // A page without its style sheets may have nothing to scroll, and then no event says so.
    if (scrollY == before) document.dispatchEvent(new Event("scroll", {bubbles: true}));
    done++;
  };
  const route = () => {
    if (state.html) state.keep();
    else {
      state.html = gossamerWhole(root, true); state.url = of("URL"); state.visited.add(location.hash || "#/");
      state.keep = () => {
        const html = document.body ? gossamerWhole(document.body) : "", hash = location.hash.replace(/[^\w#!/?=.-]/g, "");
        state.bytes += html.length;
        if (state.bytes > bytesMax) state.over = true;
        else state.html += `\n<section data-hash-route="${hash}">${html}</section>`;
      };
    }
    if (state.over) return;
    for (const node of all("a[href*='#/'], a[href*='#!/']")) {
      if (!/^#!?\//.test(node.hash) || state.visited.has(node.hash)) continue;
      if (node.href.split("#")[0] != of("URL").split("#")[0]) continue;
      state.waiting.add(node.hash);
    }
    const [next] = state.waiting;
    if (next === undefined) { state.over = true; return; }
    state.waiting.delete(next); state.visited.add(next); state.height = -1;
    location.hash = next; done++;
  };
  // What is shown further would make the document too long to be kept.
  if (!root || root.innerHTML.length > bytesMax / 2) return 0;
  if (wanted.includes("details")) open();
  if (wanted.includes("more")) more();
  if (wanted.includes("scroll")) scroll();
  if (!done && wanted.includes("routes") && !state.over
      && (state.html || all("a[href*='#/'], a[href*='#!/']").length)) route();
  return done;
})