/**
 * One folder for all temporary files of a test run, removed at its end. Test processes are killed when their files are done,
 * so what they remove at their own exit would stay.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

export async function setup(): Promise<() => Promise<void>> {
  const outer = process.env.TMPDIR;
  // A short name: the path of a Unix socket has at most 107 bytes.
  const folder = await mkdtemp(path.join(tmpdir(), 'ry-'));
  // PostgreSQL and the programs in sandboxes have user ids of their own.
  await chmod(folder, 0o1777);
  process.env.TMPDIR = folder;
  return async () => {
    if (outer === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = outer;
    // Without retries: in a folder that a failed test left mounted, each level would repeat those of the levels below.
    await rm(folder, { recursive: true, force: true }).catch((error: Error) => {
      process.stderr.write(`temporary files of the tests are left in ${folder}: ${error.message}\n`);
    });
  };
}
