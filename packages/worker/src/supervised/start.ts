import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import path from 'node:path';
import { type ProcessIdentity, startTicks, thisProcess } from '@runyard/contract/process-identity';
import { SandboxError } from '../sandboxes/sandbox.ts';
import type { SandboxTraces } from '../sandboxes/supervisors.ts';
import { filesOf, supervisorsFolder } from './files.ts';
import { openLines } from './lines.ts';
import type { Order, Report } from './messages.ts';
import { type SupervisedLog, type SupervisedSandbox, superviseSandbox } from './supervised.ts';

/** Flags of the supervisor's Node: small heaps, few threads, and no inspector on SIGUSR1. */
const flags = ['--disable-sigusr1', '--max-semi-space-size=1', '--v8-pool-size=1'];

/** Variables of the worker that a supervisor gets. None of them is a secret. */
const variables = ['TZ', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'];

export interface SupervisorStart {
  /** Bundle of `supervisor/main.ts`. */
  readonly program: string;
  /** Folder for compiled code. */
  readonly compileCache: string;
  /** From `supervisorLabel`. */
  readonly label: string;
  readonly traces: SandboxTraces;
  readonly log: SupervisedLog;
}

/** Starts a supervisor in a session of its own, with nothing of the worker's environment that is secret. */
export async function startSupervisor(start: SupervisorStart): Promise<{
  readonly sandbox: SupervisedSandbox;
  readonly process: ProcessIdentity;
  readonly folder: string;
}> {
  const { traces, log } = start;
  const folder = path.join(supervisorsFolder(traces.stateRoot), traces.id);
  await mkdir(folder, { mode: 0o700 });
  const files = filesOf(folder);
  await writeFile(files.secret, randomBytes(32).toString('hex'), { mode: 0o600 });
  const stderr = openSync(files.log, 'a', 0o600);
  const env = Object.fromEntries(variables.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
  const child = spawn(process.execPath, [...flags, start.program, folder, `${start.label}${traces.id}`], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', stderr, 'pipe'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', NODE_COMPILE_CACHE: start.compileCache, ...env },
  });
  closeSync(stderr);
  const { pid } = child;
  if (pid === undefined) {
    const error = await new Promise<Error>((resolve) => child.once('error', resolve));
    await rm(folder, { recursive: true, force: true });
    throw new SandboxError(
      'prepare',
      'supervisor_not_started',
      `the sandbox's supervisor could not be started: ${error.message}`,
    );
  }
  child.on('error', () => {});
  // It goes on when this process ends.
  child.unref();
  const lines = openLines<Order, Report>(child.stdio[3] as Socket, { message: () => {}, closed: () => {} });
  const identity = { ...thisProcess(), pid, start_ticks: startTicks(pid) ?? 0 };
  return { sandbox: superviseSandbox({ folder, process: identity, lines, traces, log }), process: identity, folder };
}
