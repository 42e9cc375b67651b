/** Reads the parts of the system's name configuration that c-ares does not read itself. */
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';

/** The rules of /etc/resolv.conf for incomplete names (resolv.conf(5)). */
export interface SearchRules {
  readonly domains: readonly string[];
  /** A name with at least this number of dots is looked up unchanged first, and then with the search domains. */
  readonly dots: number;
}

const maxSearchDomains = 6;

/** Finds the addresses of `host` in the text of a hosts file (hosts(5)). */
export function addressesInHosts(text: string, host: string): string[] {
  const wanted = host.replace(/\.$/, '').toLowerCase();
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    return isIP(address) !== 0 && names.some((name) => name.toLowerCase() === wanted) ? [address] : [];
  });
}

/** Reads the search rules from the text of a resolv.conf. If there are several lines `search` or `domain`, the last line is valid. */
export function searchRulesIn(text: string): SearchRules {
  let domains: readonly string[] = [];
  let dots = 1;
  for (const line of text.split('\n')) {
    const [word, ...values] = line
      .replace(/[#;].*/, '')
      .trim()
      .split(/\s+/);
    if (word === 'search' || word === 'domain') domains = values.slice(0, maxSearchDomains);
    for (const value of word === 'options' ? values : []) {
      const found = /^ndots:(\d{1,2})$/.exec(value)?.[1];
      if (found !== undefined) dots = Math.min(Number(found), 15);
    }
  }
  return { domains, dots };
}

/** Returns the full names to look up, in the order in which they are tried. */
export function namesToTry(host: string, { domains, dots }: SearchRules): string[] {
  if (host.endsWith('.')) return [host.slice(0, -1)];
  const searched = domains.filter((domain) => domain !== '.').map((domain) => `${host}.${domain.replace(/\.$/, '')}`);
  return host.split('.').length - 1 >= dots ? [host, ...searched] : [...searched, host];
}

/** Reads a system file; a missing file is empty. */
export async function readSystemFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
}
