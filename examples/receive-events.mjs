/**
 * Receives the events of a subscription, checks their signatures and prints a line for each event.
 *
 *     node examples/receive-events.mjs FILE [PORT]
 *
 * FILE holds the secret of the subscription. Without PORT, the receiver takes a free port. Its first line of output is
 * its address. It runs on Node 20 and newer. A copy in another folder needs `npm install standardwebhooks`.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const [secretFile, port = '0'] = process.argv.slice(2);
if (secretFile === undefined) {
  console.error('Usage: node examples/receive-events.mjs FILE [PORT]');
  process.exit(2);
}

/** Ids of the deliveries that were received. A delivery that arrives a second time has the same id. */
const seen = new Set();

const server = createServer(async (request, response) => {
  try {
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    const secret = readFileSync(secretFile, 'utf8').trim();
    const event = new Webhook(secret).verify(body, request.headers);
    const id = request.headers['webhook-id'];
    if (!seen.has(id)) console.log(event.type, event.data.run_id, event.data.state);
    seen.add(id);
    response.writeHead(204).end();
  } catch (error) {
    console.error(`rejected a delivery: ${error.message}`);
    response.writeHead(401).end();
  }
});
server.listen(Number(port), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}/`);
});
