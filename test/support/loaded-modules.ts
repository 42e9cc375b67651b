/** Lists the modules that a program loads. Loading modules of npm packages takes most of the time of a start. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { compiledCode } from './compiled-code.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** Code that runs in the program before its first module. */
const recorder = `
import { registerHooks } from 'node:module';
import { writeFileSync } from 'node:fs';
const loaded = [];
registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
process.on('exit', () => {
  const fetch = process.moduleLoadList.filter((name) => name.endsWith('internal/deps/undici/undici'));
  writeFileSync(process.env.LOADED_MODULES, JSON.stringify([...loaded, ...fetch]));
});`;

/**
 * Runs a program of this checkout. Returns its output and the paths of the files that it loaded, relative to the checkout. The entry
 * `undici` means that the program has loaded Node's `fetch`.
 */
export async function loadedBy(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ output: string; modules: readonly string[] }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-loaded-'));
  const file = path.join(folder, 'modules.json');
  try {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(recorder)}`, ...args],
      { cwd: root, env: { ...compiledCode(), ...env, LOADED_MODULES: file } },
    );
    const urls: string[] = JSON.parse(await readFile(file, 'utf8'));
    const modules = urls.flatMap((url) => {
      if (url.startsWith('file:')) return [path.relative(root, new URL(url).pathname)];
      return url.endsWith('undici') ? ['undici'] : [];
    });
    return { output: stdout, modules };
  } finally {
    await rm(folder, { recursive: true });
  }
}
