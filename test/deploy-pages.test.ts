/**
 * Executes the blocks of docs/deploy.md and docs/metrics.md that need no cluster. Programs that this machine does not have, such as
 * kubectl, are replaced by a script that records its arguments.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseSettings } from '@runyard/contract/settings/settings';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { isOnPath } from './checks/system-packages.ts';
import { folder, hasTools, helm, render, root, skipped } from './deploy/chart.ts';
import { blocksOf, blockWith } from './deploy/pages.ts';

interface Source {
  readonly name?: string;
  readonly secretName?: string;
  readonly items: readonly { readonly key: string }[];
}
interface Volume {
  readonly secret?: Source;
  readonly projected?: { readonly sources: readonly { readonly secret?: Source }[] };
}

/** Runs a block in a folder that has only deploy/. Returns the arguments of each call of a recorded program. */
function execute(block: string, recorded: readonly string[]): string[][] {
  const place = path.join(folder, recorded.join('-'));
  const bin = path.join(place, 'bin');
  mkdirSync(bin, { recursive: true });
  for (const name of ['make-secrets', 'compose.yaml'])
    cpSync(path.join(root, 'deploy', name), path.join(place, 'deploy', name));
  for (const name of recorded) {
    writeFileSync(path.join(bin, name), `#!/bin/sh\nprintf '%s\\037' "\${0##*/}" "$@" >>calls\necho >>calls\n`);
    chmodSync(path.join(bin, name), 0o755);
  }
  const env = { PATH: `${bin}:${process.env.PATH}` };
  const { status, stderr } = spawnSync('bash', ['-euc', block], { cwd: place, env, encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  const calls = readFileSync(path.join(place, 'calls'), 'utf8').trim().split('\n');
  return calls.map((call) => call.split('\x1f').slice(0, -1));
}

test('the commands of docs/deploy.md for one machine make the secrets of the compose file and send the key of the operator', () => {
  const calls = execute(blockWith('deploy.md', 'sh', 'deploy/make-secrets'), ['docker', 'curl']);
  const place = path.join(folder, 'docker-curl');
  const composed = calls.find(([program, word]) => program === 'docker' && word === 'compose') ?? [];
  const file = path.join(place, composed[composed.indexOf('--file') + 1] ?? '');
  const { secrets } = parse(readFileSync(file, 'utf8'), { merge: true }) as {
    secrets: Record<string, { file: string }>;
  };
  for (const each of Object.values(secrets))
    expect(existsSync(path.join(path.dirname(file), each.file)), each.file).toBe(true);
  const key = readFileSync(path.join(place, 'deploy/secrets/operator-key'), 'utf8').trim();
  const asked = calls.find(([program]) => program === 'curl');
  expect(asked).toContain(`Authorization: Bearer ${key}`);
  expect(parseSettings({ RUNYARD_BOOTSTRAP_KEY: key })).toMatchObject({ ok: true });
});

describe.skipIf(!hasTools)(`the values of docs/deploy.md for a cluster${skipped}`, { tags: 'compiled' }, () => {
  test('name only Secrets and keys that the commands of the page create', () => {
    const made = new Map<string, string[]>();
    for (const [, , namespace, ...words] of execute(blockWith('deploy.md', 'sh', 'create namespace'), ['kubectl'])) {
      if (words[1] !== 'secret') continue;
      expect(namespace).toBe('runyard');
      const keys = words.flatMap((word) => /^--from-(?:literal|file)=([^=]+)=/.exec(word)?.[1] ?? []);
      made.set(words[3] ?? '', keys);
    }
    const values = parse(blockWith('deploy.md', 'yaml', 'baseUrl')) as object;
    const volumes = render(values).resources.flatMap(
      ({ spec }) => (spec?.template?.spec.volumes ?? []) as readonly Volume[],
    );
    const sources = volumes.flatMap(({ secret, projected }) => [
      secret,
      ...(projected?.sources.map((source) => source.secret) ?? []),
    ]);
    const wanted = sources.flatMap((source) =>
      (source?.items ?? []).map(({ key }) => `${source?.name ?? source?.secretName} ${key}`),
    );
    const available = [...made].flatMap(([name, keys]) => keys.map((key) => `${name} ${key}`));
    expect([...new Set(wanted)].sort()).toEqual(available.sort());
  });

  test('print no warning when they are installed', () => {
    const { status, output } = helm('install', parse(blockWith('deploy.md', 'yaml', 'baseUrl')) as object);
    expect(status, output).toBe(0);
    expect(output).not.toContain('WARNING');
  });
});

test('the commands of docs/metrics.md start the service with settings that it accepts', () => {
  const blocks = blocksOf('metrics.md', 'sh');
  expect(blocks.length).toBeGreaterThan(1);
  for (const block of blocks) {
    const print = block.replace('bin/runyard up', 'env -0');
    const { stdout, stderr } = spawnSync('bash', ['-euc', print], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
    });
    const variables = stdout.split('\0').filter((line) => /^(?:RUNYARD|OTEL)_/.test(line));
    expect(variables.length, stderr).toBeGreaterThan(0);
    const settings = Object.fromEntries(variables.map((line) => line.split(/=(.*)/s).slice(0, 2)));
    expect(parseSettings(settings)).toMatchObject({ ok: true });
  }
});

const noPromtool = isOnPath('promtool') ? '' : ' (skipped: install the package prometheus)';
test.skipIf(noPromtool !== '')(`the configuration of Prometheus in docs/metrics.md is valid${noPromtool}`, () => {
  const file = path.join(folder, 'prometheus.yaml');
  cpSync(path.join(root, 'deploy/prometheus/alerts.yaml'), path.join(folder, 'alerts.yaml'));
  const blocks = blocksOf('metrics.md', 'yaml').join('');
  expect(Object.keys(parse(blocks) as object).sort()).toEqual(['rule_files', 'scrape_configs']);
  writeFileSync(file, blocks);
  writeFileSync(path.join(folder, 'metrics-token'), 'a token for the metrics port');
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'config', file], { encoding: 'utf8' });
  expect(status, stdout + stderr).toBe(0);
  expect(stdout).toContain('1 rule files found');
});
