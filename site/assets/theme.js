// Light or dark before anything is drawn; the button is found by its id.
(() => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const kept = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    if (!button) return;
    const now = () => root.dataset.theme ?? (dark.matches ? "dark" : "light");
    const told = () => button.setAttribute("aria-pressed", String(now() === "dark"));
    button.addEventListener("click", () => {
      root.dataset.theme = now() === "dark" ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch {}
      told();
    });
    told();
    for (const link of document.querySelectorAll("a[data-keeps-hash]")) link.addEventListener("click", () => { link.hash = location.hash; });
  });
})();
