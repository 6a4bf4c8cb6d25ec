// The playground: hands files to the engine's worker, shows what it answers, and turns the knobs. Nothing is sent anywhere.
"use strict";
const $ = (id) => document.getElementById(id);
const texts = JSON.parse($("texts").textContent), examples = JSON.parse($("examples").textContent);
const assets = new URL("./", import.meta.url), root = new URL("../", assets);
let lang = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
const say = (key, values = {}) => (texts[key]?.[lang] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");

// -- the worker. Made from a blob, it inherits this page's policy; a worker of an address would have none.
let worker, waiting = new Map(), number = 0, ready = false;
const startWorker = () => {
  const address = URL.createObjectURL(new Blob([`import ${JSON.stringify(new URL("worker.js", assets).href)};`], {type: "text/javascript"}));
  worker = new Worker(address, {type: "module"});
  worker.onmessage = ({data}) => {
    if (data.state) return tellState(data);
    const {resolve, reject} = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.failed) reject(new Error(data.failed));
    else { measure.took = data.took; resolve(data.answer); }
  };
  worker.onerror = (event) => tellState({state: "failed", why: event.message});
};
const ask = (request) => new Promise((resolve, reject) => {
  waiting.set(++number, {resolve, reject});
  worker.postMessage({id: number, lang, ...request});
});

// What the benchmark and the tests read.
const measure = (window.measure = {});
window.shown = () => job?.turned;

// -- status
const status = (text, kind = "") => { $("status").textContent = text; $("status").className = kind; };
const progress = (value, max) => { const bar = $("progress"); bar.hidden = max === undefined; if (max) { bar.max = max; bar.value = value; } else bar.removeAttribute("value"); };
const size = (count) => (count >= 2 ** 20 ? `${(count / 2 ** 20).toFixed(1)} MiB` : `${Math.max(1, Math.round(count / 1024))} KiB`);
function tellState({state, why, read, size: whole}) {
  if (state !== "reading") measure[state] ??= performance.now();
  if (state === "ready") { ready = true; document.documentElement.dataset.engine = "ready"; if (!busy) { status(say("ready")); progress(); } }
  else if (state === "failed") { status(`${say("engine_failed")} ${why ?? ""}`, "wrong"); progress(); }
  else if (state === "reading") { if (busy) { status(say("reading", {read: size(read), size: size(whole)})); progress(read, whole); } }
  else { status(say(state)); progress(0, 0); }
}

// -- what is given
let files = [];  // {name, data: Blob}
let job = null;  // {answer, changes, settings, example}
let busy = false;
const settings = () => {
  const given = {};
  for (const name of ["model", "gpu", "gpus"]) if ($(name).value.trim()) given[name] = name === "gpus" ? Number($(name).value) : $(name).value.trim();
  return given;
};
function listFiles() {
  $("list").replaceChildren(...files.map((file, at) => {
    const row = document.createElement("li"), name = document.createElement("span"), drop = document.createElement("button");
    name.textContent = `${file.name} · ${size(file.data.size)}`;
    drop.type = "button"; drop.className = "plain"; drop.textContent = "×"; drop.setAttribute("aria-label", say("remove", {name: file.name}));
    drop.addEventListener("click", () => { files.splice(at, 1); listFiles(); });
    row.append(name, drop);
    return row;
  }));
}
const MOST = 200 * 2 ** 20;
function add(more) {
  const kept = [...files.filter((file) => !more.some((other) => other.name === file.name)), ...more];
  if (kept.reduce((sum, file) => sum + file.data.size, 0) > MOST) return status(say("too_large"), "wrong");
  files = kept;
  listFiles();
}
const walk = async (entry, path = "") => {
  if (entry.isFile) return [{name: path + entry.name, data: await new Promise((resolve, reject) => entry.file(resolve, reject))}];
  const reader = entry.createReader(), found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length || found.length > 5000) break;
    for (const each of some) found.push(...await walk(each, `${path}${entry.name}/`));
  }
  return found;
};
addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("over"); });
addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("over"); });
addEventListener("drop", async (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  add((await Promise.all(entries.map((entry) => walk(entry)))).flat());
  if (files.length) explain();
});
$("files").addEventListener("change", () => { add([...$("files").files].map((data) => ({name: data.name, data}))); $("files").value = ""; });
$("folder").addEventListener("change", () => { add([...$("folder").files].map((data) => ({name: data.webkitRelativePath || data.name, data}))); $("folder").value = ""; });

// -- explain
async function explain({example = null, set = {}, changes = {}} = {}) {
  const given = files.map((file) => ({...file, kind: "any"}));
  for (const [id, kind, name] of [["log", "log", "pasted.log"], ["config", "pasted", "pasted-config"]]) {
    if ($(id).value.trim()) given.push({name, kind, data: new Blob([$(id).value])});
  }
  if (!example && !given.length && job?.example) { example = job.example; set = {...job.set, ...set}; }  // the example on the page, with other options
  if (example) given.splice(0, Infinity, ...examples[example].files.map(({name, kind, text}) => ({name, kind, data: new Blob([text])})));
  if (!given.length) return status(say("nothing"), "wrong");
  busy = true;
  $("explain").disabled = true;
  status(say(ready ? "working" : "loading"));
  progress(0, 0);
  const began = performance.now(), options = {...(example ? examples[example].options ?? {} : {}), ...settings()};
  try {
    const answer = await ask({ask: "open", files: given, ...options, set, notes: notes()});
    measure.open = performance.now() - began;
    measure.since_start = performance.now();
    if (answer.wrong) return status(answer.wrong, "wrong");
    job = {answer, changes: {...changes}, set, example, options};
    draw();
    status(say("done", {seconds: (measure.open / 1000).toFixed(2)}));
    select(answer.asked === "check" || Object.keys(changes).length ? "knobs" : "answer");
    $("result").scrollIntoView({behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});
    share();
    if (answer.counted) { await turn(); await more(); }
  } catch (error) {
    status(`${say("engine_failed")} ${error.message}`, "wrong");
  } finally {
    busy = false;
    progress();
    $("explain").disabled = false;
    document.documentElement.dataset.answered = String(Number(document.documentElement.dataset.answered ?? 0) + 1);
  }
}

function draw() {
  const {answer} = job;
  document.title = `${answer.title} · oomdoctor`;
  $("result").hidden = false;
  $("body").innerHTML = answer.body;
  $("text").textContent = answer.text;
  $("json").textContent = answer.json;
  for (const code of $("body").querySelectorAll("pre > code.copy")) offerCopy(code);
  $("tab-knobs").hidden = !answer.counted;
  $("switches").innerHTML = answer.switches;
  for (const box of $("switches").querySelectorAll("input")) box.addEventListener("change", () => toggle(box));
  $("switchbox").hidden = !answer.switches.trim();
  $("save-patch").hidden = !answer.patch;
  drawQuestions(answer.questions);
  drawTried(answer.tried);
}
function offerCopy(code) {
  const pre = code.parentElement, box = document.createElement("div"), button = copyButton(() => code.innerText);
  box.className = "copybox";
  pre.tabIndex = 0;
  pre.replaceWith(box);
  box.append(pre, button);
}
function copyButton(text) {
  const button = document.createElement("button");
  button.type = "button"; button.className = "small"; button.textContent = say("copy");
  button.addEventListener("click", () => copy(text(), button));
  return button;
}
async function copy(text, button) {
  try { await navigator.clipboard.writeText(text); button.textContent = say("copied"); } catch { button.textContent = say("not_copied"); }
  setTimeout(() => { button.textContent = button.dataset.t ? say(button.dataset.t) : say("copy"); }, 1500);
}
function drawQuestions(questions) {
  $("question-form").hidden = !questions.length;
  $("fields").replaceChildren(...questions.map((question, at) => {
    const row = document.createElement("div"), label = document.createElement("label"), hint = document.createElement("p");
    const input = document.createElement(question.words.length ? "select" : "input");
    for (const word of question.words.length ? ["", ...question.words] : []) input.add(new Option(word || "–", word));
    label.textContent = question.why; label.htmlFor = input.id = `question-${at}`;
    if (!question.words.length) { input.type = "text"; input.autocomplete = "off"; }
    input.dataset.fact = question.fact; input.dataset.option = question.option;
    if (question.option === "gpu") input.setAttribute("list", "cards");
    hint.className = "hint"; hint.id = `hint-${at}`; hint.textContent = question.how; input.setAttribute("aria-describedby", hint.id);
    row.append(label, input, hint);
    return row;
  }));
}
$("question-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const set = {...job.set};
  for (const input of $("fields").querySelectorAll("input, select")) {
    const value = input.value.trim();
    if (!value) continue;
    if (input.dataset.option) $(input.dataset.option).value = value; else set[input.dataset.fact] = value;
  }
  explain({example: job.example, set});
});

// -- what was tried: kept in this browser, and nowhere else
const notes = () => { try { return JSON.parse(localStorage.getItem("notes")) ?? []; } catch { return []; } };
function drawTried(tried) {
  $("tried").hidden = !tried.length;
  $("tried-list").replaceChildren(...tried.map(([word, title]) => {
    const row = document.createElement("li"), buttons = document.createElement("span");
    buttons.className = "tools";
    for (const result of ["worked", "failed"]) {
      const button = document.createElement("button");
      button.type = "button"; button.className = "small"; button.textContent = say(result); button.dataset.result = result;
      button.setAttribute("aria-label", `${say(result)}: ${title}`);
      button.addEventListener("click", () => {
        try { localStorage.setItem("notes", JSON.stringify([...notes(), [job.answer.job, word, result, new Date().toISOString().slice(0, 10)]].slice(-500))); } catch { /* a browser that keeps nothing */ }
        explain({example: job.example, set: job.set});
      });
      buttons.append(button);
    }
    row.append(title, buttons);
    return row;
  }));
}

// -- what if: one request at a time, and only the newest of those that wait
let turning = false, again = false, later = 0;
async function turn() {
  if (turning) { again = true; return; }
  turning = true;
  do {
    again = false;
    const began = performance.now(), answer = await ask({ask: "turn", changes: job.changes});
    measure.turn = performance.now() - began;
    if (answer.wrong) { status(answer.wrong, "wrong"); continue; }
    $("turned").innerHTML = answer.html;
    job.turned = answer.data;
    $("turned").dataset.count = String(Number($("turned").dataset.count ?? 0) + 1);
  } while (again);
  turning = false;
  $("reset").disabled = !Object.keys(job.changes).length;
}
async function more() {
  const changes = JSON.stringify(job.changes), answer = await ask({ask: "more", changes: job.changes});
  if (answer.wrong || JSON.stringify(job.changes) !== changes) return;
  const focused = document.activeElement?.id;
  $("controls").innerHTML = answer.controls;
  for (const control of $("controls").querySelectorAll("input, select")) listen(control);
  if (focused && $("controls").contains($(focused))) $(focused).focus();
  $("map").innerHTML = answer.map;
  for (const field of $("map").querySelectorAll("button")) field.addEventListener("click", () => {
    change(answer.map_knobs[0], Number(field.dataset.rows));
    change(answer.map_knobs[1], Number(field.dataset.length));
  });
  $("made").hidden = !answer.patch && !answer.edits.length && !answer.said.length;
  $("diff").innerHTML = "";
  for (const line of answer.patch.split("\n")) {
    const part = document.createElement("span");
    part.textContent = `${line}\n`;
    part.className = /^(---|\+\+\+|@@)/.test(line) ? "at" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "";
    $("diff").append(part);
  }
  $("diffbox").hidden = !answer.patch;
  $("edits").replaceChildren(...[...answer.edits, ...answer.said].map((text) => { const row = document.createElement("li"); row.textContent = text; return row; }));
  job.patch = answer.patch;
  $("knobs").dataset.count = String(Number($("knobs").dataset.count ?? 0) + 1);
}
function change(knob, value) {
  job.changes[knob] = value;
  afterChange();
}
function afterChange() {
  share();
  turn();
  clearTimeout(later);
  later = setTimeout(more, 350);
}
function listen(control) {
  const box = control.closest("[data-knob]"), knob = box.dataset.knob, output = box.querySelector("output");
  const values = control.dataset.values ? JSON.parse(control.dataset.values) : null;
  const value = () => (values ? values[Number(control.value)] : control.type === "checkbox" ? control.checked : control.value);
  control.addEventListener(control.type === "range" ? "input" : "change", () => {
    if (control.tagName === "SELECT" && !control.value) return;
    box.classList.add("changed");
    if (output) { output.textContent = value().toLocaleString("en-US"); control.setAttribute("aria-valuetext", output.textContent); }
    change(knob, value());
  });
}
function toggle(box) {
  const of = (input) => job.answer.remedies[input.dataset.remedy];
  const on = [...$("switches").querySelectorAll("input:checked")];
  if (!box.checked) for (const knob of Object.keys(of(box))) delete job.changes[knob];
  for (const input of on) Object.assign(job.changes, of(input));
  afterChange();
}
$("reset").addEventListener("click", () => {
  job.changes = {};
  for (const box of $("switches").querySelectorAll("input")) box.checked = false;
  share(); turn(); more();
});
$("apply-plan").addEventListener("click", () => {
  for (const box of $("switches").querySelectorAll("input")) box.checked = job.answer.planned.includes(box.dataset.remedy);
  job.changes = Object.assign({}, ...job.answer.planned.map((name) => job.answer.remedies[name]));
  share(); turn(); more();
});

// -- tabs
const tabs = [...document.querySelectorAll("[role=tab]")];
function select(name, focus = false) {
  for (const tab of tabs) {
    const on = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(on));
    tab.tabIndex = on ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !on;
    if (on && focus) tab.focus();
  }
}
for (const tab of tabs) {
  tab.addEventListener("click", () => select(tab.id.slice(4)));
  tab.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    const shown = tabs.filter((each) => !each.hidden), next = shown[(shown.indexOf(tab) + step + shown.length) % shown.length];
    select(next.id.slice(4), true);
  });
}

// -- what leaves the page: copies and files, by the reader's own hand
const save = (name, text, type) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};
$("copy-markdown").addEventListener("click", async () => copy((await ask({ask: "save", form: "markdown"})).text, $("copy-markdown")));
$("save-page").addEventListener("click", async () => save(`${job.answer.stem}.html`, (await ask({ask: "save", form: "page"})).text, "text/html"));
$("save-json").addEventListener("click", () => save(`${job.answer.stem}.json`, job.answer.json, "application/json"));
$("save-patch").addEventListener("click", () => save(`${job.answer.stem}.diff`, job.answer.patch, "text/x-diff"));
$("save-made").addEventListener("click", () => save(`${job.answer.stem}-turned.diff`, job.patch, "text/x-diff"));
$("copy-made").addEventListener("click", (event) => copy(job.patch, event.currentTarget));

// -- the address holds the example and the settings, never the log
function share() {
  const held = new URLSearchParams();
  if (job.example) held.set("example", job.example);
  for (const [name, value] of Object.entries(job.options)) if (!job.example || examples[job.example].options?.[name] !== value) held.set(name, value);
  for (const [name, value] of Object.entries(job.set)) held.append("set", `${name}=${value}`);
  for (const [name, value] of Object.entries(job.changes)) held.append("change", `${name}=${value}`);
  history.replaceState(null, "", held.size ? `#${held}` : location.pathname + location.search);
  $("copy-link").hidden = !held.size;
}
$("copy-link").addEventListener("click", (event) => copy(location.href, event.currentTarget));
const pairs = (held, name) => Object.fromEntries(held.getAll(name).map((pair) => [pair.split("=")[0], pair.slice(pair.indexOf("=") + 1)]));
const plain = (text) => (text === "true" ? true : text === "false" ? false : text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text);
function fromAddress() {
  const held = new URLSearchParams(location.hash.slice(1)), example = held.get("example");
  for (const name of ["model", "gpu", "gpus"]) if (held.has(name)) $(name).value = held.get(name);
  if (example && Object.hasOwn(examples, example)) {
    const changes = Object.fromEntries(Object.entries(pairs(held, "change")).map(([name, text]) => [name, plain(text)]));
    explain({example, set: pairs(held, "set"), changes});
  }
}

// -- the language, without losing what was given
function speak(other) {
  lang = other;
  document.documentElement.lang = lang === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = say(element.dataset.t);
  for (const element of document.querySelectorAll("[data-t-placeholder]")) element.placeholder = say(element.dataset.tPlaceholder);
  for (const element of document.querySelectorAll("[data-example]")) element.textContent = examples[element.dataset.example].title[lang];
  const paths = JSON.parse($("paths").textContent);
  for (const element of document.querySelectorAll("[data-page]")) element.href = new URL(paths[lang][element.dataset.page], root).href;
  for (const element of document.querySelectorAll("[data-lang]")) element.hidden = element.dataset.lang === lang;
  history.replaceState(null, "", new URL(paths[lang].play, root).pathname + location.search + location.hash);
  listFiles();
  if (job) ask({ask: "show"}).then((answer) => { const {changes} = job; job.answer = answer; draw(); job.changes = changes; if (answer.counted) { turn(); more(); } });
  else status(say(ready ? "ready" : "loading"));
}
for (const link of document.querySelectorAll("[data-lang]")) link.addEventListener("click", (event) => { event.preventDefault(); speak(link.dataset.lang); });

$("explain").addEventListener("click", () => explain());
for (const button of document.querySelectorAll("[data-example]")) button.addEventListener("click", () => explain({example: button.dataset.example}));
addEventListener("keydown", (event) => { if ((event.ctrlKey || event.metaKey) && event.key === "Enter") explain(); });
for (const link of document.querySelectorAll("link[href]")) link.setAttribute("href", link.href);  // the address changes with the language
startWorker();
fromAddress();
