/**
 * The programs that tests start most: service, worker and command. Each test run makes bundles of them from the sources of this
 * checkout. A start from a bundle takes half of the processor time of a start from the sources, because Node need not search for
 * modules.
 *
 * The bundles contain the same code as the sources. The only difference: workers use bundles of agent and supervisor that each test
 * run makes once. Some tests, such as `test/newcomer.test.ts`, start the programs with `bin/runyard` from the sources, as users do.
 * Set `TEST_SOURCES=1` for stack traces with the lines of the sources.
 */
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { OnLoadResult, Plugin, PluginBuild } from 'esbuild';
import { withEsbuild } from '../../packages/worker/src/runtime/with-esbuild.ts';
import { agentBundle, agentSource, keepBundle } from './agent-program.ts';
import { makeOnce } from './head-start.ts';

const programs = ['service', 'worker'] as const;
export type Program = (typeof programs)[number];

/** Further programs that tests start, most of which belong to the tests. */
const ofTests = {
  'print-runtime': 'packages/worker/src/runtime/print-runtime.ts',
  'worker-process': 'packages/worker/test/worker-process.ts',
  'writing-service': 'test/support/writing-service.ts',
} as const;
type ProgramOfTests = keyof typeof ofTests;

const root = path.resolve(import.meta.dirname, '../..');
/** Returns the entry file of the sources of a program. */
export const sourceOf = (program: Program | ProgramOfTests): string =>
  path.join(root, program in ofTests ? ofTests[program as ProgramOfTests] : `packages/${program}/src/main.ts`);

/** Returns the file to start for a program of this checkout. */
export async function programFile(program: Program | ProgramOfTests): Promise<string> {
  if (process.env.TEST_SOURCES === '1') return sourceOf(program);
  const folder = await makeOnce('programs', bundlePrograms);
  return folder === undefined ? sourceOf(program) : path.join(folder, `${program}.mjs`);
}

/**
 * Node's options for a program that starts from a bundle. With more memory for young objects, a start takes a fifth less processor
 * time. A program that starts from its sources gets the same options as in production.
 */
export const quickStartFlags: readonly string[] = ['--max-semi-space-size=32', '--min-semi-space-size=16'];

/** Path of `bin/runyard`, which starts all programs from their sources. */
export const runyardOfSources = path.join(root, 'bin/runyard');

/** Returns the executable file of the runyard command. It starts service and worker from their bundles. */
export async function runyardFile(): Promise<string> {
  if (process.env.TEST_SOURCES === '1') return runyardOfSources;
  const folder = await makeOnce('programs', bundlePrograms);
  return folder === undefined ? runyardOfSources : path.join(folder, 'runyard.mjs');
}

async function bundlePrograms(folder: string): Promise<void> {
  await mkdir(folder);
  await writeFile(path.join(folder, 'agent.json'), await agentBundle());
  await keepBundle(path.join(folder, 'supervisor.json'), bundledByWorkers['supervisor.json']);
  await withEsbuild(async (esbuild) => {
    await esbuild.build({
      absWorkingDir: root,
      entryPoints: {
        ...Object.fromEntries(
          [...programs, ...(Object.keys(ofTests) as ProgramOfTests[])].map((program) => [program, sourceOf(program)]),
        ),
        runyard: path.join(root, 'packages/cli/src/main.ts'),
        background: path.join(root, 'packages/cli/src/supervise/background-main.ts'),
      },
      bundle: true,
      splitting: true,
      platform: 'node',
      target: 'node24',
      format: 'esm',
      // Leave out the conditions that only bundlers use, so that the bundler takes the files that Node would load.
      conditions: [],
      outdir: folder,
      outExtension: { '.js': '.mjs' },
      // Leave out this optional package, because it is not installed.
      external: ['pg-native'],
      // CommonJS packages call `require` for modules of Node, so define it.
      banner: {
        js: `import { createRequire as __requireFrom } from 'node:module';const require = __requireFrom(${JSON.stringify(sourceOf('service'))});`,
      },
      legalComments: 'none',
      logLevel: 'error',
      plugins: [ownPlaces],
    });
  });
  const command = path.join(folder, 'runyard.mjs');
  // Give only one option: the first line of a script cannot have more.
  await writeFile(command, `#!${process.execPath} --min-semi-space-size=16\n${await readFile(command, 'utf8')}`);
  await chmod(command, 0o755);
}

/**
 * Programs that a worker bundles when its data folder is empty. Keys: file names of the stored bundles. Values: entry files of the
 * sources.
 */
const bundledByWorkers = {
  'agent.json': agentSource,
  'supervisor.json': path.join(root, 'packages/worker/src/supervisor-process/main.ts'),
};

/**
 * Returns code that computes the path of a file beside the bundle at run time, because the folder of the bundles is renamed later.
 * `import.meta['dirname']` is written so that the bundler does not replace it.
 */
const besideBundle = (file: string) => `path.join(import.meta['dirname'], '${file}')`;

const makingBundle = 'export async function bundleProgram(entry: string): Promise<Bundle> {';

/** Parts of the sources that a bundle replaces: paths of programs to start, and code that makes other bundles. */
const replacedCode: Readonly<Record<string, readonly (readonly [code: string, other: string])[]>> = {
  'packages/cli/src/supervise/stack.ts': [
    ...programs.map(
      (program) => [`path.join(root, 'packages/${program}/src/main.ts')`, besideBundle(`${program}.mjs`)] as const,
    ),
    ["['--max-semi-space-size=4', '--heap-growing-percent=50']", JSON.stringify(quickStartFlags)],
  ],
  'packages/cli/src/supervise/start-background.ts': [
    ["fileURLToPath(new URL('background-main.ts', import.meta.url))", besideBundle('background.mjs')],
  ],
  'packages/worker/src/runtime/bundle.ts': [
    [
      makingBundle,
      `${makingBundle}
        const ofTests = ${JSON.stringify(Object.fromEntries(Object.entries(bundledByWorkers).map(([name, entry]) => [entry, name])))}[entry];
        if (ofTests !== undefined) {
          const { files, inputs } = JSON.parse(await readFile(path.join(import.meta['dirname'], ofTests), 'utf8'));
          return { files: files.map(({ name, text }) => ({ name, bytes: Buffer.from(text) })), inputs };
        }`,
    ],
  ],
};

/**
 * Gives each module the path of its source instead of the path of the bundle, because modules read files and start
 * programs beside their source.
 */
const ownPlaces: Plugin = {
  name: 'own places',
  setup: (build) => {
    // Do not bundle esbuild: it starts a program from its own package, and the worker needs it only to bundle the agent.
    build.onResolve({ filter: /^esbuild$/ }, () => ({ path: import.meta.resolve('esbuild'), external: true }));
    build.onLoad({ filter: /\.[cm]?[jt]s$/ }, async ({ path: file }) => await withOwnPlace(build, file));
  },
};

async function withOwnPlace(build: PluginBuild, file: string): Promise<OnLoadResult | undefined> {
  let text = await readFile(file, 'utf8');
  const replaced = replacedCode[path.relative(root, file)] ?? [];
  for (const [code, other] of replaced) {
    if (!text.includes(code)) throw new Error(`${file} has no longer this code, which a bundle replaces: ${code}`);
    text = text.replace(code, other);
  }
  if (replaced.length === 0 && !/import\.meta\.|__dirname|__filename/.test(text)) return undefined;
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
