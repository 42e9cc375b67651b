import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { isSettled } from '@runyard/contract/runs/run-states';
import { formatRuns } from '../run-tree/format-runs.ts';
import type { TreeAnswer, TreeRequest } from '../run-tree/requests.ts';
import { askAgent } from './ask-agent.ts';

const usage = `Usage: child-run start [--title TEXT] [--mode MODE] [--model ID] [--harness TYPE] [--environment UID]
                       [--secret NAME]... PROMPT
       child-run await [--any] [--timeout SECONDS] [--json] [ID...]
       child-run list [--json]
       child-run cancel ID
       child-run message ID TEXT
Starts child runs (agents that work for this run), waits for them, and sends messages to runs of the same tree. The
ID parent means the run that started this run. A child gets only secrets of this run. If PROMPT or TEXT is -, it is
read from standard input. start prints the id of the child. await without an ID waits for all children; it exits with
0 if all of them SUCCEEDED, with 1 if one did not, and with 124 after the timeout (default 3600 s).
`;

const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;
const options = {
  title: text,
  mode: text,
  model: text,
  harness: text,
  environment: text,
  secret: { type: 'string', multiple: true },
  timeout: text,
  any: flag,
  json: flag,
  help: { type: 'boolean', short: 'h' },
} as const;

class BadUsage extends Error {}

/** Runs the command `child-run` of the sandbox. Returns its exit code. */
export async function childRunCommand(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  stdin: AsyncIterable<Buffer>,
): Promise<number> {
  const fail = (message: string, code = 1) => {
    process.stderr.write(`child-run: ${message}\n`);
    return code;
  };
  try {
    const { values, positionals } = parseArgs({ args: [...argv], allowPositionals: true, options });
    if (values.help) {
      process.stdout.write(usage);
      return 0;
    }
    const request = await requestOf(positionals, values, stdin);
    const socket = env.RUNYARD_AGENT_SOCKET;
    if (!socket) return fail('RUNYARD_AGENT_SOCKET is not set: this command works only inside a run');
    const answer = await askAgent<TreeAnswer>(socket, { tree: request });
    if (!answer.ok) return fail(answer.message);
    return printAnswer(request, answer, values.json === true);
  } catch (error) {
    const isUsage =
      error instanceof BadUsage || String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS');
    if (!isUsage) return fail(`the agent did not answer: ${(error as Error).message}`);
    process.stderr.write(usage);
    return fail((error as Error).message, 2);
  }
}

async function requestOf(
  [op, ...rest]: readonly string[],
  values: {
    title?: string;
    mode?: string;
    model?: string;
    harness?: string;
    environment?: string;
    secret?: string[];
    timeout?: string;
    any?: boolean;
  },
  stdin: AsyncIterable<Buffer>,
): Promise<TreeRequest> {
  const [first, second, ...more] = rest;
  switch (op) {
    case 'start': {
      if (first === undefined || second !== undefined) throw new BadUsage('start takes one PROMPT; quote it');
      const { title, mode, model, harness, environment, secret } = values;
      return {
        op,
        prompt: await textOrStdin(first, stdin),
        ...(title === undefined ? {} : { title }),
        // The mode is not checked here, because the service checks it.
        ...(mode === undefined ? {} : { mode: mode as 'normal' }),
        model_id: model,
        harness,
        environment_id: environment,
        secrets: secret,
      };
    }
    case 'await': {
      const seconds = Number(values.timeout ?? 3600);
      if (!(seconds >= 0)) throw new BadUsage('--timeout takes a number of seconds');
      const until = values.any ? 'any' : 'all';
      return { op, until, timeout_seconds: seconds, ...(rest.length === 0 ? {} : { run_ids: rest }) };
    }
    case 'list':
      if (first !== undefined) throw new BadUsage('list takes no ID');
      return { op };
    case 'cancel':
      if (first === undefined || second !== undefined) throw new BadUsage('cancel takes one ID');
      return { op, run_id: first };
    case 'message':
      if (first === undefined || second === undefined || more.length > 0)
        throw new BadUsage('message takes an ID and one TEXT; quote it');
      return { op, run_id: first, message: await textOrStdin(second, stdin) };
    default:
      throw new BadUsage(
        op === undefined
          ? 'name a command: start, await, list, cancel or message'
          : `unknown command ${JSON.stringify(op)}`,
      );
  }
}

async function textOrStdin(argument: string, stdin: AsyncIterable<Buffer>): Promise<string> {
  if (argument !== '-') return argument;
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

const maxPrintedBytes = 64 * 1024;

function printAnswer(request: TreeRequest, answer: Extract<TreeAnswer, { ok: true }>, json: boolean): number {
  if (answer.run_id !== undefined) process.stdout.write(`${answer.run_id}\n`);
  if (answer.delivery !== undefined) process.stdout.write(`${answer.delivery}\n`);
  const { runs } = answer;
  if (runs === undefined) return 0;
  if (json) process.stdout.write(`${JSON.stringify(runs)}\n`);
  else process.stdout.write(`${formatRuns(runs, maxPrintedBytes, randomBytes(6).toString('hex'))}\n`);
  if (request.op !== 'await') return 0;
  if (answer.timed_out) {
    process.stderr.write('child-run: the time is over\n');
    return 124;
  }
  const ended = request.until === 'any' ? runs.filter(({ state }) => isSettled(state)) : runs;
  return ended.every(({ state }) => state === 'SUCCEEDED') ? 0 : 1;
}
