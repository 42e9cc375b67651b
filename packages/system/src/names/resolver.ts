/**
 * Looks up host names with the library c-ares. Node's own `dns.lookup` uses one of four threads of the process, which also serve the
 * file system. So with `dns.lookup`, a name server that does not answer would block all other look-ups of the process. See
 * docs/decisions/name-look-ups.md.
 */
import { promises as dns, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { addressesInHosts, namesToTry, readSystemFile, searchRulesIn } from './system-files.ts';

export interface NameResolver {
  /**
   * Returns all addresses of a host name, IPv4 first. Rejects with the code `ENOTFOUND` if the name has no address, with `EAI_AGAIN` if no
   * name server answered in time, or with the reason of the signal.
   */
  resolve(host: string, signal?: AbortSignal): Promise<readonly LookupAddress[]>;
  /** Does the same as `resolve`, but has the form that sockets need for their option `lookup`. */
  readonly lookup: LookupFunction;
}

export interface ResolverOptions {
  /** Time limit of one look-up with all its attempts, in milliseconds. */
  readonly timeoutMs: number;
  /** Name servers as `address:port`. Default: the servers of /etc/resolv.conf. */
  readonly servers?: readonly string[];
  readonly hostsFile: string;
  readonly resolvConf: string;
}

const defaults: ResolverOptions = { timeoutMs: 5_000, hostsFile: '/etc/hosts', resolvConf: '/etc/resolv.conf' };
/** Time limit of each of the two attempts. */
const tryMs = 2_000;

interface LookUp {
  readonly result: Promise<readonly LookupAddress[]>;
  readonly ending: AbortController;
  waiting: number;
}

class NameError extends Error {
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN';
  constructor(code: NameError['code'], host: string, options?: ErrorOptions) {
    super(code === 'ENOTFOUND' ? `${host} does not exist` : `${host} could not be looked up`, options);
    this.code = code;
  }
}

const withFamily = (addresses: readonly string[]): LookupAddress[] =>
  addresses.map((address) => ({ address, family: isIP(address) })).sort((one, other) => one.family - other.family);

/** Returns true if the name server answered that the name, or an address of the requested kind, does not exist. */
const saysNo = (error: unknown): boolean =>
  ['ENOTFOUND', 'ENODATA'].includes(String((error as { code?: unknown }).code));

/** Returns the IPv4 and IPv6 addresses of a full name. Throws if there is no address because a query got no answer. */
async function ask(resolver: dns.Resolver, name: string): Promise<LookupAddress[]> {
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (found.length > 0) return withFamily(found);
  const failed = answers.find((answer) => answer.status === 'rejected' && !saysNo(answer.reason));
  if (failed?.status === 'rejected') throw failed.reason;
  return [];
}

async function lookUp(host: string, options: ResolverOptions, signal: AbortSignal): Promise<readonly LookupAddress[]> {
  const inHosts = addressesInHosts(await readSystemFile(options.hostsFile), host);
  if (inHosts.length > 0) return withFamily(inHosts);
  const rules = searchRulesIn(await readSystemFile(options.resolvConf));
  signal.throwIfAborted();
  // Each look-up has a separate resolver, because `cancel` ends all queries of a resolver.
  const resolver = new dns.Resolver({ timeout: Math.min(tryMs, options.timeoutMs), tries: 2 });
  if (options.servers) resolver.setServers(options.servers);
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel);
  try {
    for (const name of namesToTry(host, rules)) {
      const found = await ask(resolver, name);
      if (found.length > 0) return found;
      signal.throwIfAborted();
    }
  } catch (error) {
    throw new NameError('EAI_AGAIN', host, { cause: error });
  } finally {
    signal.removeEventListener('abort', cancel);
  }
  throw new NameError('ENOTFOUND', host);
}

/** Makes a resolver. Concurrent look-ups of the same name share one look-up, which ends when no caller waits for it any more. */
export function makeNameResolver(changes: Partial<ResolverOptions> = {}): NameResolver {
  const options = { ...defaults, ...changes };
  const underWay = new Map<string, LookUp>();

  const begin = (host: string): LookUp => {
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(), options.timeoutMs);
    const result = lookUp(host, options, ending.signal).finally(() => {
      clearTimeout(timer);
      if (underWay.get(host) === begun) underWay.delete(host);
    });
    // Prevents an unhandled rejection if the look-up fails when no caller waits any more.
    result.catch(() => undefined);
    const begun: LookUp = { result, ending, waiting: 0 };
    underWay.set(host, begun);
    return begun;
  };

  const resolve: NameResolver['resolve'] = async (host, signal) => {
    signal?.throwIfAborted();
    const found = underWay.get(host) ?? begin(host);
    found.waiting += 1;
    const aborted = Promise.withResolvers<never>();
    const leave = (): void => aborted.reject(signal?.reason);
    signal?.addEventListener('abort', leave, { once: true });
    try {
      return await Promise.race([found.result, aborted.promise]);
    } finally {
      signal?.removeEventListener('abort', leave);
      found.waiting -= 1;
      if (found.waiting === 0) {
        found.ending.abort();
        if (underWay.get(host) === found) underWay.delete(host);
      }
    }
  };

  const lookup: LookupFunction = (host, { all, family }, callback) => {
    const wanted = family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : (family ?? 0);
    resolve(host).then(
      (addresses) => {
        const fitting = addresses.filter((each) => wanted === 0 || each.family === wanted);
        const [first] = fitting;
        if (!first) return callback(new NameError('ENOTFOUND', host), '', 0);
        if (all) callback(null, fitting);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    );
  };
  return { resolve, lookup };
}

/** Resolves names with the name servers, hosts file and search domains of the machine. */
export const systemNames: NameResolver = makeNameResolver();
