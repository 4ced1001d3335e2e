(() => {
  const root = document.documentElement, click = HTMLElement.prototype.click;
  const chosen = "a:not([href]), a[href^='#'], a[href^='javascript:' i], [role=link], [onclick], [routerlink], [data-href]";
  const nodes = root ? gossamerRoots(root).flatMap(one => [...one.querySelectorAll(chosen)]) : [];
  let count = 0;
  for (const node of nodes) {
    if (count == CLICKS_MAX) break;
    const href = node.getAttribute("href"), isPlain = href !== null && !/^(#!?$|javascript:)/i.test(href);
    if (isPlain && (!href.startsWith("#") || !node.matches("[onclick], [role=link]")) || !node.checkVisibility()) continue;
    if (node.matches("input, select, textarea, label") || node.type == "submit" && node.form) continue;
    count++; click.call(node);
  }
  return count;
})()
