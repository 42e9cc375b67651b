import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startFile } from './agent-program.ts';
import { bundleHash, bundleProgram, readStamp, writeBundle, writeStamp } from './bundle.ts';

const entry = fileURLToPath(new URL('../supervisor-process/main.ts', import.meta.url));

/** The programs from which a supervisor is started. */
export interface SupervisorProgram {
  /** Path of the Node that runs the supervisor. */
  readonly node: string;
  /** Bundle of `supervisor-process/main.ts`. */
  readonly entry: string;
}

/**
 * Returns the supervisor as one bundled program, because the bundle starts faster and needs less memory than the source files. Makes the
 * bundle only if the source files have changed. Removes older bundles. A running supervisor does not need its bundle any more, because it
 * has already read its whole program.
 */
export async function makeSupervisorProgram(stateRoot: string, node: string): Promise<SupervisorProgram> {
  const folder = path.join(stateRoot, 'supervisor');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const stampFile = path.join(folder, 'stamp.json');
  const known = await readStamp(stampFile, entry, process.version);
  if (known !== undefined) return { node, entry: path.join(folder, known, startFile) };
  const bundle = await bundleProgram(entry);
  const hash = bundleHash(bundle, process.version);
  const making = path.join(folder, 'making');
  for (const name of await readdir(folder)) await rm(path.join(folder, name), { recursive: true, force: true });
  await writeBundle(bundle, making);
  await rename(making, path.join(folder, hash));
  await writeStamp(stampFile, entry, process.version, hash, bundle);
  return { node, entry: path.join(folder, hash, startFile) };
}
