import { isIP } from 'node:net';
import { type AddressRules, hostOf } from '@runyard/system/address-rules';
import type { Fault } from './fault.ts';

/**
 * Returns the smallest network that an operator must allow so that requests can reach the address. For an IPv4 loopback address this
 * is the whole loopback network, because all its addresses are the same machine. For any other address, the network has only this
 * address.
 */
function networkOf(address: string): string {
  if (isIP(address) === 6) return `${address}/128`;
  return address.startsWith('127.') ? '127.0.0.0/8' : `${address}/32`;
}

/**
 * Checks a URL to which the service sends requests. Does not resolve the host name: the service resolves it, and checks the address,
 * at each attempt to send. Returns the fault or null. Refuses ports below 1024 other than 80 and 443, because these ports belong to
 * servers of other protocols.
 */
export function checkUrl(text: string, rules: AddressRules, allowsPrivate: boolean): Fault | null {
  const fault = (message: string): Fault => ({ path: 'url', message });
  const url = URL.parse(text);
  if (!url || !['https:', 'http:'].includes(url.protocol)) return fault('must be an https:// URL');
  const host = hostOf(url);
  // These names always mean this machine (RFC 6761, 6.3).
  const isLocalhost = host === 'localhost' || host.endsWith('.localhost');
  const refused = (isLocalhost ? ['127.0.0.1', '::1'] : [host]).filter(
    (each) => isIP(each) && rules(each) === 'refused',
  );
  if (refused.length > 0) {
    const needed = refused.map(networkOf).join(',');
    return fault(`${host} is not public: start Runyard with RUNYARD_ALLOW_PRIVATE_NETWORKS=${needed} to allow it`);
  }
  if (url.protocol === 'http:' && !allowsPrivate) {
    return fault('must be an https:// URL: http is only for addresses in RUNYARD_ALLOW_PRIVATE_NETWORKS');
  }
  if (url.username || url.password) return fault('must not hold a user or a password');
  if (url.port !== '' && url.port !== '80' && url.port !== '443' && Number(url.port) < 1024) {
    return fault('must have port 80, 443, or one from 1024 on');
  }
  return null;
}
