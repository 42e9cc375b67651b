import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { readAdvisories } from './release/advisories.ts';
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
