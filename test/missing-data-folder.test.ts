/** Tests commands on a data folder that does not exist, for example because its name has a typing error. */
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from './support/command-line.ts';
import { isLong } from './support/long.ts';

const root = path.resolve(import.meta.dirname, '..');

const commands = [
  [['status'], 1],
  [['down'], 0],
  [['runs'], 1],
  [['env'], 1],
  [['backup', 'never-written'], 1],
] as const;
/** Commands that look for the service as `runs` does, and commands that need no service. */
const further = [
  [['--help'], 0],
  [['logs', 'latest'], 1],
  [['models'], 1],
  [['open', '--print'], 1],
  [['api', 'GET', '/agent/runs'], 1],
  [['factory', 'validate', '.'], 1],
] as const;

test.each(isLong ? [...commands, ...further] : commands)(
  'the command %j creates no data folder',
  async (words, code) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'runyard-missing-'));
    const env = { RUNYARD_DATA_DIR: path.join(folder, 'mistyped'), NODE_COMPILE_CACHE: '' };
    const ended = await runCommand([path.join(root, 'bin/runyard'), ...words], { cwd: folder, env });
    expect(ended.code, ended.output).toBe(code);
    expect(existsSync(path.join(folder, 'mistyped'))).toBe(false);
  },
);
