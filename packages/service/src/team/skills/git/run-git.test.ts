import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** This script opens files until no file descriptor is left, and then starts git. */
const program = `
  import { openSync } from 'node:fs';
  import { runGit } from ${JSON.stringify(import.meta.resolve('./run-git.ts'))};
  const files = [];
  try {
    for (;;) files.push(openSync('/dev/null'));
  } catch {}
  const asked = { folder: '/', maxOutputBytes: 1, signal: new AbortController().signal };
  console.log(await runGit(['version'], asked).catch(({ kind }) => kind));`;

test('a git process that cannot start because no file descriptor is left is reported, and does not end the process', async () => {
  const limited = ['-c', 'ulimit -n 60; exec "$@"', 'sh', process.execPath];
  const { stdout } = await promisify(execFile)('/bin/sh', [...limited, '--input-type=module', '--eval', program]);
  expect(stdout).toBe('unavailable\n');
});
