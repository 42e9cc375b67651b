/** Gives the repository a new version: in the manifests of the packages, the lockfile, the deploy files and the changelog. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

interface Manifest {
  version?: string;
  workspaces?: string[];
  [kind: string]: unknown;
}

/** A version of Semantic Versioning 2.0.0 without build metadata, because a tag of an image cannot contain `+`. */
const semanticVersion = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$/;

/** Sets the version of a package, and the version of each package of this repository on which it depends. */
function setVersion(manifest: Manifest, version: string): void {
  manifest.version = version;
  for (const kind of ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies']) {
    const dependencies = (manifest[kind] ?? {}) as Record<string, string>;
    for (const name of Object.keys(dependencies)) if (name.startsWith('@runyard/')) dependencies[name] = version;
  }
}

/**
 * Returns the changelog with the section of `version`, which has the text of the section "Unreleased". A new empty section "Unreleased"
 * follows the introduction. Throws an error if there is nothing to release, or if the version has a section already.
 */
export function releaseChangelog(changelog: string, version: string, date: string): string {
  const [introduction, rest, more] = changelog.split(/^## Unreleased$/m);
  if (introduction === undefined || rest === undefined || more !== undefined)
    throw new Error('CHANGELOG.md must have one section "## Unreleased"');
  const next = rest.search(/^## /m);
  const changes = rest.slice(0, next < 0 ? undefined : next).trim();
  if (changes === '') throw new Error('the section "Unreleased" of CHANGELOG.md is empty: write what has changed');
  if (changelog.includes(`\n## ${version} `)) throw new Error(`CHANGELOG.md has a section of ${version} already`);
  const earlier = next < 0 ? '' : `\n${rest.slice(next)}`;
  return `${introduction}## Unreleased\n\n## ${version} – ${date}\n\n${changes}\n${earlier}`;
}

/**
 * Writes the version into all files of the repository in the folder `root` that contain it. `date` is the day of the release, YYYY-MM-DD.
 * Throws an error, and writes nothing, if the version or the changelog is not suitable.
 */
export function writeVersion(root: string, version: string, date: string): void {
  if (!semanticVersion.test(version))
    throw new Error(`${JSON.stringify(version)} is not a version; use MAJOR.MINOR.PATCH (https://semver.org)`);
  const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
  const write = (file: string, text: string) => writeFileSync(path.join(root, file), text);
  const writeJson = (file: string, value: object) => write(file, `${JSON.stringify(value, null, 2)}\n`);
  const changelog = releaseChangelog(read('CHANGELOG.md'), version, date);
  const manifest: Manifest = JSON.parse(read('package.json'));
  const earlier = manifest.version ?? '';
  const folders = ['', ...(manifest.workspaces ?? [])];

  write('CHANGELOG.md', changelog);
  for (const folder of folders) {
    const file = path.join(folder, 'package.json');
    const content: Manifest = JSON.parse(read(file));
    setVersion(content, version);
    writeJson(file, content);
  }
  const lockfile: Manifest & { packages: Record<string, Manifest> } = JSON.parse(read('package-lock.json'));
  lockfile.version = version;
  for (const folder of folders) setVersion(lockfile.packages[folder] ?? {}, version);
  writeJson('package-lock.json', lockfile);
  const chart = 'deploy/helm/runyard/Chart.yaml';
  write(chart, read(chart).replaceAll(/^(version|appVersion): .*$/gm, `$1: ${version}`));
  const image = new RegExp(`(runyard-(?:agent|service|worker)):${earlier.replaceAll('.', '\\.')}\\b`, 'g');
  for (const file of ['deploy/compose.yaml', 'docs/deploy.md'])
    write(file, read(file).replaceAll(image, `$1:${version}`));
}
