"use strict";
for (const table of document.querySelectorAll("table.list")) {
  const whole = table.classList.contains("groups");
  const items = () => [...(whole ? table.tBodies : table.tBodies[0].rows)];
  const cell = (item, at) => (whole ? item.rows[0] : item).cells[at];
  const key = (item, at) => { const held = cell(item, at); return held.dataset.v ?? held.textContent.trim(); };
  const heads = [...table.tHead.rows[0].cells];
  const sort = (at) => {
    const head = heads[at], numbers = head.dataset.k === "n";
    const now = head.getAttribute("aria-sort"), down = now ? now === "ascending" : numbers;
    const known = items().map((item) => [key(item, at), item]);
    known.sort(([one], [other]) => (one === "") - (other === "") || (down ? -1 : 1) * (numbers ? one - other : one.localeCompare(other, undefined, {numeric: true})));
    const parent = whole ? table : table.tBodies[0], held = document.createDocumentFragment();
    for (const [, item] of known) held.append(item);
    parent.append(held);
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  };
  heads.forEach((head, at) => {
    if (!head.dataset.k) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(at));
    head.append(button);
  });
  const tools = document.getElementById(table.id + "-tools");
  if (!tools) continue;
  tools.hidden = false;
  const input = tools.querySelector("input"), output = tools.querySelector("output"), texts = new Map();
  const text = (item) => { if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase()); return texts.get(item); };
  let waiting = 0;
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean), all = items();
    let shown = 0;
    for (const item of all) { const keep = words.every((word) => text(item).includes(word)); item.hidden = !keep; shown += keep; }
    output.textContent = words.length ? output.dataset.said.replace("{shown}", shown).replace("{total}", all.length) : "";
  };
  input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 60); });
}
