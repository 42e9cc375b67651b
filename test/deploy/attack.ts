/**
 * Returns commands of a run that looks for secrets of others. Each command succeeds only if it finds none, and a run fails at the first
 * command that fails. `api` is the origin of the API server, without TLS.
 */
export function attackCommands(api: string): string[] {
  const search = "grep -rsE 'ryr_[0-9A-Za-z]{20}'";
  return [
    'test ! -e /var/run/secrets/kubernetes.io && test ! -e /run/secrets/kubernetes.io',
    // The API server answers, but not with Secrets.
    `wget -q -T 10 -O - ${api}/version`,
    `wget -q -T 10 -O - ${api}/api/v1/namespaces/runyard-runs/secrets 2>/tmp/why; grep -E '40[13]' /tmp/why`,
    // The search finds a token that it can read.
    `printf 'ryr_%s' 0123456789abcdefghijABCD >/tmp/planted && ${search} /tmp && rm /tmp/planted`,
    `! ${search} /run /tmp /var /workspace /proc/[0-9]*/environ /proc/[0-9]*/cmdline`,
  ];
}
