import { createHash } from 'node:crypto';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { isPart, joinParts } from './join-parts.ts';

/** The agent as one program: file names below `agent/` and their contents. */
export interface Bundle {
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  /** Source files of the bundle, absolute. */
  readonly inputs: readonly string[];
}

/**
 * Node's ESM has no `require`; packages in CommonJS call it for Node's own modules, and for optional packages, which are not there. The one
 * of `node:module` would cost each start 3.5 ms.
 */
const requireShim = [
  'const require=(name)=>{const found=process.getBuiltinModule(name);if(found!==undefined)return found;',
  `throw Object.assign(new Error("Cannot find module '"+name+"'"),{code:"MODULE_NOT_FOUND"})};`,
].join('');

/**
 * Bundles the agent's entry file with everything that it imports. Each dynamic import becomes a chunk, which is read only when it is
 * needed; the modules of every run become few chunks. esbuild is loaded here, because mostly the bundle exists already.
 */
export async function bundleAgent(entry: string): Promise<Bundle> {
  const esbuild = await import('esbuild');
  try {
    const result = await esbuild.build({
      entryPoints: { main: entry },
      bundle: true,
      splitting: true,
      write: false,
      metafile: true,
      platform: 'node',
      target: 'node24',
      format: 'esm',
      outdir: '/agent',
      outExtension: { '.js': '.mjs' },
      chunkNames: 'chunks/[name]-[hash]',
      minifyWhitespace: true,
      minifySyntax: true,
      legalComments: 'none',
      banner: { js: requireShim },
      absWorkingDir: path.dirname(entry),
      plugins: [joinParts(entry)],
      logLevel: 'silent',
    });
    return {
      files: result.outputFiles.map((file) => ({ name: path.relative('/agent', file.path), bytes: file.contents })),
      inputs: Object.keys(result.metafile.inputs)
        .filter((input) => !isPart(input))
        .map((input) => path.resolve(path.dirname(entry), input)),
    };
  } finally {
    // Otherwise esbuild's helper process stays until the worker ends.
    await esbuild.stop();
  }
}

/** Writes the bundle below `folder`, readable for everyone. */
export async function writeBundle(bundle: Bundle, folder: string): Promise<void> {
  for (const file of bundle.files) {
    const place = path.join(folder, file.name);
    await mkdir(path.dirname(place), { recursive: true, mode: 0o755 });
    await writeFile(place, file.bytes, { mode: 0o644 });
  }
}

/** Returns sixteen hex digits that identify the bundle's contents and `salt`, the Node that it runs on. */
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

/** Records the state of the sources of `hash`, so that the next start can find out without bundling whether they changed. */
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

/** Returns the hash of the bundle of the present sources; `undefined` if a source changed or nothing was bundled yet. */
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
