(() => {
  // A page may give elements names that hide properties of `document`.
  const of = name => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const node = of("documentElement"), opened = globalThis.gossamer, {shown, kept} = gossamerLinks;
  if (opened?.html && !opened.over) opened.keep();
  let html = opened?.html || (node ? gossamerWhole(node, true) : "");
  const gone = [...shown].filter(([href]) => !kept.has(href)).map(([, link]) => link);
  if (gone.length) html += `\n<section data-shown-before>${gone.join("\n")}</section>`;
  html = html.toWellFormed();
  const size = new TextEncoder().encode(html).length;
  return {url: opened?.url || of("URL"), size: size, html: size > BYTES_MAX ? "" : html};
})()
