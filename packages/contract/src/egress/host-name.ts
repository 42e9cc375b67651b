import { isIPv4, isIPv6 } from 'node:net';

/** A host in the normalised spelling. Comparisons of hosts use this spelling. */
export interface Host {
  readonly kind: 'name' | 'address';
  /** Lower case, without a trailing dot or brackets. IPv6 in the form of RFC 5952. */
  readonly host: string;
}

const label = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * Returns the host that a client names; undefined if the text is not a host. Refuses a name whose last label is a number, such as
 * `2130706433`, `0x7f.1` or `0177.0.0.1`, because a name server takes such a text for a name, but `inet_aton` takes it for an address.
 */
export function readHost(text: string): Host | undefined {
  if (text.length > 300) return undefined;
  if (text.startsWith('[') && text.endsWith(']')) return addressOf(text.slice(1, -1), isIPv6);
  if (isIPv4(text)) return { kind: 'address', host: text };
  const name = text.toLowerCase().replace(/\.$/, '');
  const labels = name.split('.');
  const last = labels.at(-1) ?? '';
  if (name.length > 253 || !labels.every((each) => label.test(each)) || /^(?:\d+|0x[0-9a-f]*)$/.test(last))
    return undefined;
  return { kind: 'name', host: name };
}

/** Refuses zones (`fe80::1%eth0`), because only link-local addresses have zones. */
function addressOf(text: string, isAddress: (text: string) => boolean): Host | undefined {
  if (!isAddress(text) || text.includes('%')) return undefined;
  return { kind: 'address', host: new URL(`http://[${text}]/`).hostname.slice(1, -1) };
}

/** Returns the host and port of an authority such as `example.com:443`. The port is required if `defaultPort` is undefined. */
export function readAuthority(text: string, defaultPort?: number): (Host & { readonly port: number }) | undefined {
  const [, hostText = '', portText] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = readHost(hostText);
  const port = portText === undefined ? defaultPort : Number(portText);
  if (host === undefined || port === undefined || port < 1 || port > 65_535) return undefined;
  return { ...host, port };
}
