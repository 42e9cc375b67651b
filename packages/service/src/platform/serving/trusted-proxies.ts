/**
 * Reads the client of a request from the headers of declared proxies (RUNYARD_TRUSTED_PROXIES). Any client can send these headers, so they
 * are read only if the connection comes from a declared proxy.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** The client of a request, and the scheme and host to which the client sent the request. */
export interface Client {
  /** IP address. */
  readonly address: string;
  readonly scheme: 'http' | 'https';
  /** Host name, with the port if the client sent a port; absent: the request has no host name. */
  readonly host?: string;
  /** Address of the peer, if the request has `X-Forwarded-For` although the peer is not a declared proxy. Absent in all other cases. */
  readonly undeclaredProxy?: string;
}

type Request = Pick<IncomingMessage, 'headers' | 'socket'>;

export interface TrustedProxies {
  clientOf(request: Request): Client;
}

/** Removes the prefix `::ffff:`, with which an IPv6 socket shows an IPv4 address (RFC 4291, 2.5.5.2), and the zone of a link-local address. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');

/** Returns the address in an entry of `X-Forwarded-For`, without the port that some proxies add. Returns undefined if the entry has no address. */
function addressIn(entry: string): string | undefined {
  const address = plain(entry.replace(/^\[(.*)\](?::\d+)?$/, '$1').replace(/^([\d.]+):\d+$/, '$1'));
  return isIP(address) ? address : undefined;
}

/** Returns the entries of a header, which commas separate. A request may have the header several times. */
const entriesOf = (value: string | readonly string[] | undefined): string[] =>
  [value ?? []]
    .flat()
    .join(',')
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean);

/** Makes the reader of clients. `networks`: the networks of the declared proxies in CIDR notation. */
export function trustProxies(networks: readonly string[]): TrustedProxies {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  const isTrusted = (address: string): boolean =>
    isIP(address) !== 0 && list.check(address, address.includes(':') ? 'ipv6' : 'ipv4');

  return {
    clientOf({ headers, socket }) {
      const peer = plain(socket.remoteAddress ?? '');
      const { host, 'x-forwarded-for': forwardedFor } = headers;
      if (!isTrusted(peer)) {
        return {
          address: peer,
          scheme: 'encrypted' in socket ? 'https' : 'http',
          ...(host === undefined ? {} : { host }),
          ...(forwardedFor === undefined ? {} : { undeclaredProxy: peer }),
        };
      }
      // Each proxy appends the address of its peer. So read the entries from the right, up to and including the first address that is
      // not a declared proxy. This address is the client, and a client can forge all entries to the left of it.
      let address = peer;
      for (const entry of entriesOf(forwardedFor).reverse()) {
        const before = addressIn(entry);
        if (before === undefined) break;
        address = before;
        if (!isTrusted(address)) break;
      }
      const scheme = entriesOf(headers['x-forwarded-proto']).at(-1);
      const forwardedHost = entriesOf(headers['x-forwarded-host']).at(-1) ?? host;
      return {
        address,
        scheme: scheme === 'https' ? 'https' : 'http',
        ...(forwardedHost === undefined ? {} : { host: forwardedHost }),
      };
    },
  };
}
