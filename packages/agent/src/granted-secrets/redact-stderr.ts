import type { GrantedSecrets } from './granted-secrets.ts';

/** Removes the secrets of the run from what this process writes to standard error, which the worker logs. */
export function redactStderr({ redact }: Pick<GrantedSecrets, 'redact'>): void {
  const write = process.stderr.write.bind(process.stderr);
  process.stderr.write = ((text: string | Uint8Array, ...rest: never[]) =>
    write(typeof text === 'string' ? redact(text) : text, ...rest)) as typeof process.stderr.write;
}
