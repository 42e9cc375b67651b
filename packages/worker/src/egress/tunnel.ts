import type { Socket } from 'node:net';
import type { DeniedReason } from '@runyard/contract/egress/denied-reasons';
import { type Host, readHost } from '@runyard/contract/egress/host-name';
import { type HelloReading, readClientHello } from './client-hello.ts';

/** Fatal alert `access_denied` (RFC 8446 section 6), so that a TLS client does not report a broken network. */
const accessDenied = Buffer.from([21, 3, 3, 0, 2, 2, 49]);

export interface TunnelOptions {
  readonly target: Host;
  /** True: only TLS may pass. False: other protocols may pass, and TLS is checked if the client begins with it. */
  readonly needsTls: boolean;
  /** Limit for the first message of TLS. */
  readonly helloMs: number;
  readonly onDenied: (reason: DeniedReason) => void;
}

/**
 * Connects both sides. No byte of the client is sent to the server before the ClientHello is complete and names the host of the tunnel.
 * `head`: the bytes that the client has already sent.
 */
export function openTunnel(client: Socket, server: Socket, head: Buffer, options: TunnelOptions): void {
  const { target, needsTls, helloMs, onDenied } = options;
  const chunks: Buffer[] = [];
  let length = 0;
  let needed = 1;
  let timer: NodeJS.Timeout | undefined;
  const awaitHello = (): void => {
    timer ??= setTimeout(() => deny('bad_handshake'), helloMs).unref();
  };

  client.once('close', () => {
    clearTimeout(timer);
    server.destroy();
  });
  server.once('close', () => client.destroySoon());
  server.pipe(client);
  client.on('data', inspect);
  client.once('end', onEarlyEnd);
  if (needsTls) awaitHello();
  if (head.length > 0) inspect(head);

  function inspect(chunk: Buffer): void {
    chunks.push(chunk);
    length += chunk.length;
    if (length < needed) return;
    const bytes = Buffer.concat(chunks);
    const reading = readClientHello(bytes);
    if (reading.kind === 'incomplete') {
      needed = reading.needs;
      awaitHello();
      return;
    }
    const reason = reading.kind === 'not_tls' && !needsTls ? undefined : helloFault(reading, target);
    if (reason !== undefined) {
      deny(reason);
      return;
    }
    stopInspecting();
    server.write(bytes);
    client.pipe(server);
  }

  function onEarlyEnd(): void {
    stopInspecting();
    server.end();
  }

  function stopInspecting(): void {
    clearTimeout(timer);
    client.off('data', inspect);
    client.off('end', onEarlyEnd);
  }

  function deny(reason: DeniedReason): void {
    stopInspecting();
    onDenied(reason);
    server.destroy();
    client.end(accessDenied, () => client.destroy());
  }
}

/** Returns why a tunnel to the host must not begin with these bytes; undefined if it may. */
function helloFault(reading: HelloReading, target: Host): DeniedReason | undefined {
  if (reading.kind === 'not_tls') return 'not_tls';
  if (reading.kind !== 'hello') return 'bad_handshake';
  if (reading.hasEch) return 'ech';
  // Clients send no name for an address (RFC 6066 section 3).
  if (reading.name === undefined) return target.kind === 'name' ? 'sni_missing' : undefined;
  return readHost(reading.name)?.host === target.host ? undefined : 'sni_mismatch';
}
