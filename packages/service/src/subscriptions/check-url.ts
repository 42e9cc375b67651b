import { isIP } from 'node:net';
import type { Fault } from '../fault.ts';
import type { AddressRules } from './addresses.ts';

/** Returns the host of a URL without the brackets of an IPv6 address. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1');

/**
 * Checks the URL of a subscription without resolving its host name, which happens at each attempt. Returns the fault or null.
 * Ports below 1024 other than 80 and 443 belong to other protocols, and a POST must not reach their servers.
 */
export function checkUrl(text: string, rules: AddressRules, allowsPrivate: boolean): Fault | null {
  const fault = (message: string): Fault => ({ path: 'url', message });
  const url = URL.parse(text);
  if (!url || !['https:', 'http:'].includes(url.protocol)) return fault('must be an https:// URL');
  if (url.protocol === 'http:' && !allowsPrivate) {
    return fault('must be an https:// URL: http is for the networks of RUNYARD_ALLOW_PRIVATE_NETWORKS only');
  }
  if (url.username || url.password) return fault('must not hold a user or a password');
  if (url.port !== '' && url.port !== '80' && url.port !== '443' && Number(url.port) < 1024) {
    return fault('must have port 80, 443, or one from 1024 on');
  }
  const host = hostOf(url);
  if (isIP(host) !== 0 && rules(host) === 'refused') return fault('must not lead to an address that is not public');
  return null;
}
