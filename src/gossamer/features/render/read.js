(() => {
  // A page may give elements names that hide properties of `document`.
  const of = name => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const node = of("documentElement"), type = of("doctype"), opened = globalThis.gossamer, {shown, kept} = gossamerLinks;
  if (opened?.html && !opened.over) opened.keep();
  // A copy runs no scripts: it needs the styles that they set without markup, and nothing for browsers without scripts.
  const RULES_MAX = 20_000, texts = new Map();
  let left = 1 << 20;
  const textOf = sheet => [].slice.call(sheet?.cssRules ?? [], 0, RULES_MAX)
    .filter(rule => !(rule instanceof CSSImportRule)).map(rule => rule.cssText).join("\n");
  const fill = (sheet, style) => {
    if (!texts.has(sheet)) texts.set(sheet, textOf(sheet));
    const text = texts.get(sheet);
    if (!text || text.length > left) return;
    left -= text.length;
    style().textContent = text;
  };
  const added = root => () => root.appendChild(Document.prototype.createElement.call(document, "style"));
  for (const root of node ? gossamerRoots(node) : []) {
    for (const one of root.querySelectorAll("noscript")) one.textContent = "";
    for (const one of root.querySelectorAll("style")) if (!one.textContent.trim()) fill(one.sheet, () => one);
    for (const one of root == node ? of("adoptedStyleSheets") : root.adoptedStyleSheets) fill(one, added(root));
  }
  let html = opened?.html || (node ? gossamerWhole(node, true) : "");
  const gone = [...shown].filter(([href]) => !kept.has(href)).map(([, link]) => link);
  if (gone.length) html += `\n<section data-shown-before>${gone.join("\n")}</section>`;
  html = (type ? new XMLSerializer().serializeToString(type) : "") + html.toWellFormed();
  const size = new TextEncoder().encode(html).length;
  return {url: opened?.url || of("URL"), size: size, html: size > BYTES_MAX ? "" : html};
})()
