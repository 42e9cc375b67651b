import { connect as connectSocket, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { DeniedReason } from '@runyard/contract/egress/denied-reasons';
import type { Host } from '@runyard/contract/egress/host-name';
import type { AddressRules } from '@runyard/system/address-rules';
import type { NameResolver } from '@runyard/system/names/resolver';
import { proxyOf } from '@runyard/system/outgoing/outgoing';
import { connectToProxy, openTunnel, TunnelRefused } from '@runyard/system/outgoing/tunnel';

export interface Dialling {
  readonly resolve: NameResolver['resolve'];
  readonly addresses: AddressRules;
  /** Default: `connect` of `node:net`. */
  readonly connect?: (options: TcpNetConnectOpts) => Socket;
}

export type DialOutcome =
  /** `proxy`: the socket leads to this proxy of the operator's network, which wants requests with an absolute URL. */
  | { readonly kind: 'connected'; readonly socket: Socket; readonly proxy?: URL }
  | { readonly kind: 'denied'; readonly reason: DeniedReason }
  /** The host is allowed but cannot be reached. */
  | { readonly kind: 'failed'; readonly message: string };

/** Maximum number of addresses of a name that `dial` tries, one after another. Each attempt has the time limit `connectTimeoutMs`. */
const maxTries = 4;
const connectTimeoutMs = 5_000;
/** Longest time of a look-up whose result is not needed for the connection, because the operator's proxy looks up the name. */
const optionalLookUpMs = 1_000;

/**
 * Resolves a host name and connects to one of the addresses. If the rules deny one address of the name, the whole connection is
 * denied. The name is not looked up again after the check, because a second look-up could return another address (DNS rebinding). If the
 * operator's network has a proxy (HTTPS_PROXY, HTTP_PROXY), connects through it; then the proxy looks up the name, and this machine need not
 * know it. `form`: a tunnel, or one plain HTTP request.
 */
export async function dial(
  target: Host,
  port: number,
  form: 'tunnel' | 'request',
  { resolve, addresses, connect = connectSocket }: Dialling,
  signal: AbortSignal,
): Promise<DialOutcome> {
  const authority = `${target.host.includes(':') ? `[${target.host}]` : target.host}:${port}`;
  const proxy = proxyOf(new URL(`${form === 'tunnel' ? 'https' : 'http'}://${authority}`));
  let found: readonly string[];
  try {
    // The final dot prevents a look-up of the name with the search domains of the machine.
    found =
      target.kind === 'address'
        ? [target.host]
        : (await resolve(`${target.host}.`, proxy ? optional(signal) : signal)).map((each) => each.address);
  } catch (error) {
    if (proxy !== undefined && !signal.aborted) return await dialThrough(proxy, authority, form, signal);
    const isUnknown = (error as NodeJS.ErrnoException).code === 'ENOTFOUND';
    return { kind: 'failed', message: `${target.host} ${isUnknown ? 'does not exist' : 'could not be looked up'}` };
  }
  if (found.some((address) => addresses(address) === 'refused')) return { kind: 'denied', reason: 'private_address' };
  if (proxy !== undefined) return await dialThrough(proxy, authority, form, signal);
  for (const address of found.slice(0, maxTries)) {
    if (signal.aborted) break;
    const socket = await connected(connect({ host: address, port, allowHalfOpen: true, noDelay: true }), signal);
    if (socket !== undefined) return { kind: 'connected', socket };
  }
  return { kind: 'failed', message: `${target.host} does not take connections on port ${port}` };
}

const optional = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal, AbortSignal.timeout(optionalLookUpMs)]);

async function dialThrough(
  proxy: URL,
  authority: string,
  form: 'tunnel' | 'request',
  signal: AbortSignal,
): Promise<DialOutcome> {
  try {
    if (form === 'tunnel') return { kind: 'connected', socket: await openTunnel(proxy, authority, signal) };
    return { kind: 'connected', socket: await connectToProxy(proxy, signal), proxy };
  } catch (error) {
    const reason = error instanceof TunnelRefused ? `answers ${error.status}` : 'does not answer';
    return { kind: 'failed', message: `the proxy of the worker's network ${reason} for ${authority}` };
  }
}

/** Returns the socket when it is connected; undefined if the connection fails or takes too long. */
function connected(socket: Socket, signal: AbortSignal): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const giveUp = (): void => void socket.destroy();
    const timer = setTimeout(giveUp, connectTimeoutMs);
    signal.addEventListener('abort', giveUp, { once: true });
    const settle = (result: Socket | undefined): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      resolve(result);
    };
    socket.once('connect', () => settle(socket));
    socket.once('close', () => settle(undefined));
    // Errors need no handling, because each user of the socket waits for the event `close`, which follows every error.
    socket.on('error', () => {});
  });
}
