import { readFileSync } from 'node:fs';

/** Returns the version in the package.json of this checkout. */
export function productVersion(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
