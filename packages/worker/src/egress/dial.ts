import { connect as connectSocket, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { DeniedReason } from '@runyard/contract/egress/denied-reasons';
import type { Host } from '@runyard/contract/egress/host-name';
import type { AddressRules } from '@runyard/system/address-rules';
import type { NameResolver } from '@runyard/system/names/resolver';

export interface Dialling {
  readonly resolve: NameResolver['resolve'];
  readonly addresses: AddressRules;
  /** Default: `connect` of `node:net`. */
  readonly connect?: (options: TcpNetConnectOpts) => Socket;
}

export type DialOutcome =
  | { readonly kind: 'connected'; readonly socket: Socket }
  | { readonly kind: 'denied'; readonly reason: DeniedReason }
  /** The host is allowed but cannot be reached. */
  | { readonly kind: 'failed'; readonly message: string };

/** Maximum number of addresses of a name that `dial` tries, one after another. Each attempt has the time limit `connectTimeoutMs`. */
const maxTries = 4;
const connectTimeoutMs = 5_000;

/**
 * Resolves a host name and connects to one of the addresses. If the rules deny one address of the name, the whole connection is
 * denied. The name is not looked up again after the check, because a second look-up could return another address (DNS rebinding).
 */
export async function dial(
  target: Host,
  port: number,
  { resolve, addresses, connect = connectSocket }: Dialling,
  signal: AbortSignal,
): Promise<DialOutcome> {
  let found: readonly string[];
  try {
    // The final dot prevents a look-up of the name with the search domains of the machine.
    found =
      target.kind === 'address'
        ? [target.host]
        : (await resolve(`${target.host}.`, signal)).map((each) => each.address);
  } catch (error) {
    const isUnknown = (error as NodeJS.ErrnoException).code === 'ENOTFOUND';
    return { kind: 'failed', message: `${target.host} ${isUnknown ? 'does not exist' : 'could not be looked up'}` };
  }
  if (found.some((address) => addresses(address) === 'refused')) return { kind: 'denied', reason: 'private_address' };
  for (const address of found.slice(0, maxTries)) {
    if (signal.aborted) break;
    const socket = await connected(connect({ host: address, port, allowHalfOpen: true, noDelay: true }), signal);
    if (socket !== undefined) return { kind: 'connected', socket };
  }
  return { kind: 'failed', message: `${target.host} does not take connections on port ${port}` };
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
