/** Checks the addresses of a host that a person chose, before the service connects to it. */
import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { type AddressRules, hostOf } from '@runyard/system/address-rules';
import type { NameResolver } from '@runyard/system/names/resolver';
import { proxyOf } from '@runyard/system/outgoing/outgoing';

/** Finds all addresses of a host name. */
export type Resolve = NameResolver['resolve'];

export interface AddressCheck {
  readonly rules: AddressRules;
  readonly resolve: Resolve;
}

/** Is thrown for an address to which the service must not connect. The message reveals nothing about the network of the service. */
export class RefusedAddress extends Error {
  readonly code = 'ERR_ADDRESS_REFUSED';
}

/** Longest time of a look-up whose result is not needed for the connection, because the proxy looks up the name. */
const optionalLookUpMs = 1_000;

/**
 * Returns the addresses to connect to. If one address of the name is refused, all addresses of the name are refused. If the connection goes
 * through a proxy, the proxy looks up the name itself, so this machine need not know an address: the result may be empty.
 */
export async function findAddresses(
  url: URL,
  { rules, resolve }: AddressCheck,
  signal: AbortSignal,
): Promise<readonly LookupAddress[]> {
  const host = hostOf(url);
  const family = isIP(host);
  const isProxied = proxyOf(url) !== undefined;
  const addresses = family
    ? [{ address: host, family }]
    : isProxied
      ? await resolve(host, AbortSignal.any([signal, AbortSignal.timeout(optionalLookUpMs)])).catch(() => [])
      : await resolve(host, signal);
  signal.throwIfAborted();
  const kinds = addresses.map(({ address }) => rules(address));
  if (kinds.length === 0 && !isProxied) throw new RefusedAddress('the host name has no address');
  if (kinds.includes('refused'))
    throw new RefusedAddress(
      'the URL resolves to an address that is neither public nor in RUNYARD_ALLOW_PRIVATE_NETWORKS',
    );
  if (url.protocol !== 'https:' && (kinds.includes('public') || kinds.length === 0))
    throw new RefusedAddress('https is needed for a public address');
  return addresses;
}

/** Gives the checked addresses to the sockets, because another DNS look-up could return other addresses. */
export function lookupOf(addresses: readonly LookupAddress[]): LookupFunction {
  return (_host, { all }, callback) => {
    const [first] = addresses;
    if (all) callback(null, [...addresses]);
    else callback(null, first?.address ?? '', first?.family);
  };
}
