import { fs } from '../builtin-modules.ts';
// A waiting agent has loaded all modules of a run.
import '../run.ts';
import { readDescriptor } from '../run-token.ts';
import { connectToService } from '../service/connection.ts';

/** The start of a run, in the form in which the worker sends it to a waiting agent. */
export interface GivenRun {
  /** Arguments of the agent program. */
  readonly args: readonly string[];
  /** Variables that the agent of this run has besides those that it was started with. */
  readonly env: Readonly<Record<string, string>>;
  readonly runToken: string;
}

/** Longest wait for the relay. A run that comes without its answer only starts later. */
const relayMs = 10_000;

/**
 * Prepares everything that a run needs, reports that on the descriptor of the run token, and waits there for a run. The process does
 * nothing else while it waits. Returns undefined if the other side closes the descriptor without a run, because the worker is gone.
 */
export async function waitForRun(env: NodeJS.ProcessEnv, serverRoot: string): Promise<GivenRun | undefined> {
  const failed = (error: Error) => void process.stderr.write(`agent: the relay does not answer: ${error.message}\n`);
  await askRelay(env.RUNYARD_RELAY_SOCKET, serverRoot).catch(failed);
  fs.writeSync(Number(env.RUNYARD_RUN_TOKEN_FD), '\n');
  const text = readDescriptor(env);
  return text === '' ? undefined : (JSON.parse(text) as GivenRun);
}

/**
 * Sends a request that the relay answers itself, without the service and without a token, so that the code of requests is compiled. To play
 * a whole run would take more processor time than the run saves (`docs/decisions/warm-sandboxes.md`).
 */
async function askRelay(relaySocket: string | undefined, serverRoot: string): Promise<void> {
  if (!relaySocket) return;
  const connection = connectToService({ serverRoot, relaySocket, token: '' });
  const request = { method: 'GET', path: '/sandbox/memory', idleTimeoutMs: relayMs, lane: 'reports' } as const;
  await connection.call(request, () => 1024);
  connection.close();
}
