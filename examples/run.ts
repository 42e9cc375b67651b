/**
 * Starts a run, shows its text while it works, answers its questions, and downloads its artifacts. Needs Node and no packages.
 *
 *     RUNYARD_BASE_URL=http://127.0.0.1:4180 RUNYARD_API_KEY=KEY node examples/run.ts PROMPT_FILE FOLDER
 *
 * Starts a failed run again, once. Exits with 0 if the run SUCCEEDED. `bin/runyard run` does the same in a terminal. It runs on Node 24 and
 * newer.
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as pause } from 'node:timers/promises';

interface Run {
  readonly run_id: string;
  readonly state: string;
  readonly status_message?: { readonly message: string };
  readonly blocked_on?: { readonly request_id: string; readonly title: string };
  readonly artifacts?: readonly { readonly data: { readonly artifact_uid?: string; readonly filename?: string } }[];
}

const { RUNYARD_BASE_URL: url = 'http://127.0.0.1:4180', RUNYARD_API_KEY: key = '' } = process.env;
const [promptFile, folder] = process.argv.slice(2);
if (promptFile === undefined || folder === undefined) {
  console.error('Usage: node examples/run.ts PROMPT_FILE FOLDER');
  process.exit(2);
}

const tries = 5;

/**
 * Sends a request. Repeats it if there was no answer, or if the answer is a problem that the service calls retryable. The idempotency key
 * is the same in each repetition, so that a repetition has no second effect.
 */
async function send(method: 'GET' | 'POST', resource: string, body?: object): Promise<Response> {
  const headers: Record<string, string> = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  if (method === 'POST') headers['idempotency-key'] = randomUUID();
  for (let attempt = 1; ; attempt += 1) {
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const answer = await fetch(`${url}/api/v1${resource}`, init).catch((error: Error) => error);
    if (answer instanceof Response && answer.ok) return answer;
    const problem =
      answer instanceof Response ? await answer.json().catch(() => ({ retryable: answer.status >= 500 })) : {};
    const isRetryable = answer instanceof Error || problem.retryable === true;
    if (!isRetryable || attempt === tries)
      throw new Error(
        `${method} ${resource}: ${answer instanceof Error ? answer.message : (problem.detail ?? answer.status)}`,
      );
    const seconds = answer instanceof Response ? Number(answer.headers.get('retry-after') ?? 0) : 0;
    await pause(Math.max(seconds * 1000, 250 * 2 ** attempt));
  }
}

const read = async (runId: string): Promise<Run> => (await send('GET', `/agent/runs/${runId}`)).json();

/** Yields the events of a run until the run has ended. Continues after the last event if the connection breaks. */
async function* eventsOf(runId: string): AsyncGenerator<{ readonly type: string; readonly [member: string]: unknown }> {
  let last = '';
  for (let failures = 0; failures < tries; ) {
    try {
      const headers = { authorization: `Bearer ${key}`, ...(last === '' ? {} : { 'last-event-id': last }) };
      const answer = await fetch(`${url}/api/v1/agent/runs/${runId}/events`, { headers });
      if (!answer.ok || answer.body === null) throw new Error(`the stream answered ${answer.status}`);
      let rest = '';
      for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
        const events = (rest + text).split('\n\n');
        rest = events.pop() ?? '';
        for (const event of events) {
          const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(event)?.[1];
          last = field('id') ?? last;
          const data = field('data');
          if (data !== undefined) yield JSON.parse(data);
        }
        failures = 0;
      }
      // The service ends the stream when the run has ended.
      return;
    } catch (error) {
      failures += 1;
      if (failures === tries) throw error;
      await pause(250 * 2 ** failures);
    }
  }
}

const terminal = createInterface({ input: process.stdin });
const lines = terminal[Symbol.asyncIterator]();

/** Asks the person at the terminal the question of the run. `y` approves an action; any other text is the answer. */
async function answer(runId: string): Promise<void> {
  const { blocked_on: question } = await read(runId);
  if (question === undefined) return;
  console.log(`? ${question.title}`);
  const { value = 'n' } = await lines.next();
  const words = String(value).trim();
  const decision = words === 'y' ? { decision: 'approve' } : words === 'n' ? { decision: 'deny' } : { message: words };
  await send('POST', `/agent/runs/${runId}/followups`, { ...decision, request_id: question.request_id });
}

/** Shows a run until it has ended. Returns the run. */
async function follow(runId: string): Promise<Run> {
  for await (const { type, state, event } of eventsOf(runId)) {
    if (type === 'state') console.log(`[${state}]`);
    if (type === 'state' && state === 'BLOCKED') await answer(runId);
    const { type: kind, role, text } = (event ?? {}) as { type?: string; role?: string; text?: string };
    if (type === 'conversation' && kind === 'text' && role === 'assistant') process.stdout.write(`${text}\n`);
  }
  return await read(runId);
}

async function download(run: Run, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const { data } of run.artifacts ?? []) {
    if (data.artifact_uid === undefined || data.filename === undefined) continue;
    // The name is untrusted: an agent chose it.
    const file = path.join(to, path.basename(data.filename));
    const { body } = await send('GET', `/agent/artifacts/${data.artifact_uid}/download`);
    if (body !== null) await pipeline(Readable.fromWeb(body as never), createWriteStream(file));
    console.log(`saved ${file}`);
  }
}

const prompt = await readFile(promptFile, 'utf8');
const created: Run = await (await send('POST', '/agent/runs', { prompt, config: { approval_policy: 'ask' } })).json();
let run = await follow(created.run_id);
if (run.state === 'FAILED' || run.state === 'ERROR') {
  console.log(`${run.status_message?.message ?? run.state} Starting it again.`);
  const again: Run = await (await send('POST', `/agent/runs/${run.run_id}/rerun`, {})).json();
  run = await follow(again.run_id);
}
await download(run, folder);
const newest: { runs: Run[] } = await (await send('GET', '/agent/runs?limit=5')).json();
console.log(`newest runs: ${newest.runs.map(({ state }) => state).join(', ')}`);
terminal.close();
process.exitCode = run.state === 'SUCCEEDED' ? 0 : 1;
