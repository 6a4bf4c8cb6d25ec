// Compiles the engine's Python to bytecode in the very Python that the browser will run: node engine.mjs PYODIDE SOURCE TARGET.
// SOURCE is a folder of .py and data files; TARGET becomes a zip of it with .pyc in place of .py.
import {pathToFileURL} from "node:url";
import {resolve} from "node:path";

const [pyodideFolder, source, target] = process.argv.slice(2).map((path) => resolve(path));
try {
  const {loadPyodide} = await import(pathToFileURL(`${pyodideFolder}/pyodide.mjs`));
  const pyodide = await loadPyodide({indexURL: pyodideFolder});
  for (const [place, root] of [["/source", source], ["/target", resolve(target, "..")]]) {
    pyodide.FS.mkdirTree(place);
    pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, {root}, place);
  }
  pyodide.globals.set("name", target.split(/[\\/]/).pop());
  await pyodide.runPythonAsync(`
import importlib._bootstrap_external as external, importlib.util, zipfile
from pathlib import Path
with zipfile.ZipFile(f"/target/{name}", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for path in sorted(Path("/source").rglob("*")):
        if not path.is_file():
            continue
        place, data = str(path.relative_to("/source")), path.read_bytes()
        if path.suffix == ".py":
            code = compile(data, place, "exec", dont_inherit=True, optimize=1)
            place, data = place + "c", external._code_to_hash_pyc(code, importlib.util.source_hash(data), False)
        archive.writestr(zipfile.ZipInfo(place, (2020, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, 9)
`);
  process.exit(0);
} catch (error) {
  console.error(String(error.message ?? error).slice(-2000));
  process.exit(1);
}
