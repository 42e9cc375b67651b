/**
 * The baseline of `creates.ts`: a server with only node:http and JSON.parse. For a request to `/`, it makes one INSERT. For a request
 * to `/rows`, it writes, in one transaction, a copy of all rows of the run whose id is in `BENCH_RUN_ID`. The program prints the
 * server's port.
 */
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import pg from 'pg';
import { copyRows } from './bare-rows.ts';

const connectionString = process.env.BENCH_DATABASE_URL ?? '';
const pool = new pg.Pool({ connectionString, max: 16 });
await pool.query(
  'CREATE TABLE IF NOT EXISTS bench_creates (id uuid PRIMARY KEY, prompt text NOT NULL, created_at timestamptz NOT NULL DEFAULT now())',
);
const sample = process.env.BENCH_RUN_ID ?? '';
const writeRows = await copyRows(connectionString, sample);
const { rows } = await pool.query<{ prompt: string }>('SELECT prompt FROM run_requests WHERE run_id = $1', [sample]);
const samplePrompt = rows[0]?.prompt ?? '';

async function insert(prompt: string): Promise<string> {
  const id = randomUUID();
  await pool.query({
    name: 'insert',
    text: 'INSERT INTO bench_creates (id, prompt) VALUES ($1, $2)',
    values: [id, prompt],
  });
  return id;
}

const server = http.createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = JSON.parse(Buffer.concat(chunks).toString()) as { prompt: string };
  const id = await (request.url === '/rows' ? writeRows(pool, { [samplePrompt]: body.prompt }) : insert(body.prompt));
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ run_id: id }));
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.stdout.write(`${address.port}\n`);
});
process.stdin.resume().once('end', () => process.exit(0));
