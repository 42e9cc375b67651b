import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { Failure } from '../exits/failure.ts';

/**
 * Adds the variables of a file to `env`, one `NAME=value` a line. Variables that are set already stay. @throws Failure if the file cannot
 * be read, or if somebody else could have written it: the command may have more rights than that person
 */
export function addEnvFile(file: string, env: Record<string, string | undefined> = process.env): void {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (error) {
    throw new Failure(`--env-file cannot be read: ${(error as Error).message}`, 2);
  }
  try {
    const { uid, mode } = fstatSync(descriptor);
    if ((uid !== 0 && uid !== process.getuid?.()) || (mode & 0o022) !== 0)
      throw new Failure(
        `--env-file ${file}: other users can change this file. Only you and root may own and write it: chown and chmod 600 it`,
        2,
      );
    for (const [name, value] of Object.entries(parseEnv(readFileSync(descriptor, 'utf8')))) env[name] ??= value;
  } finally {
    closeSync(descriptor);
  }
}
