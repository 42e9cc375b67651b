import { parseSettings } from '@runyard/contract/settings/settings';
import { expect, test } from 'vitest';
import { bubblewrapFeatures } from '../../../test/worker.ts';
import { probeSandbox, type SandboxSettings } from '../../backends/probe.ts';
import { explainFailure } from './level.ts';

function settings(sandbox: string): SandboxSettings {
  const parsed = parseSettings({ RUNYARD_SANDBOX: sandbox });
  if (!parsed.ok) throw new Error(parsed.problems.join());
  return parsed.settings;
}

test('the probe of the backend docker names the setting to change if no container engine answers', async () => {
  const elsewhere = { ...settings('docker'), RUNYARD_DOCKER_HOST: 'unix:///nowhere/docker.sock' };
  expect(await probeSandbox(elsewhere)).toMatchObject({
    ok: false,
    reasons: [expect.stringMatching(/no container engine answers at \/nowhere\/docker\.sock .*RUNYARD_DOCKER_HOST/)],
  });
});

test('the probe of the backend none succeeds and reports no isolation features', async () => {
  expect(await probeSandbox(settings('none'))).toMatchObject({ ok: true, level: { backend: 'none', features: [] } });
});

test.skipIf((await bubblewrapFeatures()) === undefined)(
  'the probe of bubblewrap reports which features the kernel enforces',
  async () => {
    const { ok, reasons, level } = await probeSandbox(settings('auto'));
    expect([ok, reasons]).toEqual([true, []]);
    expect(level.features).toEqual(
      expect.arrayContaining([
        'pid-namespace',
        'no-network',
        'no-capabilities',
        'no-new-privileges',
        'no-user-namespaces',
        'system-calls',
        'files',
      ]),
    );
    const known = [...level.features, ...level.missing.map(({ feature }) => feature)];
    expect(known).toEqual(expect.arrayContaining(['user', 'cgroup', 'cpu', 'freeze', 'disk-quota', 'kernel']));
  },
);

test('explainFailure reports which version of bubblewrap is needed if an option is unknown', async () => {
  expect(await explainFailure('bwrap: Unknown option --disable-userns', 1)).toContain('0.8 or newer');
});

test('explainFailure contains the output of bubblewrap or, if there is none, the exit code', async () => {
  expect(await explainFailure('bwrap: something new', 1)).toContain('bwrap: something new');
  expect(await explainFailure('', 127)).toContain('exit code 127');
});
