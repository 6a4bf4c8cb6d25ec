"""The style and the one script of a report of many jobs, and the policy that lets nothing else in."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256

from diagnose.render.markup import style

#: Colours of the first groups (after Okabe and Ito) and of all others, with a letter colour that can be read on each.
SHEET = (
    style.SHEET
    + """
:root{--c1:#0072b2;--c2:#e69f00;--c3:#009e73;--c4:#cc79a7;--c5:#d55e00;--c0:#9aa3ad;--card:#fff;--shadow:0 1px 2px rgba(16,24,40,.06),0 6px 20px rgba(16,24,40,.06)}
@media(prefers-color-scheme:dark){:root{--c1:#4aa3df;--c3:#2fbf95;--c5:#f0803c;--c0:#6b7480;--card:#1a1e22;--shadow:none}}
main,header,footer{max-width:78rem}
.skip{position:absolute;left:-999rem}.skip:focus{left:1rem;top:.5rem;background:var(--bg);padding:.4rem .8rem;z-index:2}
header.hero{display:grid;grid-template-columns:minmax(0,1.1fr) minmax(0,1fr);gap:1.2rem 2.6rem;align-items:start;padding-top:2.6rem;padding-bottom:1.2rem}
.eyebrow{color:var(--dim);font-weight:600;font-size:.92rem;margin:0 0 .7rem}
.hero h1{font-size:clamp(1.55rem,1.1rem + 1.9vw,2.35rem);line-height:1.18;font-weight:700;letter-spacing:-.018em;margin:0 0 .9rem;text-wrap:balance}
.mistake{font-size:1.2rem;font-weight:600;line-height:1.4;margin:0 0 .35rem}
.paid{font-size:1.05rem;margin:.7rem 0}
.answer{background:var(--card);border:1px solid var(--line);border-top:4px solid var(--good);border-radius:10px;padding:1rem 1.25rem 1.1rem;box-shadow:var(--shadow)}
.answer h2{border:0;margin:0 0 .3rem;padding:0;font-size:1.05rem;color:var(--good)}
.answer .steps{padding-left:1.2rem;margin:.2rem 0 .6rem}.answer .steps li{margin:.2rem 0}
.variant{margin:.7rem 0 0}.variant>p{margin:0;font-size:.9rem}.variant pre{margin:.25rem 0 0}.variant pre,article pre{white-space:pre-wrap;overflow-wrap:anywhere}
.variants{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:.2rem 1.4rem}
.split{grid-column:1/-1;margin-top:.6rem}
.split svg rect{stroke:var(--bg);stroke-width:2}
.g1{fill:var(--c1)}.g2{fill:var(--c2)}.g3{fill:var(--c3)}.g4{fill:var(--c4)}.g5{fill:var(--c5)}.g0{fill:var(--c0)}.gx{fill:var(--c1)}
.keys{list-style:none;padding:0;margin:.6rem 0 0;display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,22rem),1fr));gap:.15rem 1.4rem;font-size:.85rem;color:var(--dim)}
.keys li{margin:0;display:flex;gap:.4rem;align-items:center;min-width:0}.keys .t{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.badge{display:inline-block;min-width:1.65rem;padding:0 .4rem;border-radius:1rem;text-align:center;font-weight:700;font-size:.82rem;line-height:1.5rem;background:var(--c0);color:#fff;font-variant-numeric:tabular-nums}
.b1{background:#0072b2}.b2{background:#e69f00;color:#1c2024}.b3{background:#00704f}.b4{background:#cc79a7;color:#1c2024}.b5{background:#b04a00}.b0{background:#5f6872}
.stats{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));margin:1.4rem 0 .6rem;border:1px solid var(--line);border-radius:10px;background:var(--card);box-shadow:var(--shadow)}
.stats>div{padding:.9rem 1.2rem;border-left:1px solid var(--line)}.stats>div:first-child{border-left:0}
.stats dt{font-weight:500;font-size:.88rem;color:var(--dim)}.stats dd{margin:0}
.stats .n{font-size:1.9rem;font-weight:700;letter-spacing:-.02em;line-height:1.25;font-variant-numeric:tabular-nums}
.stats .s{font-size:.82rem;color:var(--dim)}
.charts{display:grid;grid-template-columns:minmax(0,1.35fr) minmax(0,1fr) minmax(0,1fr);gap:1rem;margin:1.2rem 0}
.chart{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:.9rem 1.1rem 1rem;box-shadow:var(--shadow);margin:0;min-width:0}
.chart.whole{grid-column:1/-1}
.chart h2{font-size:1rem;border:0;padding:0;margin:0 0 .2rem}.chart h2 small{font-weight:400;color:var(--dim);font-size:.85rem}
.chart p{font-size:.86rem;color:var(--dim);margin:.3rem 0 0}
.chart details{border:0;padding:0;margin:.4rem 0 0;font-size:.86rem}.chart summary{padding:.1rem 0;color:var(--dim)}
.chart .scroll{max-height:18rem;overflow:auto}
.grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--dim);stroke-width:1}
svg text{fill:var(--dim);font-size:12px;font-family:inherit}
section .plot text{paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round}
.slot:hover .hit{fill:var(--fg);fill-opacity:.07}.hit{fill:transparent}
.plot{margin-top:1.4rem}
table.bars{margin:.4rem 0 0;font-size:.88rem;table-layout:fixed}table.bars col.l{width:52%}table.bars col.f{width:4.2rem}table.bars th>.t{display:block;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}table.bars th,table.bars td{border:0;padding:.16rem .5rem .16rem 0;vertical-align:middle}
table.bars th{font-weight:400;line-height:1.5}table.bars td.figure{padding-right:0}
table.bars .badge{margin-right:.3rem}
nav.jump{display:flex;flex-wrap:wrap;gap:.2rem 1.3rem;font-size:.92rem;padding:.4rem 0}
.tools{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem .8rem;margin:.6rem 0;font-size:.92rem}
.tools input{font:inherit;padding:.35rem .7rem;border:1px solid var(--dim);border-radius:6px;background:var(--bg);color:var(--fg);width:min(24rem,100%)}
.tools input:focus-visible,.sort:focus-visible{outline:3px solid var(--link);outline-offset:1px}
table.list{font-size:.93rem}table.list .figure,.bars .figure,.keys .figure{font-family:inherit;font-size:inherit}table.list td{white-space:nowrap}table.list td[colspan]{white-space:normal}table.list td,table.list th{padding:.45rem .7rem .45rem 0}
table.list thead th{font-size:.85rem;position:sticky;top:0;background:var(--bg);box-shadow:inset 0 -1px var(--line);z-index:1;white-space:nowrap;vertical-align:bottom}
.sort{all:unset;cursor:pointer;font-weight:600}.sort::after{content:"\\2195";color:var(--dim);opacity:.55;padding-left:.25rem;font-weight:400}
[aria-sort=ascending] .sort::after{content:"\\2191";opacity:1}[aria-sort=descending] .sort::after{content:"\\2193";opacity:1}
th.figure .sort{text-align:right}
.groups tbody:hover{background:var(--soft)}
.groups tbody:target{background:var(--notebg)}
.groups tr:first-child>*{border-bottom:0;padding-bottom:.1rem}.groups tr+tr>*{padding-top:0}
.groups th[scope=row]{width:100%;font-weight:600;font-size:1rem;line-height:1.4}.groups th .dim{font-weight:400;font-size:.88rem;display:block}
.groups td[colspan]{max-width:0}.groups details{border:0;margin:0;padding:0}.groups details[open]{padding-bottom:1rem}
.groups summary{padding:.15rem 0;color:var(--good)}.groups summary.none{color:var(--dim)}
.facts{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.15rem 1rem;font-size:.9rem;margin:.5rem 0}.facts dt{font-weight:400;color:var(--dim)}.facts dd{margin:0;overflow-wrap:anywhere}
.more{font-weight:600}
.jobs td:first-child,.jobs th[scope=row]{overflow-wrap:anywhere}.jobs{table-layout:fixed}.jobs col.w1{width:28%}.jobs col.w2{width:26%}.jobs col.w3{width:9.2rem}.cut{overflow:hidden;text-overflow:ellipsis}
.jobs th[scope=row]{font-weight:400}
section.fold>details{padding:0 .9rem;border:1px solid var(--line);border-radius:8px}
[hidden]{display:none!important}
article{border-top:1px solid var(--line);padding:1rem 0 .6rem;content-visibility:auto;contain-intrinsic-size:auto 36rem}
article:target{background:var(--soft);box-shadow:0 0 0 .8rem var(--soft)}
article h3{font-size:1.02rem;line-height:1.45;margin:0 0 .4rem;text-wrap:pretty}article h4{font-size:.92rem;margin:.9rem 0 .2rem;color:var(--dim)}
article ol,article ul{margin:.2rem 0}
@media(max-width:64rem){.charts{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media(max-width:52rem){header.hero{grid-template-columns:minmax(0,1fr);padding-top:1.6rem}.stats{grid-template-columns:repeat(2,minmax(0,1fr))}.stats>div:nth-child(3){border-left:0}.stats>div:nth-child(n+3){border-top:1px solid var(--line)}.charts{grid-template-columns:minmax(0,1fr)}.wide-only{display:none}.jobs col.w1{width:44%}.jobs col.w2{width:auto}}
@media(max-width:40rem){.narrow-off{display:none}}
@media(max-width:30rem){.stats>div{padding:.7rem .8rem}.stats .n{font-size:1.5rem}table.list{font-size:.85rem}table.list td,table.list th{padding-right:.4rem}table.list thead th{white-space:normal}.sort::after{content:none!important}.groups th[scope=row]{font-size:.92rem}.facts{grid-template-columns:minmax(0,1fr)}.facts dt{margin-top:.4rem}}
@media print{:root{--card:#fff;--shadow:none;--c1:#0072b2;--c3:#009e73;--c5:#d55e00;--c0:#9aa3ad}header.hero{padding-top:0}.tools,.jump,.skip,.all-jobs,.chart details{display:none}.groups details::details-content{content-visibility:visible;display:block;height:auto}table.list thead th{position:static}.chart,.answer,.stats,tbody,article{break-inside:avoid}.charts{grid-template-columns:repeat(2,minmax(0,1fr))}.sort::after{content:""}.badge{print-color-adjust:exact;-webkit-print-color-adjust:exact}article{content-visibility:visible}}
"""  # noqa: E501 - a style sheet
)

#: Sorts and filters what is in the page already; without it the tables stand in their order. `data-v` is what a cell is sorted by.
SCRIPT = """
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
    const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean), all = items();
    let shown = 0;
    for (const item of all) { const keep = words.every((word) => text(item).includes(word)); item.hidden = !keep; shown += keep; }
    output.textContent = words.length ? output.dataset.said.replace("{shown}", shown).replace("{total}", all.length) : "";
  };
  input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 60); });
}
"""  # noqa: E501 - a script


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def policy() -> str:
    """The policy of a page: its own style and its own script, and nothing from anywhere."""
    return f"default-src 'none'; style-src '{_digest(SHEET)}'; script-src '{_digest(SCRIPT)}'; base-uri 'none'; form-action 'none'"
