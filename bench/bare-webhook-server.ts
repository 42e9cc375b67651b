/** The baseline of `ingress.ts`: only node:http, the HMAC of the body and one INSERT. Prints its port. */
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import http from 'node:http';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env.BENCH_DATABASE_URL ?? '', max: 16 });
const secret = process.env.BENCH_SECRET ?? '';
await pool.query(
  'CREATE TABLE IF NOT EXISTS bench_deliveries (id uuid PRIMARY KEY, body bytea NOT NULL, received_at timestamptz NOT NULL DEFAULT now())',
);

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
  const id = randomUUID();
  await pool.query({
    name: 'insert',
    text: 'INSERT INTO bench_deliveries (id, body) VALUES ($1, $2)',
    values: [id, body],
  });
  response.writeHead(202, { 'content-type': 'application/json' }).end(JSON.stringify({ delivery_id: id }));
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.stdout.write(`${address.port}\n`);
});
process.stdin.resume().once('end', () => process.exit(0));
