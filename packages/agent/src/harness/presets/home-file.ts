import { closeSync, constants, lstatSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';

/**
 * Writes a file below the home of the run. An earlier command may have put a link in its way, or in the way of its folders: the link
 * is removed, so that nothing outside is written.
 */
export function writeHomeFile(home: string, name: string, text: string): void {
  const parts = name.split('/');
  const file = parts.pop() ?? '';
  let folder = home;
  for (const part of parts) {
    folder = path.join(folder, part);
    if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) continue;
    rmSync(folder, { force: true });
    mkdirSync(folder, { mode: 0o700 });
  }
  const target = path.join(folder, file);
  rmSync(target, { force: true, recursive: true });
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
  const descriptor = openSync(target, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
  try {
    writeSync(descriptor, text);
  } finally {
    closeSync(descriptor);
  }
}
