"""The style of a page: one sheet, light and dark, screen and paper; its hash is what a content security policy names."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256

#: Colours that people with any kind of colour vision tell apart (after Okabe and Ito), a little lighter for black letters on them.
SHEET = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--soft:#f4f5f7;--line:#d5d9de;--dim:#5b636d;--link:#0b57b0;--bad:#a8071a;--badbg:#fdecec;--good:#0a6b35;--goodbg:#e6f5ec;--note:#7a4b00;--notebg:#fff4dc;--mark:#fff1b8;--ink:#1c2024;--empty:#fff}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e4e7ea;--soft:#1e2226;--line:#3a4047;--dim:#a2abb5;--link:#7db7ff;--bad:#ff9b9b;--badbg:#3b1b1e;--good:#7fdba4;--goodbg:#15301f;--note:#f3c46b;--notebg:#33290f;--mark:#4a3f12;--empty:#14171a}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif}
main,header,footer{max-width:62rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:2rem}
h1{font-size:1.3rem;line-height:1.45;font-weight:600;margin:.6rem 0 .8rem;text-wrap:pretty}
h2{font-size:1.1rem;margin:2.2rem 0 .7rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
p{margin:.4rem 0}
a{color:var(--link)}
a:focus-visible,summary:focus-visible{outline:3px solid var(--link);outline-offset:2px;border-radius:2px}
code,pre,.figure{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Noto Sans Mono CJK SC",monospace}
code{font-size:.9em;background:var(--soft);padding:.05em .3em;border-radius:3px;overflow-wrap:anywhere}
pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.7rem .9rem;overflow-x:auto;font-size:.86rem;line-height:1.5;margin:.5rem 0;user-select:text}
pre code{background:none;padding:0;font-size:inherit;overflow-wrap:normal}
.copy{user-select:all}
.add{color:var(--good)}.del{color:var(--bad)}.at{color:var(--dim)}
.banner{display:inline-block;font-weight:700;letter-spacing:.04em;padding:.25rem .7rem;border-radius:5px;background:var(--badbg);color:var(--bad);border:1px solid currentColor}
.banner.good{background:var(--goodbg);color:var(--good)}
.dim{color:var(--dim)}
.note{background:var(--notebg);color:var(--note);border-left:4px solid currentColor;padding:.45rem .8rem;border-radius:0 5px 5px 0;margin:.6rem 0}
.note.error{background:var(--badbg);color:var(--bad)}
.chip{display:inline-block;font-size:.78rem;font-weight:600;padding:.05rem .45rem;border-radius:1rem;border:1px solid var(--line);color:var(--dim);white-space:nowrap}
.chip.good{color:var(--good);border-color:currentColor}.chip.bad{color:var(--bad);border-color:currentColor}
figure{margin:1.2rem 0 .6rem}
figcaption{font-weight:600;margin-bottom:.6rem}
svg{display:block;overflow:visible}
svg.bar rect,svg.small rect,svg.swatch rect{stroke:var(--bg);stroke-width:1}
svg.swatch{display:inline-block;vertical-align:-2px;flex:none}
svg.defs{position:absolute}
.letter{font:700 14px ui-monospace,Menlo,Consolas,monospace;fill:#1c2024;text-anchor:middle}
.edge{stroke:var(--fg);stroke-width:3}
svg.small .edge{stroke-width:2;stroke-dasharray:3 2}
.ink{stroke:#1c2024;stroke-opacity:.55;stroke-width:1.2;fill:none}
.dot{fill:#1c2024;fill-opacity:.6}
rect.p-weights{fill:#7db8e8}rect.p-gradients{fill:#6fd0c0}rect.p-optimizer{fill:#c9a0dc}rect.p-activations{fill:#9ed36a}rect.p-logits{fill:#f2b53c}
rect.p-other{fill:#b9bfc6}rect.p-cache{fill:#e7a9c0}rect.p-allocated{fill:#7db8e8}rect.p-unexplained{fill:#d5d9de}
pattern rect.p-unused{fill:#e3e5e8}pattern rect.p-foreign{fill:#d8b48c}pattern rect.p-engine{fill:#e7a9c0}pattern rect.p-request{fill:#ff8a80}pattern rect.p-outside{fill:#a7adb5}
svg.bar rect.p-free,svg.swatch rect.p-free{fill:var(--empty);stroke:var(--dim)}
svg.bar rect.p-request{stroke:#a8071a;stroke-width:2}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem 1.3rem;padding:0;margin:.8rem 0 0;font-size:.92rem}
.legend li{margin:0;display:flex;align-items:center;gap:.45rem}
.figure{font-variant-numeric:tabular-nums;white-space:nowrap;font-size:.88em}
ol,ul{padding-left:1.4rem;margin:.4rem 0}
li{margin:.35rem 0}
.steps>li{margin:.8rem 0}
.steps b,.remedy b{font-weight:600}
dl{margin:.4rem 0}dt{font-weight:600}dd{margin:0 0 .5rem 1.2rem}
table{border-collapse:collapse;width:100%;margin:.6rem 0;font-size:.92rem}
caption{text-align:left;font-weight:600;padding:.4rem 0}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line)}
thead th{color:var(--dim);font-weight:600;font-size:.85rem}
tbody th{font-weight:400}
td.figure,th.figure{text-align:right;padding-right:.6rem}
td.over{color:var(--bad);font-weight:700}
.moments th[scope=row]{width:17rem}.moments th.chart,.moments td.chart{width:auto;padding-right:1rem}.moments th.figure,.moments td.figure{width:1%}.moments th[scope=col].chart{text-align:right}
.moments td.chart{vertical-align:middle}
.wide{overflow-x:auto}
td code{background:none;padding:0;overflow-wrap:normal}td.formula code{overflow-wrap:anywhere}td.formula{min-width:14rem}
details{border:1px solid var(--line);border-radius:6px;margin:.55rem 0;padding:0 .9rem}
details[open]{padding-bottom:.7rem}
summary{cursor:pointer;padding:.55rem 0;list-style-position:inside}
summary b{font-weight:600}
.remedy summary{display:list-item}
.excerpt{padding:.5rem 0}
.excerpt .l{display:block;padding:0 .9rem;white-space:pre;min-width:max-content}
.excerpt .cited{font-weight:600}
.excerpt .l:target{background:var(--mark);outline:2px solid var(--note)}
.excerpt .n{display:inline-block;min-width:3.2rem;padding-right:1rem;text-align:right;color:var(--dim);user-select:none;font-weight:400}
.excerpt .gap{display:block;padding:0 .9rem;color:var(--dim);user-select:none}
footer{color:var(--dim);font-size:.85rem;padding-top:2rem;padding-bottom:2.5rem}
@media(max-width:40rem){main,header,footer{padding-left:.9rem;padding-right:.9rem}h1{font-size:1.12rem}.moments,.moments caption,.moments tbody,.moments tr,.moments td,.moments th{display:block;width:auto;border:0;padding:.1rem 0}.moments thead{display:block}.moments thead th{display:none}.moments thead th.chart{display:block;text-align:left!important}.moments tr{padding:.45rem 0;border-bottom:1px solid var(--line)}.moments td.figure{text-align:left}.legend{display:grid;grid-template-columns:1fr}.legend .figure{margin-left:auto}}
@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--soft:#fff;--line:#bbb;--dim:#444;--link:#000;--bad:#8a0010;--badbg:#fff;--good:#064d25;--goodbg:#fff;--note:#5a3800;--notebg:#fff;--mark:#fff;--empty:#fff}body{font-size:10.5pt}main,header,footer{max-width:none;padding:0}header{padding-top:0}h2,h3,caption,figcaption,summary{break-after:avoid}pre,figure,tr,li{break-inside:avoid}pre{white-space:pre-wrap;overflow-wrap:anywhere}.excerpt .l{white-space:pre-wrap;min-width:0}.remedy::details-content{content-visibility:visible;display:block;height:auto}h1{font-size:13pt}h2{font-size:12pt;margin:1.2rem 0 .5rem}.remedy summary{list-style:none}svg rect{print-color-adjust:exact;-webkit-print-color-adjust:exact}.wide{overflow:visible}}
"""  # noqa: E501 - a style sheet


@cache
def digest() -> str:
    """What a content security policy calls the sheet: 'sha256-...'."""
    return f"sha256-{b64encode(sha256(SHEET.encode()).digest()).decode()}"


def policy() -> str:
    """The policy of a page: nothing but its own style sheet."""
    return f"default-src 'none'; style-src '{digest()}'; base-uri 'none'; form-action 'none'"
