/**
 * Decides to which addresses a connection may go if a user chose the host: for example the host of a webhook delivery or of an MCP
 * server, or a host that a sandbox contacts. Without these rules, such a connection could reach the internal network.
 */
import { BlockList, isIP, isIPv6 } from 'node:net';

/**
 * `public`: an address of the internet. `allowed`: an address that is not public, but that the operator allows. `refused`: any other
 * address.
 */
export type AddressKind = 'public' | 'allowed' | 'refused';

/** IPv4 networks that are not public: the networks of the IANA IPv4 Special-Purpose Address Registry (RFC 6890), and multicast. */
const specialIpv4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // At this public address, virtual machines in Azure reach services of their host (learn.microsoft.com, “What is IP address
  // 168.63.129.16?”).
  '168.63.129.16/32',
  // Link-local, with the metadata services of the clouds.
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/**
 * The IPv6 addresses that IANA assigns for the internet (RFC 4291, 2.4). Addresses outside of this range, such as ::1 and ::ffff:…, are not
 * public.
 */
const globalIpv6 = ['2000::/3'];

/**
 * Networks in 2000::/3 that are not public: the networks of the IANA IPv6 Special-Purpose Address Registry. The networks of 6to4 and Teredo
 * are in this list, because their addresses contain IPv4 addresses.
 */
const specialIpv6 = ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'];

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return list;
}

const special = blockList([...specialIpv4, ...specialIpv6]);
const global = blockList(globalIpv6);

const loopback = blockList(['127.0.0.0/8', '::1/128']);

/** Returns the host of a URL without the brackets of an IPv6 address. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1');

/**
 * Returns whether the host of a URL always means this machine. A name such as `127.0.0.1.example.com` does not: its owner chooses the
 * address.
 */
export function isLoopback(url: URL): boolean {
  const host = hostOf(url);
  const version = isIP(host);
  return version === 0 ? host === 'localhost' : loopback.check(host, version === 6 ? 'ipv6' : 'ipv4');
}

/** Returns the kind of an address. Returns `refused` for text that is not a plain IP address. */
export type AddressRules = (address: string) => AddressKind;

/**
 * Makes rules that return `allowed` for addresses in the given networks (CIDR). `isOwn`: returns true for further addresses that do not
 * count as public.
 */
export function makeAddressRules(
  allowedNetworks: readonly string[],
  isOwn: (address: string) => boolean = () => false,
): AddressRules {
  const allowed = blockList(allowedNetworks);
  return (address) => {
    const version = isIP(address);
    // Refuses an address with a zone, such as fe80::1%eth0, because only link-local addresses have zones.
    if (version === 0 || address.includes('%')) return 'refused';
    const family = version === 6 ? 'ipv6' : 'ipv4';
    // An IPv4-mapped address is never public, because it is only a second spelling of an IPv4 address.
    const isPublic =
      !special.check(address, family) && (family === 'ipv4' || global.check(address, family)) && !isOwn(address);
    if (isPublic) return 'public';
    return allowed.check(address, family) ? 'allowed' : 'refused';
  };
}
