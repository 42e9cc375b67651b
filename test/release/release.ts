/** Program: writes the files of a release into a new folder. Started by bin/release. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { readAdvisories } from './advisories.ts';
import { writeVersion } from './new-version.ts';
import { writeNpmPackage } from './npm-package.ts';
import { type Sbom, toSbom } from './sbom.ts';

const root = path.resolve(import.meta.dirname, '../..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    accept: { type: 'string', multiple: true, default: [] },
    version: { type: 'string' },
    'without-images': { type: 'boolean', default: false },
  },
});
const say = (message: string) => console.log(`release: ${message}`);

function fail(message: string): never {
  console.error(`release: ${message}`);
  process.exit(1);
}

const git = (...words: string[]) => execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim();
/** npm audit exits with 1 when it finds an advisory. Its standard output is a report even then. */
const npm = (...words: string[]) =>
  spawnSync('npm', words, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }).stdout ?? '';

const [folder] = positionals;
if (folder === undefined) fail('usage: bin/release FOLDER [--version VERSION] [--accept GHSA-ID] [--without-images]');
if (git('status', '--porcelain') !== '') fail('the working tree has changes; a release is a commit');
mkdirSync(folder, { recursive: true });
if (readdirSync(folder).length > 0) fail(`the folder ${folder} is not empty`);

const advisories = readAdvisories(npm('audit', '--package-lock-only', '--json'), values.accept);
if (advisories.kind === 'unknown') say(`skipped: advisories of the lockfile (${advisories.reason})`);
else if (advisories.found.length > 0)
  fail(
    `the lockfile has packages with advisories; update them, or name those that do not concern the program with --accept ID:\n${advisories.found.map(({ line }) => `  ${line}`).join('\n')}`,
  );
else say('no advisory is known about the packages of the lockfile');

if (values.version !== undefined) {
  const tag = `v${values.version}`;
  if (git('tag', '--list', tag) !== '') fail(`the tag ${tag} exists already; choose another version`);
  try {
    writeVersion(root, values.version, new Date().toISOString().slice(0, 10));
  } catch (error) {
    fail((error as Error).message);
  }
  git('commit', '--quiet', '--all', '--message', `Release ${values.version}`);
  git('tag', '--annotate', tag, '--message', `Runyard ${values.version}`);
  say(`the new commit has the tag ${tag}; publish both with: git push --follow-tags`);
}

const manifest: { name: string; version: string } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const base = `${manifest.name}-${manifest.version}`;
const printed = npm('sbom', '--package-lock-only', '--sbom-format', 'cyclonedx');
let ofNpm: Sbom;
try {
  ofNpm = JSON.parse(printed);
} catch {
  fail('npm sbom printed no document; it needs npm 10 or newer');
}
const lockfile = readFileSync(path.join(root, 'package-lock.json'), 'utf8');
const committedAt = new Date(git('log', '-1', '--format=%cI')).toISOString();
const sbom = toSbom(ofNpm, { name: manifest.name, lockfile, committedAt });
const bill = `${JSON.stringify(sbom, null, 2)}\n`;
writeFileSync(path.join(folder, `${base}.cdx.json`), bill);
const dashboard = 'packages/dashboard';
execFileSync(process.execPath, ['node_modules/vite/bin/vite.js', 'build', '--logLevel', 'warn', dashboard], {
  cwd: root,
  stdio: 'inherit',
});
const built = readdirSync(path.join(root, dashboard, 'dist'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
  .sort();
// Include the built dashboard. A service that may not write to its folder cannot build the dashboard, and serves this build.
git(
  ...['archive', '--format=tar.gz', '-o', path.resolve(folder, `${base}.tar.gz`)],
  ...built.flatMap((file) => [`--prefix=${base}/${path.dirname(file)}/`, `--add-file=${path.join(root, file)}`]),
  ...[`--prefix=${base}/`, 'HEAD'],
);
await writeNpmPackage(root, folder, bill);
if (!values['without-images']) {
  const images = path.join(root, 'deploy/images/build.ts');
  const made = spawnSync(process.execPath, [images, '--output', folder], { stdio: ['ignore', 'ignore', 'inherit'] });
  if (made.status !== 0) fail('the images could not be made; --without-images leaves them out');
}
const sums = readdirSync(folder)
  .sort()
  .map(
    (file) =>
      `${createHash('sha256')
        .update(readFileSync(path.join(folder, file)))
        .digest('hex')}  ${file}\n`,
  );
writeFileSync(path.join(folder, 'SHA256SUMS'), sums.join(''));
say(
  `${base} of the commit ${git('rev-parse', 'HEAD')} is in ${folder}, with ${sbom.components.length} packages in its bill of materials`,
);
