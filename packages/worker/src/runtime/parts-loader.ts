/**
 * The beginning of each bundled program. This code runs before everything else and should be fast, so it uses only modules that Node has
 * already loaded.
 */
import type { Script } from 'node:vm';

const fs = process.getBuiltinModule('node:fs');
const vm = process.getBuiltinModule('node:vm');

/** The function around the source of a part, which is a CommonJS module. */
type Body = (exports: object, require: (name: string) => unknown, module: { exports: object }) => void;

/** The parts of a bundled program. */
export interface Parts {
  /** Runs a part on the first call, and returns its exports on every call. `name` is `./` followed by the name of the part's file. */
  load(name: string): object;
  /** Writes the compiled code of each part that has run and has no valid stored code. Each file is written completely or not at all. */
  keepCode(): void;
}

/**
 * Opens the parts of a program in `folder`. The sources of the parts are in `parts/`, and their compiled code is in `cache/`. V8
 * compiles a function when it is called for the first time. Here the code is stored when the program ends, so it includes all
 * functions that were called. Node's own compile cache stores the code before the first calls, so each start would compile most
 * functions again (`docs/decisions/agent-bundle.md` has the times). V8 ignores stored code of another V8 version.
 */
export function openParts(folder: string): Parts {
  const loaded = new Map<string, { exports: object }>();
  const withoutCode = new Map<string, Script>();

  const load: Parts['load'] = (name) => {
    const known = loaded.get(name);
    if (known !== undefined) return known.exports;
    const filename = `${folder}/parts/${name.slice(2)}`;
    const code = readIfThere(`${folder}/cache/${name.slice(2)}`);
    // esbuild writes only ASCII, so the fast encoding latin1 gives the right text.
    const source = fs.readFileSync(filename, 'latin1');
    const script = new vm.Script(source, { filename, ...(code === undefined ? {} : { cachedData: code }) });
    if (script.cachedDataRejected !== false) withoutCode.set(name, script);
    const module = { exports: {} };
    loaded.set(name, module);
    const body: Body = script.runInThisContext();
    body(module.exports, require, module);
    return module.exports;
  };

  const require = (name: string): unknown => {
    if (name.startsWith('./')) return load(name);
    const builtin = process.getBuiltinModule(name);
    if (builtin !== undefined) return builtin;
    // Throws the same error as Node, because packages check this error to find out whether an optional package exists.
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
  };

  return {
    load,
    keepCode() {
      fs.mkdirSync(`${folder}/cache`, { recursive: true });
      for (const [name, script] of withoutCode) {
        const file = `${folder}/cache/${name.slice(2)}`;
        fs.writeFileSync(`${file}.${process.pid}`, script.createCachedData());
        fs.renameSync(`${file}.${process.pid}`, file);
      }
      withoutCode.clear();
    },
  };
}

function readIfThere(file: string): Buffer | undefined {
  try {
    return fs.readFileSync(file);
  } catch {
    return undefined;
  }
}
