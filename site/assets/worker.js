// The engine: Python in WebAssembly, in a worker, so that the page never waits for it. Messages: {id, ...request} in, {id, answer} out.
const base = new URL("../engine/", import.meta.url);
let session, pyodide, opened = 0, read = 0, size = 0, told = 0;

const say = (state, more = {}) => postMessage({state, ...more});

async function start() {
  say("loading");
  const engine = fetch(new URL("engine.zip", base)).then((answer) => { if (!answer.ok) throw new Error(`engine.zip: ${answer.status}`); return answer.arrayBuffer(); });
  const {loadPyodide} = await import(new URL("pyodide.mjs", base));
  pyodide = await loadPyodide({indexURL: base.href, stdout: () => {}, stderr: (line) => console.warn(line)});
  pyodide.unpackArchive(await engine, "zip", {extractDir: "/engine"});
  say("starting");
  session = pyodide.runPython("import sys\nsys.path.insert(0, '/engine')\nfrom diagnose.surfaces.playground.session import Session\nSession()");
  const {WORKERFS} = pyodide.FS.filesystems, plain = WORKERFS.stream_ops.read;
  WORKERFS.stream_ops.read = (...given) => {  // progress: what of the files has been read so far
    const count = plain(...given), now = performance.now();
    read += count;
    if (now - told > 100) { told = now; say("reading", {read: Math.min(read, size), size}); }
    return count;
  };
  say("ready");
}

function ask(request) {
  return JSON.parse(session.ask(JSON.stringify(request)));
}

// Files are mounted, not copied: Python reads them in pieces from the browser.
function mount(files) {
  const folder = `/job${++opened}`;
  pyodide.FS.mkdirTree(folder);
  const kinds = new Map();
  for (const {name, kind} of files) {
    const top = name.split("/")[0];
    kinds.set(kind === "any" && name.includes("/") ? top : name, kind === "any" && name.includes("/") ? "log" : kind);
  }
  pyodide.FS.mount(pyodide.FS.filesystems.WORKERFS, {blobs: files.map(({name, data}) => ({name, data}))}, folder);
  if (opened > 1) { pyodide.FS.chdir("/"); pyodide.FS.unmount(`/job${opened - 1}`); }
  read = 0;
  size = files.reduce((sum, {data}) => sum + data.size, 0);
  return {folder, files: [...kinds].map(([name, kind]) => ({name, kind}))};
}

const started = start();
let line = started;
onmessage = ({data: {id, ...request}}) => {
  line = line.then(() => {
    if (request.ask === "open") Object.assign(request, mount(request.files));
    const began = performance.now(), answer = ask(request);
    postMessage({id, answer, took: performance.now() - began});
  }).catch((error) => postMessage({id, failed: String(error.message ?? error)}));
};
started.catch((error) => say("failed", {why: String(error.message ?? error)}));
