import { tmpdir } from 'node:os';
import { delay } from '@runyard/system/backoff';
import { fs } from '../builtin-modules.ts';
import { readDescriptor } from '../run-token.ts';
import { rehearse } from './rehearse.ts';

/** The data with which a waiting agent starts a run. The worker sends it as JSON. */
export interface GivenRun {
  /** Arguments of the agent program. */
  readonly args: readonly string[];
  /** Environment variables of this run. They are added to the variables with which the agent started. */
  readonly env: Readonly<Record<string, string>>;
  readonly runToken: string;
}

/** Maximum time of the rehearsal. After this time, the agent accepts a run even if the rehearsal has not ended. */
const rehearsalMs = 10_000;

/**
 * Rehearses a run, writes a line break to the descriptor of the run token to show that the agent is ready, and waits until a run arrives on
 * this descriptor. The process uses no processor time while it waits. Returns undefined if the descriptor is closed without a run, because
 * the worker is gone.
 */
export async function waitForRun(env: NodeJS.ProcessEnv, serverRoot: string): Promise<GivenRun | undefined> {
  const rehearsal = rehearse({
    serverRoot,
    relaySocket: env.RUNYARD_RELAY_SOCKET || undefined,
    workspace: process.cwd(),
    env: { PATH: env.PATH, HOME: env.HOME },
    temporaryFolder: tmpdir(),
  });
  const failed = (error: Error) => void process.stderr.write(`agent: the rehearsal failed: ${error.message}\n`);
  await Promise.race([rehearsal.catch(failed), delay(rehearsalMs)]);
  fs.writeSync(Number(env.RUNYARD_RUN_TOKEN_FD), '\n');
  const text = readDescriptor(env);
  return text === '' ? undefined : (JSON.parse(text) as GivenRun);
}
