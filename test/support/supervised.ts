/** Test support: runs `runyard` on a data folder of its own, and observes the programs that it starts there. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, vi } from 'vitest';
import { endCommands, type RunningCommand, runCommand, startCommand } from './command-line.ts';
import { giveDatabase, giveRuntime, keepRuntime } from './head-start.ts';
import { processesOf } from './processes-of.ts';
import { runyardFile } from './programs.ts';

/** Patterns for the command lines of the programs, from the sources or from a bundle. */
const programs = {
  service: /packages\/service\/src\/main\.ts|\/service\.mjs/,
  worker: /packages\/worker\/src\/main\.ts|\/worker\.mjs/,
};

export const runyard = await runyardFile();

export interface Supervised {
  /** Working directory of the commands; the data folder is `data` in it. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Removes the database and the runtime from the folder, for a test of the first start on an empty folder. */
  withoutHeadStart(): void;
  /** Starts a command without arguments. */
  start(command: string, more?: Readonly<Record<string, string>>): RunningCommand;
  /** Waits until no process of the folder is left. */
  noProcessLeft(): Promise<void>;
  /** Returns the running processes of a program. */
  programs(name: 'service' | 'worker'): ReturnType<typeof processesOf>;
  /** Returns the address of the running service. */
  origin(): string;
  /** Returns the message of the last line in the service's log. */
  lastMessageOfService(): unknown;
}

/**
 * `describe` for tests that share a folder and its programs. Before the tests, it makes the folder with a database and a runtime.
 * After the tests, it stops the programs and checks that no process is left.
 */
export function describeSupervised(name: string, tests: (here: Supervised) => void): void {
  describe(name, () => tests(useSupervised()));
}

function useSupervised(): Supervised {
  let folder = '';
  const env = () => ({ RUNYARD_DATA_DIR: path.join(folder, 'data'), RUNYARD_PORT: '0' });
  const noProcessLeft = async () => {
    await vi.waitFor(() => expect(processesOf(folder)).toEqual([]), { timeout: 60_000, interval: 200 });
  };
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'runyard-up-'));
    const { RUNYARD_DATA_DIR: dataDir } = env();
    mkdirSync(dataDir, { mode: 0o700 });
    await giveDatabase(dataDir);
    await giveRuntime(dataDir);
  });
  afterAll(async () => {
    await keepRuntime(env().RUNYARD_DATA_DIR);
    if (processesOf(folder).length > 0) await runCommand([runyard, 'down', '--force'], { cwd: folder, env: env() });
    endCommands();
    await noProcessLeft();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    get folder() {
      return folder;
    },
    get env() {
      return env();
    },
    withoutHeadStart: () => rmSync(env().RUNYARD_DATA_DIR, { recursive: true }),
    start: (command, more = {}) => startCommand([runyard, command], { cwd: folder, env: { ...env(), ...more } }),
    noProcessLeft,
    programs: (name) => {
      const found = processesOf(folder).filter(({ command }) => programs[name].test(command));
      // Leave out a child that has not yet executed its own program: until then, it has the command line of its parent.
      return found.filter(({ parent }) => !found.some(({ pid }) => pid === parent));
    },
    origin: () => JSON.parse(readFileSync(path.join(folder, 'data/supervisor.json'), 'utf8')).origin,
    lastMessageOfService: () => {
      const lines = readFileSync(path.join(folder, 'data/logs/service.log'), 'utf8').trimEnd().split('\n');
      return JSON.parse(lines.at(-1) ?? '').msg;
    },
  };
}
