import type { Socket } from 'node:net';
import type { DeniedReason } from '@runyard/contract/egress/denied-reasons';
import { type Host, readHost } from '@runyard/contract/egress/host-name';
import { type HelloReading, readClientHello } from './client-hello.ts';

/**
 * The fatal TLS alert `access_denied` (RFC 8446 section 6). It is sent so that a TLS client reports a denied access and not a broken
 * network.
 */
const accessDenied = Buffer.from([21, 3, 3, 0, 2, 2, 49]);

export interface TunnelOptions {
  readonly target: Host;
  /** True: only TLS may pass. False: other protocols may pass too, but if the client begins with TLS, its host name is checked. */
  readonly needsTls: boolean;
  /** Milliseconds that the client has to send the first message of TLS. */
  readonly helloMs: number;
  readonly onDenied: (reason: DeniedReason) => void;
}

/**
 * Passes the bytes of client and server on. If the client sends TLS, the server gets no byte before the ClientHello is complete and
 * names the host of the tunnel. `head`: the bytes that the client has already sent.
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

/** Returns why a tunnel to the host must not begin with this message. Returns undefined if the tunnel is allowed. */
function helloFault(reading: HelloReading, target: Host): DeniedReason | undefined {
  if (reading.kind === 'not_tls') return 'not_tls';
  if (reading.kind !== 'hello') return 'bad_handshake';
  if (reading.hasEch) return 'ech';
  // If the target is an address, clients send no host name (RFC 6066 section 3).
  if (reading.name === undefined) return target.kind === 'name' ? 'sni_missing' : undefined;
  return readHost(reading.name)?.host === target.host ? undefined : 'sni_mismatch';
}
