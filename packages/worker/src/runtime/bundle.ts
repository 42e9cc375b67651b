import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { startFile } from './agent-program.ts';
import { isPart, joinParts } from './join-parts.ts';
import { withEsbuild } from './with-esbuild.ts';

/** A bundled program. `files`: the names and contents of its files. */
export interface Bundle {
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  /** Absolute paths of the source files from which the bundle was made. */
  readonly inputs: readonly string[];
}

/** If this environment variable is set, a bundled program stores its compiled code when it ends. */
export const keepCodeVariable = 'RUNYARD_KEEP_CODE';

/** Source text of `startFile`. Another program may load this file without starting the bundled program, in order to load single parts. */
const startSource = `
import { openParts } from './parts-loader.ts';
export const { load, keepCode } = openParts(__dirname);
export const start = () => load('./main.cjs');
if (process.env.${keepCodeVariable}) process.once('exit', () => {
  // Ignores the error, because without the stored code the next start only takes longer.
  try { keepCode(); } catch {}
});
delete process.env.${keepCodeVariable};
if (require.main === module) start();
`;

const common = {
  platform: 'node',
  target: 'node24',
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  logLevel: 'silent',
} as const;

/** Folder beside the entry file of a program in which the npm package has the program's bundle. A checkout has no such folder. */
export const prebuiltFolder = (entry: string): string => path.join(path.dirname(entry), 'bundle');

/** Returns the bundle that the npm package has; undefined: this is a checkout. */
async function prebuilt(entry: string): Promise<Bundle | undefined> {
  const folder = prebuiltFolder(entry);
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    },
  );
  const inputs = found.filter((each) => each.isFile()).map((each) => path.join(each.parentPath, each.name));
  if (inputs.length === 0) return undefined;
  const files = inputs.sort().map(async (file) => ({ name: path.relative(folder, file), bytes: await readFile(file) }));
  return { files: await Promise.all(files), inputs };
}

/**
 * Bundles a program: its entry file with everything that the file imports. Each dynamically imported module becomes a part, which is
 * read only when it is needed. The modules that every run needs are joined into a few parts. No module may use `await` at its top
 * level, because the parts are CommonJS scripts.
 */
export async function bundleProgram(entry: string): Promise<Bundle> {
  const made = await prebuilt(entry);
  if (made !== undefined) return made;
  return await withEsbuild(async (esbuild) => {
    const split = await esbuild.build({
      ...common,
      entryPoints: { main: entry },
      bundle: true,
      // esbuild can split a bundle only in the format of ECMAScript modules.
      splitting: true,
      format: 'esm',
      write: false,
      metafile: true,
      outdir: '/parts',
      outExtension: { '.js': '.cjs' },
      chunkNames: '[name]-[hash]',
      absWorkingDir: path.dirname(entry),
      plugins: [joinParts(entry)],
    });
    const parts = split.outputFiles.map(async ({ path: file, text }) => {
      const { code } = await esbuild.transform(text, {
        ...common,
        format: 'cjs',
        supported: { 'dynamic-import': false },
        banner: '(function(exports,require,module){"use strict";',
        footer: '})',
      });
      return { name: `parts/${path.basename(file)}`, bytes: Buffer.from(code) };
    });
    const start = await esbuild.build({
      ...common,
      stdin: { contents: startSource, resolveDir: import.meta.dirname },
      bundle: true,
      format: 'cjs',
      write: false,
    });
    return {
      files: [
        ...start.outputFiles.map(({ contents }) => ({ name: startFile, bytes: contents })),
        ...(await Promise.all(parts)),
      ],
      inputs: [
        ...Object.keys(split.metafile.inputs)
          .filter((input) => !isPart(input))
          .map((input) => path.resolve(path.dirname(entry), input)),
        path.join(import.meta.dirname, 'parts-loader.ts'),
      ],
    };
  });
}

/** Writes the files of the bundle into `folder`. All users of the machine may read them. */
export async function writeBundle(bundle: Bundle, folder: string): Promise<void> {
  for (const file of bundle.files) {
    const place = path.join(folder, file.name);
    await mkdir(path.dirname(place), { recursive: true, mode: 0o755 });
    await writeFile(place, file.bytes, { mode: 0o644 });
  }
}

/**
 * Returns sixteen hex digits that identify the contents of the bundle together with `salt`. The salt identifies the Node that runs the
 * bundle.
 */
export function bundleHash(bundle: Bundle, salt: string): string {
  const hash = createHash('sha256').update(salt);
  for (const file of bundle.files) hash.update(`\0${file.name}\0`).update(file.bytes);
  return hash.digest('hex').slice(0, 16);
}

const Stamp = z.object({
  salt: z.string(),
  entry: z.string(),
  hash: z.string(),
  inputs: z.array(z.tuple([z.string(), z.number(), z.number()])),
});

/**
 * Stores the size and time of each source file, together with the hash of the bundle. The next start compares sizes and times, and
 * bundles again only if a file has changed.
 */
export async function writeStamp(
  file: string,
  entry: string,
  salt: string,
  hash: string,
  bundle: Bundle,
): Promise<void> {
  const inputs = await Promise.all(bundle.inputs.map(async (input) => [input, ...(await sizeAndTime(input))]));
  await writeFile(file, JSON.stringify({ salt, entry, hash, inputs }), { mode: 0o600 });
}

/**
 * Returns the hash of the existing bundle if it was made from the present source files. Returns `undefined` if a source file has changed
 * or no bundle was made yet.
 */
export async function readStamp(file: string, entry: string, salt: string): Promise<string | undefined> {
  try {
    const stamp = Stamp.parse(JSON.parse(await readFile(file, 'utf8')));
    if (stamp.entry !== entry || stamp.salt !== salt) return undefined;
    const same = await Promise.all(
      stamp.inputs.map(async ([input, size, time]) => {
        const [nowSize, nowTime] = await sizeAndTime(input);
        return nowSize === size && nowTime === time;
      }),
    );
    return same.every(Boolean) ? stamp.hash : undefined;
  } catch {
    return undefined;
  }
}

async function sizeAndTime(file: string): Promise<[number, number]> {
  const found = await stat(file).catch(() => undefined);
  return [found?.size ?? -1, found?.mtimeMs ?? -1];
}
