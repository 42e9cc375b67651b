import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { SubmitAnswer } from '../results/run-result.ts';
import { askAgent } from './ask-agent.ts';

const submitResult = {
  name: 'submit_result',
  title: 'Submit the result',
  description:
    'Submits the result of this run, as `result`. It must match the JSON Schema in your instructions. Call it before you end; the last accepted value of a turn counts.',
  inputSchema: {
    type: 'object',
    properties: { result: { description: 'The value that matches the JSON Schema of the run' } },
    required: ['result'],
  },
} as const;

interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: Readonly<Record<string, unknown>>;
}

const unknownMethod = -32601;

/** Returns the answer to a request of MCP; undefined for a notification, which has no answer. */
async function answer(
  { id, method, params }: Message,
  names: readonly string[],
  socket: string,
): Promise<object | undefined> {
  if (id === undefined) return undefined;
  const result = (value: object) => ({ jsonrpc: '2.0', id, result: value });
  switch (method) {
    case 'initialize': {
      const serverInfo = { name: 'runyard', version: '1' };
      return result({
        protocolVersion: params?.protocolVersion ?? '2025-06-18',
        capabilities: { tools: {} },
        serverInfo,
      });
    }
    case 'ping':
      return result({});
    case 'tools/list':
      return result({
        tools: [
          ...(names.includes(submitResult.name) ? [submitResult] : []),
          ...(await askAgent<object[]>(socket, { describe: names })),
        ],
      });
    case 'tools/call': {
      const { name, arguments: input = {} } = Object(params);
      const request =
        name === submitResult.name ? { result: { value: input.result } } : { github: { tool: name, input } };
      const { ok, message } = await ask(socket, request);
      return result({ content: [{ type: 'text', text: message }], isError: !ok });
    }
    default:
      return { jsonrpc: '2.0', id, error: { code: unknownMethod, message: `unknown method ${String(method)}` } };
  }
}

async function ask(socket: string, request: object): Promise<SubmitAnswer> {
  try {
    return await askAgent<SubmitAnswer>(socket, request);
  } catch (error) {
    return { ok: false, message: `the agent did not answer: ${(error as Error).message}` };
  }
}

/**
 * Runs the command `run-server`: an MCP server on stdio with tools of the run, which passes their input to the agent. The arguments are the
 * names of the tools. Returns 0 when standard input ends.
 */
export async function runServerCommand(
  names: readonly string[],
  env: NodeJS.ProcessEnv,
  input: Readable,
  output: Writable,
): Promise<number> {
  const socket = env.RUNYARD_AGENT_SOCKET ?? '';
  for await (const line of createInterface({ input })) {
    let message: Message;
    try {
      message = JSON.parse(line) as Message;
    } catch {
      continue;
    }
    const answered = await answer(message, names, socket);
    if (answered !== undefined) output.write(`${JSON.stringify(answered)}\n`);
  }
  return 0;
}
