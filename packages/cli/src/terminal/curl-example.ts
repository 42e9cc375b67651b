/** Quotes a text as one word of a POSIX shell. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Returns a curl command that starts a run. A person can paste it into a shell. `key`: text that the shell replaces by the key, such as
 * `$KEY`.
 */
export function curlExample(origin: string, key: string): string {
  const prompt = 'Say hello from the sandbox.\n\n```sh\necho "hello from $(uname -n), as user $(id -u)"\n```\n';
  return [
    `curl -sS ${shellQuote(`${origin}/api/v1/agent/runs`)} \\`,
    `  -H "Authorization: Bearer ${key}" \\`,
    `  -H ${shellQuote('Content-Type: application/json')} \\`,
    `  -d ${shellQuote(JSON.stringify({ prompt }))}`,
  ].join('\n');
}
