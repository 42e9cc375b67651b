import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import type { SandboxLevel } from '@runyard/contract/workers/worker-protocol';
import { readableAgentProgram } from '../../runtime/agent-program.ts';
import { findProcesses, killProcesses, killUntilGone } from '../../state/processes.ts';
import { baseEnvironment, madeForRun } from '../base-environment.ts';
import { usedInFolders } from '../disk/measure.ts';
import { watchDisk } from '../disk-watch.ts';
import { exitCodeOf } from '../exit-code.ts';
import { makeFolders, removeFolders } from '../folders.ts';
import { logSlow, ownerVariable } from '../markers.ts';
import { keepOutputTail } from '../output-tail.ts';
import {
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxExit,
  type SandboxSpecification,
  type SandboxVerdict,
} from '../sandbox.ts';
import { refuseSystem, refuseUnsupported } from '../specification.ts';

export const noneLevel: SandboxLevel = {
  backend: 'none',
  features: [],
  missing: [
    {
      feature: 'sandbox',
      reason:
        'RUNYARD_SANDBOX=none: agents run unprotected, with all rights, files and the network of the worker’s user',
    },
  ],
};

export interface NoneGround {
  readonly stateRoot: string;
  readonly owner: string;
  /** Folder from `makeRuntime`, with Node, the agent's bundle and `bin`. */
  readonly runtime: string;
  readonly harnessDir?: string | undefined;
  readonly log: { warn(fields: object, message: string): void };
}

/**
 * Creates the backend that runs agents as plain processes of the worker's user, without protection. It is meant for machines that are
 * sandboxes themselves.
 */
export function noneBackend(ground: NoneGround): SandboxBackend {
  return {
    describe: () => noneLevel,
    async create(specification, signal) {
      refuseUnsupported(specification);
      refuseSystem(specification);
      const sandbox = await makeSandbox(ground, specification);
      if (!signal.aborted) return sandbox;
      await sandbox.dispose();
      throw signal.reason;
    },
    close: async () => {},
  };
}

async function makeSandbox(ground: NoneGround, { limits }: SandboxSpecification): Promise<Sandbox> {
  const id = randomBytes(6).toString('hex');
  const folders = await makeFolders(ground.stateRoot, id, {}).catch((error: Error) => {
    throw new SandboxError('prepare', 'sandbox_not_prepared', `the workspace could not be made: ${error.message}`, {
      cause: error,
    });
  });
  const marker = `${ownerVariable(ground.owner)}${id}`;
  const [markerName = '', markerValue = ''] = marker.split('=');
  const strays = (): Promise<number[]> => findProcesses('environ', marker);
  let child: ChildProcess | undefined;
  const { promise: ended, resolve: end } = Promise.withResolvers<SandboxExit>();
  let verdict: SandboxVerdict | undefined;

  const kill: Sandbox['kill'] = (how) => {
    if (child?.pid === undefined) return;
    if (how === 'terminate') {
      child.kill('SIGTERM');
      return;
    }
    killGroup(child.pid);
    void strays().then(killProcesses);
  };

  return {
    id,
    workspace: folders.workspace,
    async spawn(launch) {
      const { runtime } = ground;
      const [program = '', ...flags] = readableAgentProgram(runtime);
      const started = spawn(program, [...flags, ...launch.args], {
        cwd: folders.workspace,
        // Gives the agent a separate session and process group, so that one signal can end the whole group.
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
        env: {
          ...baseEnvironment(runtime, folders.home, ground.harnessDir),
          RUNYARD_RUN_TOKEN_FD: '3',
          ...madeForRun,
          ...launch.env,
          [markerName]: markerValue,
        },
      });
      child = started;
      const pid = started.pid;
      if (pid === undefined) {
        const error = await new Promise<Error>((resolve) => started.once('error', resolve));
        throw new SandboxError('spawn', 'agent_not_started', `the agent could not be started: ${error.message}`, {
          cause: error,
        });
      }
      started.on('error', () => {});
      const [, stdout, stderr, token] = started.stdio as unknown as [null, Readable, Readable, Writable];
      // Ignores write errors, because they occur only if the agent ends before it reads the token. Then the exit code of the agent shows
      // the reason.
      token.on('error', () => {});
      token.end(launch.runToken);
      const tail = keepOutputTail([stdout, stderr]);
      const watch = watchDisk({
        measure: (signal) => usedInFolders([folders.workspace, folders.home], strays, signal),
        limitMb: limits.diskMb,
        onFull(full) {
          verdict = full;
          kill('kill');
        },
      });
      started.once('exit', async (code, signal) => {
        tail.close();
        watch.stop();
        // Ends the remaining processes of the agent: first those in its process group, and then those outside of the group that have the
        // marker variable.
        killGroup(pid);
        await killUntilGone(strays, logSlow(ground.log, { sandbox: id }));
        end({
          exitCode: exitCodeOf(code, signal),
          outOfMemory: false,
          outputTail: tail.text(),
          ...(verdict === undefined ? {} : { verdict }),
        });
      });
    },
    ended,
    kill,
    async dispose() {
      kill('kill');
      if (child?.pid !== undefined) await ended;
      await removeFolders(ground.stateRoot, id).catch((error: Error) => {
        ground.log.warn(
          { sandbox: id, error: error.message },
          'a workspace could not be removed; the next start tries again',
        );
      });
    },
  };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // No process of the group is left.
  }
}
