/** The address to which passkeys belong. */
import { isIP } from 'node:net';
import { isLoopback } from '@runyard/system/address-rules';

/** Where passkeys work. An authenticator offers a passkey only to pages of the host `rpId` (Web Authentication, 5.1.2). */
export interface PasskeyPlace {
  readonly rpId: string;
  readonly origin: string;
}

/** Returns the place of a service with this base URL, or the reason why passkeys do not work there. */
export function passkeyPlaceOf(baseUrl: string): PasskeyPlace | string {
  const url = new URL(baseUrl);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(host) !== 0) {
    // Without RUNYARD_BASE_URL, the base URL has the loopback address, and a browser on this machine also reaches the service as localhost.
    if (isLoopback(url)) return { rpId: 'localhost', origin: originAt(url, 'localhost') };
    return `Passkeys need a host name, and ${url.origin} has an IP address: set RUNYARD_BASE_URL to an https URL with a host name.`;
  }
  const isOfThisMachine = host === 'localhost' || host.endsWith('.localhost');
  if (url.protocol !== 'https:' && !isOfThisMachine)
    return `Passkeys need TLS, but ${url.origin} does not use it: set RUNYARD_BASE_URL to an https URL.`;
  return { rpId: host, origin: url.origin };
}

function originAt(url: URL, hostname: string): string {
  const moved = new URL(url);
  moved.hostname = hostname;
  return moved.origin;
}
