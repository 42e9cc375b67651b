/**
 * The type of a setting, and kinds of values that several settings share. This file does not load zod, because every command reads
 * settings.
 */

import { choiceMessage } from '../wire/plain-message.ts';

/** The value of a setting, or the reason why its text is wrong. */
export type Reading<T> = { readonly value: T } | { readonly problem: string };

/** Reads the text of a setting. The text is never empty, and has no white space at its ends. */
export type ReadText<T> = (text: string) => Reading<T>;

export interface Setting<T> {
  readonly read: ReadText<T>;
  /** The default as the text that a user would write. Absent if there is no default. */
  readonly default?: string;
  readonly description: string;
  readonly usedBy: readonly ('service' | 'worker' | 'cli')[];
  /** True: the value is never printed. */
  readonly secret?: true;
}

/** Returns a reader that accepts only text without line breaks and other control characters. */
export const oneLine =
  <T>(read: ReadText<T>): ReadText<T> =>
  (text) =>
    /\p{Cc}/u.test(text) ? { problem: 'must not have a line break or another control character' } : read(text);

/** Any text on one line, such as a name. */
export const text: ReadText<string> = oneLine((value) => ({ value }));

/** Returns a reader that accepts text that matches the pattern. */
export const matching = (pattern: RegExp, problem: string): ReadText<string> =>
  oneLine((value) => (pattern.test(value) ? { value } : { problem }));

/** A secret that requests have in a header: one line of visible ASCII characters (RFC 9110, section 5.5). */
export const headerSecret: ReadText<string> = (value) => {
  if (/^(["']).*\1$/s.test(value)) return { problem: 'must not be in quotation marks' };
  const at = value.search(/[^\x21-\x7e]/);
  if (at < 0) return { value };
  const found = value[at] ?? '';
  const kind = /[\r\n]/.test(found) ? 'a line break' : /\s/.test(found) ? 'white space' : 'another character';
  return { problem: `must be visible ASCII characters on one line; character ${at + 1} is ${kind}` };
};

/** Returns a reader that accepts one of these words. */
export const oneOf =
  <const W extends string>(...words: readonly W[]): ReadText<W> =>
  (text) => {
    const value = words.find((word) => word === text);
    return value === undefined ? { problem: choiceMessage(words, text) } : { value };
  };

/** A URL to which paths are appended, without its trailing slash. It may have a user and a password, which no output shows. */
export const credentialUrl: ReadText<string> = (text) => {
  const url = /^https?:\/\/\S+$/i.test(text) ? URL.parse(text) : null;
  if (url === null) return { problem: 'must be an http:// or https:// URL' };
  if (/[?#]/.test(text)) return { problem: 'must not have a query or a fragment, because paths are appended to it' };
  return { value: text.replace(/\/+$/, '') };
};

/** A URL to which paths are appended, without its trailing slash. */
export const httpUrl: ReadText<string> = (text) => {
  const read = credentialUrl(text);
  const { username, password } = URL.parse(text) ?? {};
  return 'value' in read && (username || password) ? { problem: 'must not have a user or a password' } : read;
};

/** An address to listen on: a host name, or an IP address without brackets. */
export const listenHost: ReadText<string> = (text) => {
  const [address = ''] = text.split('%');
  const isHost = text.includes(':') ? URL.canParse(`http://[${address}]`) : /^[A-Za-z0-9._-]+$/.test(text);
  return isHost ? { value: text } : { problem: 'must be an IP address or a host name, without a port' };
};

/** The URL of a PostgreSQL server. Characters that end a part of a URL must be written as %XX in a user or password. */
export const postgresUrl: ReadText<string> = oneLine((text) => {
  if (!/^postgres(?:ql)?:\/\//.test(text)) return { problem: 'must be a postgres:// URL' };
  const url = URL.parse(text);
  if (url === null || url.hash !== '' || !isEncoded(url.username) || !isEncoded(url.password))
    return {
      problem:
        'is not a URL: write special characters of user and password with % and their code, such as %23 for #, %2F for /, %3F for ?, %40 for @ and %25 for %',
    };
  return { value: text };
});

function isEncoded(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

/** Returns a reader that accepts whole numbers from `min` to `max`, both included. */
export const whole =
  (min: number, max: number): ReadText<number> =>
  (text) => {
    if (!/^\d+$/.test(text)) return { problem: 'must be a whole number without a unit' };
    const value = Number(text);
    return value >= min && value <= max ? { value } : { problem: `must be between ${min} and ${max}` };
  };

/** Returns the items between commas, without blank items. */
export const itemsOf = (text: string): string[] =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean);

/** A list of texts with commas between them. */
export const list: ReadText<string[]> = (text) => ({ value: itemsOf(text) });

/** An absolute path of a file, because the programs of an installation do not share a working directory. */
export const absolutePath = matching(/^\//, 'must be an absolute path');

/** Networks that are not public, comma-separated. */
export const privateNetworks: ReadText<string[]> = (text) => {
  const items = itemsOf(text);
  const wrong = items.filter((item) => !isNetwork(item));
  if (wrong.length === 0) return { value: items };
  return { problem: wrong.map(() => 'must be networks like 10.0.0.0/8 or fd00::/8').join('; ') };
};

const byte = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const ipv4Network = new RegExp(`^(?:${byte}\\.){3}${byte}/(?:[12]?[0-9]|3[0-2])$`);

/** Returns true if the text is a network in CIDR notation (RFC 4632; RFC 4291, 2.3). */
function isNetwork(text: string): boolean {
  if (ipv4Network.test(text)) return true;
  const [, address = '', bits] = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(text) ?? [];
  return (
    address.includes(':') && Number(bits) <= 128 && String(Number(bits)) === bits && URL.canParse(`http://[${address}]`)
  );
}

/** Networks or single addresses, comma-separated. The value contains each network only once, in its shortest notation. */
export const networks: ReadText<string[]> = (text) => {
  const items = itemsOf(text).map((item) => (item.includes('/') ? item : `${item}/${item.includes(':') ? 128 : 32}`));
  return items.every(isNetwork)
    ? { value: [...new Set(items.map(shortest))] }
    : { problem: 'must be networks or addresses, such as 192.0.2.0/24, 198.51.100.7 or 2001:db8::/32' };
};

/** Returns the network with all bits after the prefix set to zero (RFC 4632). An IPv6 address is in the form of RFC 5952. */
function shortest(network: string): string {
  const [address = '', bits = ''] = network.split('/');
  const isIpv6 = address.includes(':');
  const words = isIpv6 ? wordsOf(new URL(`http://[${address}]`).hostname.slice(1, -1)) : address.split('.').map(Number);
  const size = isIpv6 ? 16 : 8;
  const masked = words.map((word, index) => {
    const bitsOfPart = Math.min(Math.max(Number(bits) - index * size, 0), size);
    return word & ~(2 ** (size - bitsOfPart) - 1);
  });
  if (!isIpv6) return `${masked.join('.')}/${bits}`;
  const full = masked.map((word) => word.toString(16)).join(':');
  return `${new URL(`http://[${full}]`).hostname.slice(1, -1)}/${bits}`;
}

/** Returns the eight numbers of an IPv6 address without dots. */
function wordsOf(address: string): number[] {
  const [head = [], tail] = address.split('::').map((part) => part.split(':').filter(Boolean)) as [string[], string[]?];
  const missing = Array.from({ length: 8 - head.length - (tail?.length ?? 0) }, () => '0');
  return [...head, ...(tail ? [...missing, ...tail] : [])].map((word) => Number.parseInt(word, 16));
}
