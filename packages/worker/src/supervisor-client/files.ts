/**
 * The files in the folder of each supervised sandbox. Only the worker's user may enter this folder, and no sandbox can see it. This
 * module does not load zod.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { open, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Returns the folder of all supervisors of a worker. */
export const supervisorsFolder = (stateRoot: string): string => path.join(stateRoot, 'v');

/** Returns the paths in the folder of one supervisor. */
export const filesOf = (folder: string) => ({
  /** The secret that only the worker and the supervisor know. The file has mode 0600. */
  secret: path.join(folder, 'secret'),
  /** Socket on which the supervisor listens for the next worker, which adopts the sandbox. */
  control: path.join(folder, 'c'),
  /** Record of the supervisor's process and of the execution. The file does not exist before the agent starts. */
  record: path.join(folder, 'record.json'),
  /** Report how the sandbox ended. The file exists only when no process of the sandbox is left. */
  end: path.join(folder, 'end.json'),
});

/** Returns the file with the standard error of a supervisor. */
export const logOf = (stateRoot: string, supervisorId: string): string =>
  path.join(supervisorsFolder(stateRoot), `${supervisorId}.log`);

/** Writes a file. If this process dies during the write, the file is complete or absent. */
export function writeWhole(file: string, content: object): void {
  writeFileSync(`${file}.new`, JSON.stringify(content), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/**
 * Writes a file durably. If the machine stops during the write, the file is complete or absent. When the function resolves, the file is on
 * the disk.
 */
export async function writeDurably(file: string, content: object): Promise<void> {
  await writeFile(`${file}.new`, JSON.stringify(content), { mode: 0o600, flush: true });
  await rename(`${file}.new`, file);
  const folder = await open(path.dirname(file), 'r');
  await folder.sync().finally(() => folder.close());
}
