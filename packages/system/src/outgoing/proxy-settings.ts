/** The proxy through which a program connects to other machines, from the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY. */
import { BlockList, isIP } from 'node:net';
import { hostOf } from '../address-rules.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The variables of the proxy. If both spellings of a variable are set, the one in lower case applies, as in curl and Node. */
export const proxyVariables = [
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'NO_PROXY',
  'https_proxy',
  'http_proxy',
  'no_proxy',
] as const;

export interface ProxySettings {
  /** Returns the proxy through which a connection to the URL goes; undefined: the connection is direct. */
  proxyOf(url: URL): URL | undefined;
  /** The same rules for parts of Node that choose the proxy themselves (fetch, global agents). */
  readonly forNode: { readonly http_proxy?: string; readonly https_proxy: string; readonly no_proxy: string };
}

/**
 * Networks that a proxy on another machine cannot reach on behalf of this machine: loopback, and link-local with the metadata services of
 * the clouds.
 */
const local = new BlockList();
local.addSubnet('127.0.0.0', 8);
local.addSubnet('169.254.0.0', 16);
local.addAddress('::1', 'ipv6');
local.addSubnet('fe80::', 10, 'ipv6');
const localForNode = [
  ...['localhost', '.localhost', '127.0.0.1', '127.0.0.0-127.255.255.255', '::1', '[::1]'],
  ...['169.254.169.254', '169.254.0.0-169.254.255.255'],
];

/**
 * Reads the variables. Undefined: no connection goes through a proxy. Throws an error that names the variable, but not its value, because the
 * value may contain a password.
 */
export function readProxySettings(env: Environment): ProxySettings | undefined {
  const forHttp = readProxy(env, 'http_proxy');
  const forHttps = readProxy(env, 'https_proxy') ?? forHttp;
  const entries = (env.no_proxy || env.NO_PROXY || '').split(/[\s,]+/).filter((entry) => entry !== '');
  if (forHttps === undefined || entries.includes('*')) return undefined;
  const isExcluded = excludedBy(entries);
  return {
    proxyOf: (url) => {
      const host = hostOf(url).replace(/\.$/, '');
      if (isLocal(host) || isExcluded(host, portOf(url))) return undefined;
      return isSecure(url) ? forHttps : forHttp;
    },
    forNode: {
      ...(forHttp ? { http_proxy: forHttp.href } : {}),
      https_proxy: forHttps.href,
      no_proxy: [...localForNode, ...entries.flatMap(entryForNode)].join(','),
    },
  };
}

export const isSecure = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'wss:';

export const portOf = (url: URL): number => Number(url.port || (isSecure(url) ? 443 : 80));

function isLocal(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return host === 'localhost' || host.endsWith('.localhost');
  return local.check(host, version === 6 ? 'ipv6' : 'ipv4');
}

function readProxy(env: Environment, lower: 'http_proxy' | 'https_proxy'): URL | undefined {
  const name = env[lower] ? lower : lower.toUpperCase();
  const text = env[name]?.trim();
  if (!text) return undefined;
  // curl accepts an address without `http://`, so people write it.
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  if (url === null || !['http:', 'https:'].includes(url.protocol) || !isDecodable(url.username + url.password))
    throw new Error(`${name}: must be the address of an HTTP proxy, such as http://proxy.example.com:3128`);
  return url;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

const network = /^([0-9.]+)\/([0-9]{1,2})$/;

/** Matches an entry with a port. An IPv6 address with a port is in brackets. */
const withPort = /^([^:]+|\[[^\]]+\]):(\d{1,5})$/;

/**
 * Returns a function that tests whether an entry of NO_PROXY names a host: a name also names its subdomains, with or without `.` or `*.` before
 * it; an address and a network of IPv4 name addresses. An entry with a port names only this port.
 */
function excludedBy(entries: readonly string[]): (host: string, port: number) => boolean {
  const networks = new BlockList();
  const rules: { readonly host: string; readonly port: number | undefined }[] = [];
  for (const entry of entries) {
    const [, address = '', bits = ''] = network.exec(entry) ?? [];
    if (isIP(address) === 4 && Number(bits) <= 32) networks.addSubnet(address, Number(bits));
    const [, name = entry, port] = withPort.exec(entry) ?? [];
    const host = name
      .toLowerCase()
      .replace(/^\*?\./, '')
      .replace(/^\[(.*)\]$/, '$1');
    rules.push({ host, port: port === undefined ? undefined : Number(port) });
  }
  return (host, port) =>
    (isIP(host) === 4 && networks.check(host)) ||
    rules.some(
      (rule) =>
        (rule.port ?? port) === port && (host === rule.host || (isIP(host) === 0 && host.endsWith(`.${rule.host}`))),
    );
}

/** Node's agents know no networks, and read `example.com` as this one name. */
function entryForNode(entry: string): string[] {
  const [, address = '', bits = ''] = network.exec(entry) ?? [];
  if (isIP(address) === 4 && Number(bits) <= 32) return [rangeOf(address, Number(bits))];
  const name = entry.replace(/^\*?\./, '');
  return isIP(name) !== 0 || withPort.test(name) ? [name] : [name, `.${name}`];
}

function rangeOf(address: string, bits: number): string {
  const size = 2 ** (32 - bits);
  const number = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const first = number - (number % size);
  const text = (value: number): string => [24, 16, 8, 0].map((shift) => (value / 2 ** shift) & 255).join('.');
  return `${text(first)}-${text(first + size - 1)}`;
}
