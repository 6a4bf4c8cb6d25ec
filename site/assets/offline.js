// Registers the service worker, and lets it keep what this page will need offline: data-keep names the set.
// Tables of the docs that scroll are reached by the keyboard.
addEventListener("load", () => setTimeout(() => { for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) box.tabIndex = 0; }));
(() => {
  const script = document.currentScript;
  if (!("serviceWorker" in navigator) || !window.isSecureContext) return;
  const root = new URL("../", script.src), keep = script.dataset.keep ?? (location.pathname.includes("/docs/") ? "docs" : "");
  addEventListener("load", () => navigator.serviceWorker.register(new URL("sw.js", root), {scope: root.pathname})
    .then(() => navigator.serviceWorker.ready)
    .then((registration) => keep && registration.active.postMessage({keep}))
    .catch(() => {}));
  navigator.serviceWorker.addEventListener("message", ({data}) => { if (data?.kept) document.documentElement.dataset.kept = data.kept; });
})();
