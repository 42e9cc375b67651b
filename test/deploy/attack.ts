/**
 * Returns commands of a run that looks for secrets of others. Each command succeeds only if it finds none, and a run fails at the first
 * command that fails. `api` is the origin of the API server, without TLS.
 */
export function attackCommands(api: string): string[] {
  // With -q, grep succeeds at the first match, whatever it cannot read.
  const search = "grep -rqsE 'ryr_[0-9A-Za-z]{20}'";
  /** Succeeds if the API server answers with one of these statuses. A run may execute the agent's Node, but not read its file. */
  const answers = (path: string, ...statuses: number[]): string =>
    `/agent/node -e "fetch('${api}${path}').then(({ status }) => process.exit([${statuses}].includes(status) ? 0 : 1))"`;
  return [
    'test ! -e /var/run/secrets/kubernetes.io && test ! -e /run/secrets/kubernetes.io',
    // The API server answers, but not with Secrets.
    answers('/version', 200),
    answers('/api/v1/namespaces/runyard-runs/secrets', 401, 403),
    // The search finds a token that it can read.
    `printf 'ryr_%s' 0123456789abcdefghijABCD >/tmp/planted && ${search} /tmp && rm /tmp/planted`,
    `! ${search} /run /tmp /var /workspace /proc/[0-9]*/environ /proc/[0-9]*/cmdline`,
  ];
}
