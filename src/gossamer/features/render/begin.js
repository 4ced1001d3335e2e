// Scripts may close a window whose history has one page.
window.close = () => {};
// A closed shadow root has links too, and no property leads to it.
(() => {
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function attachShadow(init) {
    return attach.call(this, init?.mode == "closed" ? {...init, mode: "open"} : init);
  };
})();
