import { parseArgs } from 'node:util';
import { serviceClient } from '../service/client.ts';
import { connectToService } from '../service/connection.ts';
import { Superseded } from '../service/errors.ts';

const usage = `Usage: harness-support [--run-id ID] [--server-root-url URL] [--reason TEXT] report-shutdown
Reports that the agent of a run has exited. The program that started "agent run" calls it, with the same variables: RUNYARD_RUN_TOKEN,
WARP_SERVER_ROOT_URL and TASK_ID.
`;
/** While the service does not answer, the command repeats the report, for at most this time. */
const limitMs = 60_000;

/**
 * Runs the command `harness-support`. A worker that is not Runyard's own, oz-agent-worker, calls the command to report the end of a
 * task (github.com/warpdotdev/oz-agent-worker, README). Returns the exit code: 0 if the service has recorded the end, because of this
 * report or an earlier report.
 */
export async function harnessSupportCommand(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  token: string,
): Promise<number> {
  const fail = (code: number, message: string) => {
    process.stderr.write(`${code === 2 ? usage : ''}harness-support: ${message}\n`);
    return code;
  };
  const text = { type: 'string' } as const;
  const options = { 'run-id': text, 'task-id': text, 'server-root-url': text, reason: text };
  // Ignore unknown flags of newer workers, as `agent run` does.
  const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true, strict: false });
  const optionOr = (name: keyof typeof options, otherwise = '') => String(values[name] ?? otherwise);
  if (positionals[0] !== 'report-shutdown') return fail(2, `unknown command ${positionals[0] ?? ''}`);
  const serverRoot = optionOr('server-root-url', env.WARP_SERVER_ROOT_URL);
  if (!/^https?:$/.test(URL.parse(serverRoot)?.protocol ?? ''))
    return fail(2, 'WARP_SERVER_ROOT_URL must be an http:// or https:// URL');
  if (token === '') return fail(2, 'RUNYARD_RUN_TOKEN is missing');
  const runId = optionOr('run-id', optionOr('task-id', env.TASK_ID));
  if (env.TASK_ID !== undefined && runId !== env.TASK_ID)
    return fail(2, `--run-id is ${runId}, but the variables belong to the run ${env.TASK_ID}`);
  const client = serviceClient({ connection: connectToService({ serverRoot: serverRoot.replace(/\/+$/, ''), token }) });
  const body = { reason: optionOr('reason', 'the agent command has ended'), exited: true };
  try {
    await client.ask('POST', 'report-shutdown', { body, signal: AbortSignal.timeout(limitMs) });
  } catch (error) {
    if (!(error instanceof Superseded)) return fail(1, error instanceof Error ? error.message : String(error));
  }
  return 0;
}
