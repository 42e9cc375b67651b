/**
 * A receiver of webhooks on loopback: stores the requests that it gets, verifies their signatures with the reference library, and can
 * simulate faults.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

/** A request that the receiver has received. */
export interface FakeReceivedWebhook {
  /** Header webhook-id */
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** Whether the signature is valid for one of the secrets and at most 5 minutes old. */
  readonly verified: boolean;
}

/** How the receiver answers: a status with headers and body, an endless body, another protocol, no answer, or a closed connection. */
export type FakeBehaviour =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | 'endless body'
  | 'switch protocols'
  | 'hang'
  | 'reset';

export interface FakeWebhookReceiver {
  readonly url: string;
  readonly port: number;
  readonly received: readonly FakeReceivedWebhook[];
  /** Number of requests that are not answered yet. */
  readonly waiting: number;
  /** Secrets with which the receiver checks signatures. */
  secrets: string[];
  /** Sets the answer to later requests. The default is 204. */
  behave(behaviour: FakeBehaviour): void;
  /** Answers all waiting requests. */
  release(status: number): void;
  /** Ends waiting requests, and restores the initial behaviour and secrets. */
  reset(): void;
  close(): Promise<void>;
}

const contentOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
};

function isVerified(secrets: readonly string[], body: string, headers: IncomingMessage['headers']): boolean {
  return secrets.some((secret) => {
    try {
      new Webhook(secret).verify(body, headers as Record<string, string>);
      return true;
    } catch {
      return false;
    }
  });
}

/** Starts the receiver on a free port of an address of this machine. */
export async function startFakeWebhookReceiver(address = '127.0.0.1'): Promise<FakeWebhookReceiver> {
  const received: FakeReceivedWebhook[] = [];
  const hanging = new Set<ServerResponse>();
  let behaviour: FakeBehaviour = { status: 204 };
  const server = createServer(async (request, response) => {
    const body = await contentOf(request).catch(() => null);
    if (body === null) return;
    const { headers, method = '', url: path = '' } = request;
    const now = behaviour;
    if (now === 'hang') {
      hanging.add(response);
      response.on('close', () => hanging.delete(response));
    }
    received.push({
      id: String(headers['webhook-id']),
      method,
      path,
      headers,
      body,
      verified: isVerified(receiver.secrets, body, headers),
    });
    if (now === 'hang') return;
    if (now === 'reset') {
      request.socket.resetAndDestroy();
      return;
    }
    if (now === 'switch protocols') {
      request.socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
      return;
    }
    if (now === 'endless body') {
      response.writeHead(200);
      const more = () => {
        while (response.write('x'.repeat(4096)));
      };
      response.on('drain', more);
      more();
      return;
    }
    response.writeHead(now.status, now.headers).end(now.body);
  });
  server.listen(0, address);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const receiver: FakeWebhookReceiver = {
    url: `http://${address}:${port}/hook`,
    port,
    received,
    get waiting() {
      return hanging.size;
    },
    secrets: [],
    behave: (next) => {
      behaviour = next;
    },
    release: (status) => {
      for (const response of hanging) response.writeHead(status).end();
    },
    reset: () => {
      for (const response of hanging) response.destroy();
      behaviour = { status: 204 };
      received.length = 0;
      receiver.secrets = [];
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return receiver;
}
