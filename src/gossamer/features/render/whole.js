// Markup lacks shadow roots, what scripts wrote into frames without an address, and links that a page showed before.
globalThis.gossamerRoots ??= (from, isAgain) => {
  // Elements are counted much faster than they are looked at.
  const last = globalThis.gossamerLast, count = Element.prototype.getElementsByTagName.call(from, "*").length;
  if (isAgain && last?.from == from && last.count == count) return last.roots;
  // A page may give elements names that hide properties of others.
  const shadowOf = Object.getOwnPropertyDescriptor(Element.prototype, "shadowRoot").get, roots = [from];
  const closed = globalThis.gossamerClosed ??= new WeakMap();
  for (const root of roots) {
    for (const node of (root.nodeType == 1 ? Element : DocumentFragment).prototype.querySelectorAll.call(root, "*")) {
      let shadow = shadowOf.call(node) || closed.get(node);
      if (!shadow && node.localName.includes("-")) {
        // A custom element has a closed root for those who have its internals, which it gives once.
        try { shadow = HTMLElement.prototype.attachInternals.call(node).shadowRoot; } catch { continue; }
        closed.set(node, shadow);
      }
      if (shadow) roots.push(shadow);
    }
  }
  globalThis.gossamerLast = {from, count, roots};
  return roots;
};
// Elements of a kind that are looked at, links in each look and in the end, and characters of links that are gone.
globalThis.gossamerMost ??= {elements: 5000, links: 2000, kept: 1e6, chars: 1 << 20};
globalThis.gossamerLinks ??= {shown: new Map(), kept: new Set(), chars: 0};
globalThis.gossamerNote ??= (roots, isKept) => {
  const {shown, kept} = gossamerLinks, most = gossamerMost;
  for (const root of roots) for (const node of [...root.querySelectorAll("a[href]")].slice(0, isKept ? most.kept : most.links)) {
    if (isKept) kept.add(node.href);
    else if (!shown.has(node.href) && (gossamerLinks.chars += node.outerHTML.length) < most.chars)
      shown.set(node.href, node.outerHTML);
  }
};
globalThis.gossamerWhole ??= (node, isOuter) => {
  const roots = gossamerRoots(node), inner = roots.length > 1 ? node.getHTML({shadowRoots: roots.slice(1)}) : "";
  let html = inner || node.innerHTML;
  if (isOuter) html = inner ? node.cloneNode(false).outerHTML.replace(/<\/[^>]*>$/, end => inner + end) : node.outerHTML;
  gossamerNote(roots, true);
  for (const root of roots) for (const frame of root.querySelectorAll("iframe")) {
    const body = frame.contentDocument?.body, {src, srcdoc} = frame;
    if (!body?.firstChild || /^https?:/.test(src) && !srcdoc || srcdoc && !/<script/i.test(srcdoc)) continue;
    html += `\n<section data-frame>${gossamerWhole(body)}</section>`;
  }
  return html;
};
globalThis.gossamerBoxes ??= roots => roots.flatMap(root => [...root.querySelectorAll("main, div, section, ul, ol")])
  .slice(0, gossamerMost.elements).filter(node => node.scrollHeight > node.clientHeight + 50 && node.clientHeight > 100
    && /auto|scroll/.test(getComputedStyle(node).overflowY));
