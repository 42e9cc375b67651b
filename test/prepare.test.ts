/** Installs packages with the functions of bin/prepare.sh in a folder with a program `npm` that only notes its arguments. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { newFolder } from './support/close-at-end.ts';

const repository = path.resolve(import.meta.dirname, '..');

/** Runs `bin/runyard`'s steps that install packages. Returns the commands of npm, without the options that all of them have. */
function installWith(root: string, settings: Readonly<Record<string, string>>): string[] {
  const script = `root="$1"; . "${repository}/bin/prepare.sh"; ensure_programs; ensure_clients`;
  const env = { PATH: `${root}/bin:${process.env.PATH}`, ...settings };
  writeFileSync(path.join(root, 'calls'), '');
  const { status, stderr } = spawnSync('sh', ['-euc', script, 'sh', root], { env, encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  return readFileSync(path.join(root, 'calls'), 'utf8').split('\n').slice(0, -1);
}

function newRoot(): string {
  const root = newFolder();
  mkdirSync(path.join(root, 'bin'));
  const npm = `#!/bin/sh\nmkdir -p node_modules\necho "\${*%% --no-audit*}" >> "${root}/calls"\n`;
  writeFileSync(path.join(root, 'bin/npm'), npm, { mode: 0o755 });
  writeFileSync(path.join(root, 'package-lock.json'), '{"packages": {"node_modules/zod": {"version": "1.0.0"}}}');
  return root;
}

const programs = 'ci --omit=dev -w packages/cli -w packages/agent';
const clients = 'install --no-save --omit=dev --include-workspace-root -w packages/cli -w packages/agent';

test('the clients of buckets and clusters are installed when the settings first name one', () => {
  const root = newRoot();
  expect(installWith(root, {})).toEqual([programs]);
  expect(installWith(root, { RUNYARD_SANDBOX: 'bubblewrap', RUNYARD_BLOBS: '/var/kubernetes/blobs' })).toEqual([]);
  expect(installWith(root, { RUNYARD_SANDBOX: 'kubernetes' })).toEqual([clients]);
  expect(installWith(root, { RUNYARD_BLOBS: 's3://bucket' })).toEqual([]);
});

test.each([{ RUNYARD_BLOBS: 's3://bucket/prefix' }, { RUNYARD_BLOBS_FROM: 's3://bucket' }])(
  'the clients are installed with the settings %j',
  (settings) => {
    expect(installWith(newRoot(), settings)).toEqual([programs, clients]);
  },
);

test('no workspace that every installation needs depends on a client of buckets or clusters', () => {
  const read = (file: string) => JSON.parse(readFileSync(path.join(repository, file), 'utf8'));
  for (const name of ['service', 'worker', 'cli', 'agent']) {
    const manifest = read(`packages/${name}/package.json`);
    for (const client of Object.keys(read('package.json').dependencies))
      expect(manifest.dependencies, name).not.toHaveProperty([client]);
  }
});
