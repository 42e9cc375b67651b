/** The published Python client of the interface works against this service by changing its base URL and its key. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openCuttingProxy } from './fakes/cutting-proxy.ts';
import { type FakeGitHost, startFakeGitHost } from './fakes/git-host.ts';
import { describeSystem } from './support/describe-system.ts';
import { installPythonPackages, type PythonPackages } from './support/python-packages.ts';

const folder = path.join(import.meta.dirname, 'python-client');
const source = readFileSync(path.join(folder, 'scenarios.py'), 'utf8');
const names = [...source.matchAll(/^@scenario\("(.+)"\)$/gm)].map(([, name = '']) => name);

let installing: Promise<PythonPackages> | undefined;
let codeHost: FakeGitHost | undefined;
afterAll(() => codeHost?.close());
/** Both take a while, and do not depend on each other. */
const besideInstalling = async () => {
  installing = installPythonPackages(path.join(folder, 'requirements.txt'), 10);
  // The failure is reported by its `await`.
  installing.catch(() => undefined);
  codeHost = await startFakeGitHost();
  const skill = '---\nname: deploy\ndescription: Deploys.\n---\n```sh\necho deployed\n```\n';
  const files = { '.claude/skills/deploy/SKILL.md': skill, 'skills/bad/SKILL.md': '' };
  await codeHost.commit('acme', 'site', files);
  return { env: { RUNYARD_CODE_HOST_URL: codeHost.template } };
};

describeSystem('the published Python client', besideInstalling, (system) => {
  let missing: string | undefined;
  const outcomes = new Map<string, string | null>();

  beforeAll(async () => {
    const client = await installing;
    if (client?.kind === 'missing') missing = client.reason;
    if (client?.kind !== 'ready') return;
    const env = { OZ_API_BASE_URL: `${system.baseUrl()}/api/v1`, WARP_API_KEY: system.key };
    const lines = (await client.start([path.join(folder, 'scenarios.py')], { env })).trim().split('\n');
    for (const { scenario, error } of lines.map((line) => JSON.parse(line))) outcomes.set(scenario, error);
  }, 300_000);
  afterAll(async () => {
    const client = await installing;
    if (client?.kind === 'ready') await client.remove();
  });

  test.for(names)('%s', (name, { skip }) => {
    if (missing !== undefined) skip(missing);
    const error = outcomes.get(name);
    expect(error ?? '').toBe('');
    expect(error, 'the scenario was driven').toBeNull();
  });

  test('creates one run for each call, although the first answer is lost and it repeats the request', async ({
    skip,
  }) => {
    const client = await installing;
    if (client?.kind !== 'ready') return skip(missing);
    const proxy = await openCuttingProxy(system.baseUrl());
    try {
      proxy.loseAnswers(1);
      const env = { OZ_API_BASE_URL: `${proxy.url}/api/v1`, WARP_API_KEY: system.key };
      const prompt = '```sh\necho from a repeat\n```';
      const output = await client.start([path.join(folder, 'repeats.py'), prompt, '2'], { env });
      const { runs } = await system.call<{ runs: { run_id: string; prompt: string }[] }>(
        'GET',
        '/agent/runs?limit=500',
      );
      const created = runs.filter((run) => run.prompt === prompt).map((run) => run.run_id);
      expect(proxy.lost()).toBe(1);
      expect(output.trim().split('\n').sort()).toEqual(created.sort());
      expect(created).toHaveLength(2);
    } finally {
      await proxy.close();
    }
  });
});
