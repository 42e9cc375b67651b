import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, realpath } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

/** The ways in which gVisor intercepts the system calls of a program. Older versions have only `ptrace`. */
type Platform = 'systrap' | 'ptrace';

/** The gVisor of this machine. */
export interface Gvisor {
  /** Path of runsc. */
  readonly program: string;
  readonly platform: Platform;
}

/** Folders that are searched after the folders of `PATH`, because the `PATH` of a system service often has few folders. */
const places = ['/usr/local/bin', '/usr/bin'];

/** Returns the first runsc on `PATH`; `undefined` if runsc is not installed. */
async function findRunsc(pathVariable: string): Promise<string | undefined> {
  for (const folder of [...pathVariable.split(path.delimiter), ...places]) {
    if (!path.isAbsolute(folder)) continue;
    const file = path.join(folder, 'runsc');
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return await realpath(file);
  }
  return undefined;
}

/**
 * Returns the gVisor of this machine with the best platform that works. Returns `undefined` if gVisor is not installed. Rejects if
 * runsc does not run on this machine.
 */
export async function findGvisor(pathVariable = process.env.PATH ?? ''): Promise<Gvisor | undefined> {
  const program = await findRunsc(pathVariable);
  if (program === undefined) return undefined;
  const { stdout } = await promisify(execFile)(program, ['help', 'platforms'], { env: {}, timeout: 20_000 });
  return { program, platform: /^\s*systrap$/m.test(stdout) ? 'systrap' : 'ptrace' };
}
