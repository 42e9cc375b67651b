/**
 * The baseline of `ingress.ts`: a server with only node:http and the HMAC of the body. For a request to `/`, it makes one INSERT. For
 * a request to `/rows`, it writes, in one transaction, a copy of all rows of the run `BENCH_RUN_ID` and of the delivery that started
 * this run. The program prints the server's port.
 */
import { createHash, createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import http from 'node:http';
import pg from 'pg';
import { copyRows } from './bare-rows.ts';

const connectionString = process.env.BENCH_DATABASE_URL ?? '';
const pool = new pg.Pool({ connectionString, max: 16 });
const secret = process.env.BENCH_SECRET ?? '';
await pool.query(
  'CREATE TABLE IF NOT EXISTS bench_deliveries (id uuid PRIMARY KEY, body bytea NOT NULL, received_at timestamptz NOT NULL DEFAULT now())',
);
const sample = process.env.BENCH_RUN_ID ?? '';
const writeRows = await copyRows(connectionString, sample);
const { rows } = await pool.query<Record<'payload' | 'identity' | 'identity_hash', string>>(
  `SELECT payload::text, identity, identity_hash::text FROM webhook_deliveries
   WHERE id = (SELECT delivery_id FROM starts WHERE run_id = $1)`,
  [sample],
);
const delivered = rows[0] ?? { payload: '', identity: '', identity_hash: '' };

async function insert(body: Buffer): Promise<string> {
  const id = randomUUID();
  await pool.query({
    name: 'insert',
    text: 'INSERT INTO bench_deliveries (id, body) VALUES ($1, $2)',
    values: [id, body],
  });
  return id;
}

/**
 * Writes the rows of a delivery that starts a run. The request's body is stored twice: as the payload of the delivery and as a file of
 * the run.
 */
async function start(body: Buffer): Promise<string> {
  const hash = createHash('sha256').update(body).digest();
  const { payload, identity, identity_hash } = delivered;
  return await writeRows(pool, { [payload]: body, [identity]: hash.toString('hex'), [identity_hash]: hash });
}

const server = http.createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const right = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  const signature = String(request.headers['x-hub-signature-256']);
  if (signature.length !== right.length || !timingSafeEqual(Buffer.from(signature), Buffer.from(right))) {
    response.writeHead(401).end();
    return;
  }
  JSON.parse(body.toString());
  const id = await (request.url === '/rows' ? start(body) : insert(body));
  response.writeHead(202, { 'content-type': 'application/json' }).end(JSON.stringify({ delivery_id: id }));
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.stdout.write(`${address.port}\n`);
});
process.stdin.resume().once('end', () => process.exit(0));
