(async bytesMax => {
  const frame = () => new Promise(requestAnimationFrame), seen = globalThis.gossamerSeen ??= {height: 0, y: -1};
  const root = Document.prototype.querySelector.call(document, ":root"), before = root?.scrollHeight || 0;
  await frame();
  const height = root?.scrollHeight || 0;
  // What is shown further would make the document too long to be kept. Observers hear of what this frame added first.
  const scrolls = bytesMax && root && height == before && root.innerHTML.length < bytesMax / 2;
  if (root) gossamerNote(gossamerRoots(root, true));
  if (scrolls && seen.y < 0 && height != seen.height) {
    // Four screens above the last end once more: new content may stand before a long footer.
    scrollTo(0, seen.y = Math.max(0, seen.height - 4 * innerHeight));
    seen.height = height;
  } else if (scrolls && seen.y >= 0) {
    // A page that grows much while it is scrolled is looked at again first.
    for (let n = 0; n < 60 && seen.y < height && root.scrollHeight < height + 10 * innerHeight; n++) {
      scrollTo(0, seen.y += innerHeight); await frame(); gossamerNote([root]);
    }
    seen.y = -1;
    let n = 0;
    for (const box of gossamerBoxes(gossamerRoots(root, true))) {
      for (; n < 60 && box.scrollTop + 2 * box.clientHeight < box.scrollHeight; n++) {
        box.scrollTop += box.clientHeight; await frame(); gossamerNote([box]);
      }
    }
  }
  await frame(); await frame();
})
