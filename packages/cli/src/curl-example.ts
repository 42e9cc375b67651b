/** A word as a POSIX shell reads it back unchanged. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A curl command that starts a run and works as pasted. */
export function curlExample(origin: string, key: string): string {
  const prompt = 'Say hello from the sandbox.\n\n```sh\necho "hello from $(uname -n), as user $(id -u)"\n```\n';
  return [
    `curl -sS ${shellQuote(`${origin}/api/v1/agent/runs`)} \\`,
    `  -H ${shellQuote(`Authorization: Bearer ${key}`)} \\`,
    `  -H ${shellQuote('Content-Type: application/json')} \\`,
    `  -d ${shellQuote(JSON.stringify({ prompt }))}`,
  ].join('\n');
}
