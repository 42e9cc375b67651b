/**
 * The baseline of `attacks.ts`: a server with only node:http and a pool of 16 connections. Answers `/healthz` with a constant, and every
 * other request with the newest 20 rows of the table `runs`, which it reads with one statement. The program prints the server's port.
 */
import http from 'node:http';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env.BENCH_DATABASE_URL ?? '', max: 16 });
const newest = { name: 'newest', text: 'SELECT * FROM runs ORDER BY created_at DESC, id DESC LIMIT 20' };

const server = http.createServer(async (request, response) => {
  const body = request.url === '/healthz' ? '{"status":"ok"}' : JSON.stringify((await pool.query(newest)).rows);
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }).end(body);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.stdout.write(`${address.port}\n`);
});
process.stdin.resume().once('end', () => process.exit(0));
