import type { NetworkAccess } from './forwarder.ts';

/** Messages of programs that could not resolve a name or connect to a host: glibc, curl, git, apt, Node, Python, Go. */
const missesNetwork =
  /Could not resolve|Temporary failure (?:in name resolution|resolving)|Name or service not known|getaddrinfo|EAI_AGAIN|ENOTFOUND|Network is unreachable|ENETUNREACH|no such host|bad address '|dial (?:tcp|udp)|dns error|failed to lookup address/i;

/** Messages of programs that a proxy refused: curl, git, npm, pip, apt, Go. */
const isDenied = /403 Forbidden|response 403|Tunnel connection failed|error: 403|E403|Proxy CONNECT aborted/i;

/** Returns true if the output says that the program failed because the sandbox cannot reach a host. */
export function lacksHost(output: string, network: NetworkAccess): boolean {
  if (network === 'open') return false;
  return missesNetwork.test(output) || (network === 'allow_list' && isDenied.test(output));
}

/** Error text: says which hosts a sandbox with an allow-list can reach. */
export const allowListAdvice =
  "The sandbox reaches only the hosts of the environment's network.allowed_hosts and network.presets, and only through the proxy of HTTPS_PROXY and HTTP_PROXY: a program that does not read these variables reaches no host. The run's events connection_denied have the hosts that were denied.";
