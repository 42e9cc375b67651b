/**
 * The programs that tests start most: service and worker as bundles, made once per test run from the sources of this checkout. Loading
 * a bundle takes half of the processor time of the start from the sources, because Node then searches for no modules.
 *
 * The code is the same. Tests of `bin/runyard`, such as `test/up-and-down.test.ts`, start the programs from their sources, as
 * benchmarks do. Set `TEST_SOURCES=1` for stack traces with the lines of the sources.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { OnLoadResult, Plugin, PluginBuild } from 'esbuild';
import { makeOnce } from './head-start.ts';

const programs = ['service', 'worker'] as const;
export type Program = (typeof programs)[number];

const root = path.resolve(import.meta.dirname, '../..');
/** Returns the entry file of the sources of a program. */
export const sourceOf = (program: Program): string => path.join(root, `packages/${program}/src/main.ts`);

/** Returns the file to start for a program of this checkout. */
export async function programFile(program: Program): Promise<string> {
  if (process.env.TEST_SOURCES === '1') return sourceOf(program);
  const folder = await makeOnce('programs', bundlePrograms);
  return folder === undefined ? sourceOf(program) : path.join(folder, `${program}.mjs`);
}

async function bundlePrograms(folder: string): Promise<void> {
  const esbuild = await import('esbuild');
  try {
    await esbuild.build({
      absWorkingDir: root,
      entryPoints: Object.fromEntries(programs.map((program) => [program, sourceOf(program)])),
      bundle: true,
      splitting: true,
      platform: 'node',
      target: 'node24',
      format: 'esm',
      // Without the conditions that only bundlers use, so that it takes the files that Node itself would load.
      conditions: [],
      outdir: folder,
      outExtension: { '.js': '.mjs' },
      // An optional package that is not installed.
      external: ['pg-native'],
      // CommonJS packages call `require` for modules of Node.
      banner: {
        js: `import { createRequire as __requireFrom } from 'node:module';const require = __requireFrom(${JSON.stringify(sourceOf('service'))});`,
      },
      legalComments: 'none',
      logLevel: 'error',
      plugins: [ownPlaces],
    });
  } finally {
    await esbuild.stop();
  }
}

/** Lets each module see the place of its source instead of that of the bundle: it reads files and starts programs beside it. */
const ownPlaces: Plugin = {
  name: 'own places',
  setup: (build) => {
    // It starts its own program, and the worker loads it only to bundle the agent.
    build.onResolve({ filter: /^esbuild$/ }, () => ({ path: import.meta.resolve('esbuild'), external: true }));
    build.onLoad({ filter: /\.[cm]?[jt]s$/ }, async ({ path: file }) => await withOwnPlace(build, file));
  },
};

async function withOwnPlace(build: PluginBuild, file: string): Promise<OnLoadResult | undefined> {
  let text = await readFile(file, 'utf8');
  if (!/import\.meta\.|__dirname|__filename/.test(text)) return undefined;
  for (const [call, , name] of text.matchAll(/import\.meta\.resolve\((['"])(.+?)\1\)/g)) {
    const found = await build.resolve(name ?? '', { resolveDir: path.dirname(file), kind: 'import-statement' });
    text = text.replace(call, JSON.stringify(pathToFileURL(found.path).href));
  }
  const places = { dirname: path.dirname(file), filename: file, url: pathToFileURL(file).href };
  for (const [name, place] of Object.entries(places))
    text = text.replaceAll(`import.meta.${name}`, JSON.stringify(place));
  for (const name of ['dirname', 'filename'] as const) {
    const isUsed = text.includes(`__${name}`) && !new RegExp(`(const|let|var) __${name}\\b`).test(text);
    if (isUsed) text = `var __${name} = ${JSON.stringify(places[name])};${text}`;
  }
  return { contents: text, loader: file.endsWith('ts') ? 'ts' : 'js' };
}
