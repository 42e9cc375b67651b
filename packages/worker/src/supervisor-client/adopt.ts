import { randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stateOf } from '@runyard/system/process-identity';
import { filesOf, supervisorsFolder } from './files.ts';
import { openLines } from './lines.ts';
import type { Challenge, SupervisorProof, WorkerProof } from './messages.ts';
import { isProof, proofOf } from './proof.ts';
import { bootId, type RecordedEnd, readEnd, readRecord, type SupervisorRecord } from './records.ts';
import { type SupervisedLog, type SupervisedSandbox, type Supervisor, superviseSandbox } from './supervised-sandbox.ts';

/** A sandbox that an earlier worker left. The sandbox may still run or may have ended. */
export interface LeftSandbox {
  readonly folder: string;
  readonly record: SupervisorRecord;
  readonly sandbox: Pick<
    SupervisedSandbox,
    'id' | 'workspace' | 'ended' | 'onDenied' | 'rest' | 'kill' | 'dispose' | 'letGo' | 'spawn'
  >;
  /** True if the sandbox still runs. If it is false, the worker only has to report the end of the sandbox. */
  readonly lives: boolean;
}

/**
 * Time limit for the answer of a supervisor. It is long, because a machine with few processors may have to run all supervisors at the
 * same time.
 */
const answerMs = 5000;
/** Time limit for all attempts to adopt one sandbox from its supervisor. */
const adoptionMs = 20_000;

/** Creates the folder of the supervisors. Throws if it may belong to another user. */
async function openFolder(stateRoot: string): Promise<string> {
  const supervisors = supervisorsFolder(stateRoot);
  await mkdir(supervisors, { recursive: true, mode: 0o700 });
  const found = await lstat(supervisors);
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0)
    throw new Error(`${supervisors} must be a folder of this user with mode 0700: remove it`);
  return supervisors;
}

/**
 * Adopts the sandboxes that earlier workers of this data folder left. A running sandbox is adopted only if the recorded supervisor process
 * still exists and the machine was not restarted. The supervisor must also prove that it knows the secret of its folder, which no sandbox
 * can read. The caller holds the lock of the data folder, so no other worker adopts these sandboxes.
 */
export async function adoptSandboxes(
  stateRoot: string,
  adoptSeconds: number,
  log: SupervisedLog,
): Promise<LeftSandbox[]> {
  const supervisors = await openFolder(stateRoot);
  const names = await readdir(supervisors, { withFileTypes: true });
  const folders = names.filter((entry) => entry.isDirectory()).map(({ name }) => path.join(supervisors, name));
  const left = await Promise.all(folders.map((folder) => adopt(folder, adoptSeconds, log)));
  return left.filter((found) => found !== undefined);
}

async function adopt(folder: string, adoptSeconds: number, log: SupervisedLog): Promise<LeftSandbox | undefined> {
  const record = readRecord(folder);
  if (record === undefined || record.traces.id !== path.basename(folder)) return undefined;
  const secret = await readFile(filesOf(folder).secret, 'utf8').catch(() => '');
  const isHere = () => record.boot_id === bootId() && stateOf(record.process) === 'alive';
  const deadline = performance.now() + adoptionMs;
  let isAbsent = false;
  while (secret !== '' && isHere() && performance.now() < deadline) {
    const lines = await prove(filesOf(folder).control, secret, adoptSeconds);
    // This sandbox has ended, and its supervisor still runs only for other sandboxes.
    if (lines === 'absent') {
      isAbsent = true;
      break;
    }
    if (lines !== undefined) {
      const { process, traces, workspace } = record;
      const id = record.supervisor ?? traces.id;
      const sandbox = superviseSandbox({ id, folder, process, lines, traces, log }, workspace);
      return { folder, record, lives: true, sandbox };
    }
    await sleep(20);
  }
  const end = readEnd(folder);
  if (end !== undefined) return { folder, record, lives: false, sandbox: endedSandbox(record, end) };
  log.warn({ sandbox: record.traces.id, ...record.execution }, `${whyNot()}; the sandbox is not adopted`);
  return undefined;

  function whyNot(): string {
    if (isAbsent) return 'the supervisor of a sandbox has removed it, because its agent had not started';
    return isHere()
      ? 'a process does not prove that it supervises a sandbox'
      : 'the supervisor of a sandbox has died with its worker';
  }
}

/**
 * Connects to the supervisor of a sandbox. Returns the connection after both sides have proved that they know the secret. Returns
 * `absent` if the supervisor does not listen on the socket of this sandbox.
 */
function prove(
  control: string,
  secret: string,
  adoptSeconds: number,
): Promise<Supervisor['lines'] | 'absent' | undefined> {
  return new Promise((resolve) => {
    const socket = connect(control);
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ENOENT') resolve('absent');
    });
    const late = setTimeout(() => socket.destroy(), answerMs);
    const nonce = randomBytes(16).toString('hex');
    const lines = openLines<WorkerProof, Challenge | SupervisorProof>(socket, {
      message(given) {
        if (!('proof' in given))
          return lines.send({ proof: proofOf(secret, 'worker', given.nonce), nonce, adoptSeconds });
        if (!isProof(given.proof, proofOf(secret, 'supervisor', nonce))) return lines.destroy();
        clearTimeout(late);
        lines.hold();
        resolve(lines as unknown as Supervisor['lines']);
      },
      closed() {
        clearTimeout(late);
        resolve(undefined);
      },
    });
  });
}

/** Returns the sandbox of a recorded end, so that the worker can report this end. */
function endedSandbox({ traces, workspace }: SupervisorRecord, { exit, denied }: RecordedEnd): LeftSandbox['sandbox'] {
  return {
    id: traces.id,
    workspace,
    ended: Promise.resolve(exit),
    onDenied(report) {
      for (const each of denied) report(each);
    },
    spawn: () => Promise.reject(new Error('the sandbox has ended')),
    kill: () => {},
    dispose: async () => {},
    letGo: () => {},
  };
}
