import { readFileSync } from 'node:fs';

/** Returns the version of this checkout, as its package.json has it. */
export function productVersion(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
