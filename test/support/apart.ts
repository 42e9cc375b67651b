/** Test support: starts a service and a worker with two `runyard` commands, as on two machines, and runs commands of a client. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { endCommands, type RunningCommand, runCommand, startCommand } from './command-line.ts';
import { giveDatabase, giveRuntime, keepRuntime } from './head-start.ts';
import { processesOf } from './processes-of.ts';
import { runyardFile } from './programs.ts';

export const runyard = await runyardFile();

export interface Apart {
  /** Working directory of the commands. */
  readonly folder: string;
  /** Environment of the client's commands: address and key of the service, and a data folder without a service. */
  readonly client: Readonly<Record<string, string>>;
  readonly worker: RunningCommand;
  /** Runs a command of the client, and resolves when it has ended. */
  call(
    args: readonly string[],
    more?: { readonly env?: Readonly<Record<string, string>>; readonly input?: string },
  ): ReturnType<typeof runCommand>;
}

/** Starts service and worker before the first test of a file, and stops them after the last test. */
export function useApart(): Apart {
  let folder = '';
  let client: Record<string, string> = {};
  let service: RunningCommand;
  let worker: RunningCommand;
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'runyard-apart-'));
    await giveDatabase(path.join(folder, 'service'));
    await giveRuntime(path.join(folder, 'worker'));
    service = startCommand([runyard, 'service'], {
      cwd: folder,
      env: { RUNYARD_DATA_DIR: path.join(folder, 'service'), RUNYARD_PORT: '0' },
    });
    await service.sees('Runyard is running');
    const { origin } = JSON.parse(readFileSync(path.join(folder, 'service/supervisor.json'), 'utf8'));
    const key = readFileSync(path.join(folder, 'service/bootstrap-key'), 'utf8').trim();
    client = { RUNYARD_BASE_URL: origin, RUNYARD_API_KEY: key, RUNYARD_DATA_DIR: path.join(folder, 'client') };
    worker = startCommand([runyard, 'worker'], {
      cwd: folder,
      env: { ...client, RUNYARD_DATA_DIR: path.join(folder, 'worker') },
    });
    await worker.sees(`a worker for ${origin} runs`);
    await keepRuntime(path.join(folder, 'worker'));
  });
  afterAll(async () => {
    service.child.kill('SIGTERM');
    worker.child.kill('SIGINT');
    await Promise.all([service.exited, worker.exited]);
    endCommands();
    expect(processesOf(folder)).toEqual([]);
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    get folder() {
      return folder;
    },
    get client() {
      return client;
    },
    get worker() {
      return worker;
    },
    call: (args, more = {}) =>
      runCommand([runyard, ...args], {
        cwd: folder,
        env: { ...client, ...more.env },
        ...(more.input ? { input: more.input } : {}),
      }),
  };
}
