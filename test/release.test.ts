import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { readAdvisories } from './release/advisories.ts';
import { releaseChangelog, writeVersion } from './release/new-version.ts';
import { type Sbom, toSbom } from './release/sbom.ts';

const root = path.resolve(import.meta.dirname, '..');
const lockfile = readFileSync(path.join(root, 'package-lock.json'), 'utf8');

test('the bill of materials lists every package that a user installs, and is the same for two builds of a commit', () => {
  const words = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'];
  const ofNpm: Sbom = JSON.parse(execFileSync('npm', words, { cwd: root, encoding: 'utf8' }));
  const build = (printed: Sbom) =>
    toSbom(printed, { name: 'runyard', lockfile, committedAt: '2026-01-01T00:00:00.000Z' });
  const sbom = build(ofNpm);
  const component = { ...ofNpm.metadata.component, name: 'another-folder' };
  const later = { ...ofNpm.metadata, timestamp: '2027-01-01T00:00:00.000Z', component };
  expect(build({ ...ofNpm, serialNumber: 'random', metadata: later })).toEqual(sbom);
  expect(sbom).toMatchObject({
    bomFormat: 'CycloneDX',
    metadata: { component: { name: 'runyard', type: 'application' } },
  });
  expect(sbom.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const { packages }: { packages: Record<string, { version?: string; dev?: true; link?: true }> } =
    JSON.parse(lockfile);
  const installed = Object.entries(packages).filter(
    ([place, { dev, link }]) => place.includes('node_modules/') && !dev && !link,
  );
  const purls = new Set(sbom.components.map(({ purl }) => decodeURIComponent(purl)));
  const purlOf = ([place, { version }]: [string, { version?: string }]) =>
    `pkg:npm/${place.split('node_modules/').at(-1)}@${version}`;
  expect(installed.map(purlOf).filter((purl) => !purls.has(purl))).toEqual([]);
  expect(installed.length).toBeGreaterThan(50);
  // A package can be in the lockfile twice: for development, and for users. Leave out such packages.
  const installedPurls = new Set(installed.map(purlOf));
  const dev = Object.entries(packages).filter(([, each]) => each.dev);
  const kept = dev.map(purlOf).filter((purl) => purls.has(purl) && !installedPurls.has(purl));
  expect(kept).toEqual([]);
});

const advisory = {
  title: 'Reads files',
  url: 'https://github.com/advisories/GHSA-aaaa-bbbb-cccc',
  severity: 'high',
  range: '<2.0.0',
};
const audit = JSON.stringify({ vulnerabilities: { a: { name: 'a', via: [advisory] }, b: { name: 'b', via: ['a'] } } });

test.each([
  [
    'an advisory',
    audit,
    [],
    {
      kind: 'known',
      found: [{ id: 'GHSA-aaaa-bbbb-cccc', line: expect.stringMatching(/^a <2\.0\.0: high: Reads files/) }],
    },
  ],
  ['one that was accepted', audit, ['GHSA-aaaa-bbbb-cccc'], { kind: 'known', found: [] }],
  ['none', '{"vulnerabilities":{}}', [], { kind: 'known', found: [] }],
  [
    'a registry without advisories',
    '{"message":"405 Method Not Allowed"}',
    [],
    { kind: 'unknown', reason: '405 Method Not Allowed' },
  ],
  ['no answer', '', [], { kind: 'unknown', reason: 'npm audit printed no JSON' }],
])('the check of advisories reads the output of npm audit: %s', (_, printed, accepted, expected) => {
  expect(readAdvisories(printed, accepted)).toEqual(expected);
});

describe('the changelog of a new version', () => {
  const introduction = '# Changelog\n\nText.\n\n';

  test('has the unreleased changes in the section of the version, before the earlier versions', () => {
    const before = `${introduction}## Unreleased\n\n- Adds a thing.\n\n## 1.0.0 – 2026-01-01\n\n- First.\n`;
    expect(releaseChangelog(before, '1.1.0', '2026-02-03')).toBe(
      `${introduction}## Unreleased\n\n## 1.1.0 – 2026-02-03\n\n- Adds a thing.\n\n## 1.0.0 – 2026-01-01\n\n- First.\n`,
    );
  });

  test.each([
    ['without unreleased changes', `${introduction}## Unreleased\n\n## 1.0.0 – 2026-01-01\n\n- First.\n`, /is empty/],
    ['without a section of unreleased changes', introduction, /must have one section/],
    ['with a section of this version', `${introduction}## Unreleased\n\n- A.\n\n## 1.1.0 – 2026-01-01\n`, /already/],
  ])('is refused %s', (_, before, message) => {
    expect(() => releaseChangelog(before, '1.1.0', '2026-02-03')).toThrow(message);
  });
});

test('a new version is written into every package, the lockfile, the deploy files and their page, and changes no other line', () => {
  const clone = path.join(mkdtempSync(path.join(tmpdir(), 'runyard-version-')), 'clone');
  execFileSync('git', ['clone', '-q', '--shared', root, clone]);
  const git = (...words: string[]) => execFileSync('git', words, { cwd: clone, encoding: 'utf8' }).trim();
  expect(() => writeVersion(clone, '9.8', '2026-02-03')).toThrow('is not a version');
  expect(git('status', '--porcelain')).toBe('');

  const earlier: string = JSON.parse(readFileSync(path.join(clone, 'package.json'), 'utf8')).version;
  writeVersion(clone, '9.8.7-rc.1', '2026-02-03');
  const changed = git('diff', '-U0', '--', ':!CHANGELOG.md')
    .split('\n')
    .filter((line) => /^[-+][^-+]/.test(line));
  const removed = changed.filter((line) => line.startsWith('-')).map((line) => line.slice(1));
  const added = changed.filter((line) => line.startsWith('+')).map((line) => line.slice(1));
  expect(added).toEqual(removed.map((line) => line.replaceAll(earlier, '9.8.7-rc.1')));
  expect(removed).toEqual(removed.filter((line) => line.includes(earlier)));
  const manifests = git('ls-files', 'package.json', 'packages/*/package.json').split('\n');
  expect(git('diff', '--name-only').split('\n')).toEqual(
    [
      ...manifests,
      'CHANGELOG.md',
      'deploy/compose.yaml',
      'deploy/helm/runyard/Chart.yaml',
      'docs/deploy.md',
      'package-lock.json',
    ].sort(),
  );
  // No file of the repository still names the earlier version as the version of Runyard.
  expect(() =>
    git('grep', '-nE', `runyard[a-z/-]*"?[:@] ?"?v?${earlier.replaceAll('.', '\\.')}`, '--', ':!CHANGELOG.md'),
  ).toThrow();
});
