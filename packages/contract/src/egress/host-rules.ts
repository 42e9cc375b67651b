/** Rules about hosts. This file does not load zod, because every command reads the settings, and one setting contains such rules. */
import { readAuthority, readHost } from './host-name.ts';

/** Hosts and ports that a sandbox may connect to. */
export interface HostRule {
  /** Host in the spelling that `readHost` returns. For a wildcard, only the part after `*.`. */
  readonly host: string;
  /** True: the rule covers all names below `host`, but not `host` itself. */
  readonly isWildcard: boolean;
  readonly ports: readonly number[];
}

/** The ports that a rule without a port covers. */
export const defaultPorts: readonly number[] = [443, 80];

const labelPattern = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
const topPattern = '[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const bytePattern = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
/** A copy of the pattern of zod for IPv6 addresses. A test checks that both patterns are the same. */
export const ipv6Pattern =
  '(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:((:[0-9a-fA-F]{1,4}){1,6})|:((:[0-9a-fA-F]{1,4}){1,7}|:))';
const hostPattern = [
  `(?:${labelPattern}\\.)*${topPattern}`,
  `\\*\\.(?:${labelPattern}\\.)+${topPattern}`,
  `(?:${bytePattern}\\.){3}${bytePattern}`,
  `\\[(?:${ipv6Pattern})\\]`,
].join('|');
const portPattern = '(?:6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})';
/** Pattern of a rule. It has no look-ahead, because programs that generate requests from the OpenAPI document do not support look-ahead. */
export const hostRulePattern = new RegExp(`^(?:${hostPattern})(?::${portPattern})?$`);

/** Parses a rule: `example.com`, `*.example.com`, `203.0.113.7` or `[2001:db8::1]`, each with or without `:port`. */
export function readHostRule(text: string): HostRule | undefined {
  if (!hostRulePattern.test(text)) return undefined;
  const isWildcard = text.startsWith('*.');
  const plain = isWildcard ? text.slice(2) : text;
  const withPort = readAuthority(plain);
  const host = withPort ?? readHost(plain);
  if (host === undefined) return undefined;
  return { host: host.host, isWildcard, ports: withPort === undefined ? defaultPorts : [withPort.port] };
}

const isBelow = (name: string, domain: string): boolean => name.endsWith(`.${domain}`);

/** Returns true if the rule covers the host, given in the spelling of `readHost`, on this port. */
export const covers = (rule: HostRule, host: string, port: number): boolean =>
  rule.ports.includes(port) && (rule.isWildcard ? isBelow(host, rule.host) : host === rule.host);

/** Returns true if an approval rule names the connection. Unlike a rule of an allow-list, an approval rule without a port names all ports. */
export const asksAbout = (rule: HostRule, host: string, port: number): boolean =>
  covers(rule, host, rule.ports === defaultPorts ? 443 : port);

/** Returns the rule for the hosts and ports that both rules cover; undefined if there are none. */
export function intersectRules(one: HostRule, other: HostRule): HostRule | undefined {
  const ports = one.ports.filter((port) => other.ports.includes(port));
  if (ports.length === 0) return undefined;
  const isWithin = (inner: HostRule, outer: HostRule): boolean =>
    outer.isWildcard
      ? isBelow(inner.host, outer.host) || (inner.isWildcard && inner.host === outer.host)
      : !inner.isWildcard && inner.host === outer.host;
  const narrower = isWithin(one, other) ? one : isWithin(other, one) ? other : undefined;
  return narrower && { ...narrower, ports };
}

/** Returns a rule as people write it. */
export function formatRule({ host, isWildcard, ports }: HostRule): string {
  const name = `${isWildcard ? '*.' : ''}${host.includes(':') ? `[${host}]` : host}`;
  const isDefault = ports.length === defaultPorts.length && defaultPorts.every((port) => ports.includes(port));
  return isDefault ? name : ports.map((port) => `${name}:${port}`).join(' ');
}
