import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, rmSync, statSync } from 'node:fs';
import type { Socket } from 'node:net';
import { proxyVariables } from '@runyard/system/outgoing/proxy-settings';
import { startTicks, thisProcess } from '@runyard/system/process-identity';
import type { SupervisorProgram } from '../runtime/supervisor-program.ts';
import { SandboxError } from '../sandboxes/sandbox.ts';
import type { Addressed } from './channels.ts';
import { logOf } from './files.ts';
import { openLines } from './lines.ts';
import type { Order, Report } from './messages.ts';
import type { SupervisorProcess } from './places.ts';

/** Flags of the supervisor's Node. They save memory and threads, and prevent that SIGUSR1 opens Node's inspector. */
const flags = ['--disable-sigusr1', '--max-semi-space-size=1', '--v8-pool-size=1'];

/**
 * Environment variables that a supervisor gets from the worker. They contain no secrets of the service; the address of the proxy may contain a
 * password. Sandboxes get none of them.
 */
const variables = [
  ...['TZ', 'RUNYARD_CA_FILE', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
  ...proxyVariables,
];

export interface SupervisorStart {
  readonly program: SupervisorProgram;
  /** Label from `supervisorLabel`, by which the next worker finds the supervisor. */
  readonly label: string;
  readonly stateRoot: string;
}

/** Starts a supervisor in a separate session, without the secrets of the worker's environment. */
export async function startSupervisor(start: SupervisorStart): Promise<SupervisorProcess> {
  const id = randomBytes(6).toString('hex');
  const log = logOf(start.stateRoot, id);
  const stderr = openSync(log, 'a', 0o600);
  const env = Object.fromEntries(variables.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
  const child = spawn(start.program.node, [...flags, start.program.entry, `${start.label}${id}`], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', stderr, 'pipe'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', ...env },
  });
  closeSync(stderr);
  const { pid } = child;
  if (pid === undefined) {
    const error = await new Promise<Error>((resolve) => child.once('error', resolve));
    throw new SandboxError(
      'prepare',
      'supervisor_not_started',
      `the supervisor of sandboxes could not be started: ${error.message}`,
    );
  }
  child.on('error', () => {});
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  void exited.then(() => removeIfEmpty(log));
  // Without `unref`, this process would wait for the supervisor, which must continue when this process ends.
  child.unref();
  const lines = openLines<Addressed<Order>, Addressed<Report>>(child.stdio[3] as Socket, {
    message: () => {},
    closed: () => {},
  });
  return { id, process: { ...thisProcess(), pid, start_ticks: startTicks(pid) ?? 0 }, lines, exited };
}

/** Removes an empty log. Other logs stay until the next start of a worker. */
function removeIfEmpty(log: string): void {
  if (statSync(log, { throwIfNoEntry: false })?.size === 0) rmSync(log, { force: true });
}
