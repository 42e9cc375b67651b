import { isIP } from 'node:net';
import type { Fault } from '../fault.ts';
import type { AddressRules } from './addresses.ts';

/** Host of a URL without the brackets of an IPv6 address. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1');

/**
 * What is wrong with the URL of a subscription, as far as it can be said without looking its name up: that is done for
 * each attempt. Ports below 1024 but 80 and 443 belong to other protocols, whose servers a POST could be made to talk to.
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
