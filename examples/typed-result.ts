/**
 * Starts a run that must return a value, waits for it, and uses the value. Needs Node and no packages.
 *
 *     RUNYARD_BASE_URL=http://127.0.0.1:4180 RUNYARD_API_KEY=KEY node examples/typed-result.ts PROMPT_FILE
 *
 * The service checks the value with the schema, so the program need not check it again. Exits with 1 if the run returns no value. It runs
 * on Node 24 and newer.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

/** The value that the run returns. `schema` describes the same members. */
interface Triage {
  readonly errors: number;
  readonly severity: 'low' | 'high';
}
const schema = {
  type: 'object',
  properties: { errors: { type: 'integer' }, severity: { enum: ['low', 'high'] } },
  required: ['errors', 'severity'],
  additionalProperties: false,
};

interface Run {
  readonly run_id: string;
  readonly state: string;
  readonly finished_at: string | null;
  readonly final_message: string | null;
  readonly status_message?: { readonly message: string };
  readonly result?: Triage;
}

const { RUNYARD_BASE_URL: url = 'http://127.0.0.1:4180', RUNYARD_API_KEY: key = '' } = process.env;

async function send<T>(method: 'GET' | 'POST', resource: string, body?: object): Promise<T> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'idempotency-key': randomUUID(),
  };
  const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const answer = await fetch(`${url}/api/v1${resource}`, init);
  if (!answer.ok) throw new Error(`${method} ${resource}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

const prompt = await readFile(process.argv[2] ?? 'examples/hello.md', 'utf8');
const { run_id: runId } = await send<Run>('POST', '/agent/runs', { prompt, config: { output_schema: schema } });
let run = await send<Run>('GET', `/agent/runs/${runId}`);
while (run.finished_at === null && run.state !== 'BLOCKED') {
  await pause(500);
  run = await send<Run>('GET', `/agent/runs/${runId}`);
}
if (run.result === undefined) {
  console.error(`${run.state}: ${run.status_message?.message ?? run.final_message ?? 'no result'}`);
  process.exit(1);
}
const { errors, severity } = run.result;
console.log(severity === 'high' ? `page somebody: ${errors} errors` : `${errors} errors, nothing urgent`);
