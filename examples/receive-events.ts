/**
 * Receives the events of a subscription, checks their signatures, prints a line for each.
 *
 *     node examples/receive-events.ts PORT FILE
 *
 * FILE holds the subscription's secret. Needs `npm install standardwebhooks` where it is copied to.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

interface Event {
  readonly type: string;
  readonly data: { readonly run_id?: string; readonly state?: string };
}

const [port = '4190', secretFile = 'webhook-secret'] = process.argv.slice(2);
/** Deliveries may come twice; their id is the same then. */
const seen = new Set<string>();

createServer(async (request, response) => {
  let body = '';
  for await (const piece of request.setEncoding('utf8')) body += piece;
  const headers = request.headers as Record<string, string>;
  try {
    const event = new Webhook(readFileSync(secretFile, 'utf8').trim()).verify(body, headers) as Event;
    const id = headers['webhook-id'] ?? '';
    if (!seen.has(id)) console.log(event.type, event.data.run_id, event.data.state);
    seen.add(id);
    response.writeHead(204).end();
  } catch {
    response.writeHead(401).end();
  }
}).listen(Number(port), '127.0.0.1');
