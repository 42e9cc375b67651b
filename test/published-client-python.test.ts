/** Tests that the published Python clients of the API work with this service if only their base URL and key are changed. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openCuttingProxy } from './fakes/cutting-proxy.ts';
import { type FakeGitHost, startFakeGitHost } from './fakes/git-host.ts';
import { describeSystem } from './support/describe-system.ts';
import { installPythonPackages, type PythonPackages } from './support/python-packages.ts';

const folder = path.join(import.meta.dirname, 'python-client');
/** Returns the names in the decorators of a program, such as `@case("name")`. */
const namesIn = (program: string, decorator: string): string[] => {
  const source = readFileSync(path.join(folder, program), 'utf8');
  return [...source.matchAll(new RegExp(`^@${decorator}\\("(.+)"\\)$`, 'gm'))].map(([, name = '']) => name);
};

/** The result of one case (a call of a method). `not_yet`: why this case is known to fail. */
interface Outcome {
  readonly case: string;
  readonly error: string | null;
  readonly not_yet: string | null;
}

/** `uncovered`: methods and parameters without a case. `unknown`: cases for methods that do not exist. */
interface Compared {
  readonly uncovered: string[];
  readonly unknown: string[];
}

let installing: Promise<PythonPackages> | undefined;
let codeHost: FakeGitHost | undefined;
afterAll(() => codeHost?.close());
/**
 * Starts the installation of the packages and starts the code host. The installation continues while the system starts, because both
 * take some seconds.
 */
const besideInstalling = async () => {
  installing = installPythonPackages(path.join(folder, 'requirements.txt'), 10);
  // Ignore a failure here, because the code that later awaits this promise reports the failure.
  installing.catch(() => undefined);
  codeHost = await startFakeGitHost();
  const skill = '---\nname: deploy\ndescription: Deploys.\n---\n```sh\necho deployed\n```\n';
  const files = { '.claude/skills/deploy/SKILL.md': skill, 'skills/bad/SKILL.md': '' };
  await codeHost.commit('acme', 'site', files);
  const ranges = '192.0.2.7/24, 2001:DB8::/32, 192.0.2.0/24';
  return { env: { RUNYARD_CODE_HOST_URL: codeHost.template, RUNYARD_EGRESS_RANGES: ranges } };
};

describeSystem('the published Python clients', besideInstalling, (system) => {
  let missing: string | undefined;
  beforeAll(async () => {
    const packages = await installing;
    if (packages?.kind === 'missing') missing = packages.reason;
  }, 300_000);
  afterAll(async () => {
    const packages = await installing;
    if (packages?.kind === 'ready') await packages.remove();
  });

  /** Runs a program and returns the JSON lines that it prints. */
  const linesOf = async <T>(program: string, ...args: string[]): Promise<T[]> => {
    const packages = await installing;
    if (packages?.kind !== 'ready') return [];
    const url = `${system.baseUrl()}/api/v1`;
    const env = { OZ_API_BASE_URL: url, WARP_BASE_URL: url, WARP_API_KEY: system.key };
    const output = await packages.start([path.join(folder, program), ...args], { env });
    return output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  };

  describe('oz-agent-sdk', () => {
    const outcomes = new Map<string, string | null>();
    beforeAll(async () => {
      const lines = await linesOf<{ scenario: string; error: string | null }>('scenarios.py');
      for (const { scenario, error } of lines) outcomes.set(scenario, error);
    }, 300_000);

    test.for(namesIn('scenarios.py', 'scenario'))('%s', (name, { skip }) => {
      if (missing !== undefined) skip(missing);
      const error = outcomes.get(name);
      expect(error ?? '').toBe('');
      expect(error, 'the scenario was driven').toBeNull();
    });

    test('creates one run for each call, although the answer to the first request is lost and the client repeats this request', async ({
      skip,
    }) => {
      const packages = await installing;
      if (packages?.kind !== 'ready') return skip(missing);
      const proxy = await openCuttingProxy(system.baseUrl());
      try {
        proxy.loseAnswers(1);
        const env = { OZ_API_BASE_URL: `${proxy.url}/api/v1`, WARP_API_KEY: system.key };
        const prompt = '```sh\necho from a repeat\n```';
        const output = await packages.start([path.join(folder, 'repeats.py'), prompt, '2'], { env });
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

  describe('warp-platform-sdk', () => {
    const outcomes = new Map<string, Outcome>();
    let compared: Compared | undefined;
    beforeAll(async () => {
      for (const line of await linesOf<Outcome | Compared>('method_cases.py')) {
        if ('case' in line) outcomes.set(line.case, line);
        else compared = line;
      }
    }, 300_000);

    test.for(namesIn('method_cases.py', 'case'))('gets an answer of the declared type: %s', (name, { skip }) => {
      if (missing !== undefined) skip(missing);
      const outcome = outcomes.get(name);
      if (outcome?.error && outcome.not_yet) skip(outcome.not_yet);
      expect(outcome?.error ?? '').toBe('');
      expect(outcome, 'the case was driven').toBeDefined();
    });

    test('every method of the client has a case, which passes every parameter', ({ skip }) => {
      if (missing !== undefined) skip(missing);
      expect(compared).toEqual({ uncovered: [], unknown: [] });
    });
  });
});
