/** Tests definitions that have the same keys as the published examples of the public service, but different texts. */
import type { FactoryNotice } from '@runyard/contract/factories/factory-definitions';
import { beforeEach, describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { type Files, testDefinitions } from '../../../../test/definitions.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { apply, faultsOf, stored, open } = testDefinitions(service);
let path = '';
beforeEach(async () => {
  path = await open();
});

const root = (more: string, model = 'auto') =>
  `schemaVersion: v1alpha1\nname: Shop\nalias: Shop Crew\nrepositories:\n  - owner: acme\n    name: shop\n${more}agentDefaults:\n  model: ${model}\n  runner: small\n`;
const agent = (type: string, more = '') => `---\ndescription: Does its part\nagentType: ${type}\n${more}---\nWork.\n`;
const automation = (triggers: string) => `---\ntriggers:\n${triggers}---\nLook at it.\n`;
const trigger = (provider: string, event: string, filter = '') =>
  `  - provider: ${provider}\n    event: ${event}\n${filter && `    filter: ${filter}\n`}`;
const small =
  'instanceShape: {vcpus: 2, memoryGb: 4}\nplatform: {os: linux, arch: x86_64, linux: {dockerImage: ubuntu}}\n';
const repos = 'repos: [acme/shop]';
const auth = (secret: string) => `  auth: {source: managedSecret, secretName: ${secret}}\n`;

const examples: Readonly<Record<string, Files>> = {
  'the default agents': {
    'factory.yaml': root('integrations: [{type: slack}, {type: linear}]\n', 'auto-genius'),
    'agents/lead/agent.md': agent('FOREMAN', 'model: claude-5-opus-high\n'),
    'agents/triage/agent.md': agent('TRIAGE', 'model: grok-4-5-high\n'),
    'agents/review/agent.md': agent('REVIEW', 'model: gpt-5-6-terra-high\n'),
    'runners/small.yaml': small,
  },
  'one repository': {
    'factory.yaml': root(''),
    'agents/lead/agent.md': agent('FOREMAN'),
    'agents/builder/agent.md': agent('IMPLEMENT'),
    'automations/labelled/automation.md': automation(trigger('github', 'issue_labeled', `{${repos}, labels: [ready]}`)),
    'runners/small.yaml': small,
  },
  'from an issue to a pull request': {
    'factory.yaml': root('credentialStrategy: EXECUTOR\nintegrations:\n  - type: slack\n  - type: linear\n'),
    'agents/lead/agent.md': agent('MAIN'),
    'agents/builder/agent.md': agent('IMPLEMENT', 'runner: small\n'),
    'agents/builder/skills/tests/SKILL.md': '---\nname: tests\ndescription: Runs tests\n---\nRun them.\n',
    'agents/app/agent.md': agent('CUSTOM', 'runner: mac\n'),
    'agents/triage/agent.md': agent('TRIAGE', 'model: auto-efficient\n'),
    'automations/asked/automation.md': automation(
      trigger('github', 'issue_mentioned', `{${repos}, mentioned: [crew], labels: ["factory:Shop"]}`) +
        trigger('github', 'pull_request_assigned', `{${repos}, assignees: [crew]}`),
    ),
    'automations/merged/automation.md': automation(
      trigger('github', 'pull_request_merged', `{${repos}}`) + trigger('github', 'pull_request_closed', `{${repos}}`),
    ),
    'automations/chat/automation.md': automation(trigger('slack', 'app_mention') + trigger('slack', 'message_dm')),
    'automations/tickets/automation.md': automation(trigger('linear', 'agent_session_created')),
    'runners/small.yaml': small,
    'runners/mac.yaml':
      'instanceShape: {vcpus: 6, memoryGb: 14}\nplatform: {os: macos, arch: aarch64, mac: {version: "26"}}\n',
    'scorers/quality/scorer.md': '---\nagents: [builder]\nmodel: claude-4-5-haiku\n---\nJudge.\n',
    'skills/habits/SKILL.md': '---\nname: habits\ndescription: Habits of the team\n---\nFollow them.\n',
  },
  'a harness for each agent': {
    'factory.yaml': root(''),
    'agents/lead/agent.md': agent('FOREMAN'),
    'agents/builder/agent.md': agent(
      'IMPLEMENT',
      `runner: arm\nharness:\n  type: claude\n  model: opus\n${auth('ANTHROPIC_API_KEY')}`,
    ),
    'agents/reviewer/agent.md': agent(
      'REVIEW',
      `harness:\n  type: codex\n  model: gpt-5.3-codex\n  reasoningLevel: high\n${auth('OPENAI_API_KEY')}`,
    ),
    'automations/labelled/automation.md': automation(trigger('github', 'issue_labeled', `{${repos}, labels: [ready]}`)),
    'runners/small.yaml': small,
    'runners/arm.yaml': 'platform: {os: linux, arch: aarch64, linux: {dockerImage: ubuntu}}\n',
  },
  'reviews only': {
    'factory.yaml': root(''),
    'agents/reviewer/agent.md': agent('FOREMAN'),
    'automations/opened/automation.md': automation(
      trigger('github', 'pull_request_opened', `{${repos}, base_branches: [main], labels: {not_in: [draft]}}`),
    ),
    'runners/small.yaml': small,
  },
  'checks of a user interface': {
    'factory.yaml': root(''),
    'agents/looker/agent.md': agent('FOREMAN'),
    'automations/issue/automation.md': automation(trigger('github', 'issue_labeled', `{${repos}, labels: [look]}`)),
    'automations/pull/automation.md': automation(
      trigger('github', 'pull_request_labeled', `{${repos}, labels: [look]}`),
    ),
    'runners/small.yaml': `setupCommands: [apt-get update]\n${small}`,
  },
  'common automations': {
    'factory.yaml': root('integrations:\n  - type: slack\n'),
    'agents/keeper/agent.md': agent('FOREMAN'),
    'automations/broken/automation.md': automation(
      trigger('github', 'workflow_run_completed', `{${repos}, branches: [main], conclusions: [failure]}`),
    ),
    'automations/pages/automation.md': automation(
      trigger('github', 'push', `{${repos}, branches: [main], paths: ["api/**"]}`),
    ),
    'automations/chat/automation.md': automation(
      trigger('slack', 'reaction_added', '{channels: [intake], emojis: [ticket]}'),
    ),
    'automations/weekly/automation.md': automation(
      `${trigger('schedule', 'cron_fired')}    schedule: {name: weekly, cron: "0 9 * * 1"}\n`,
    ),
    'runners/small.yaml': small,
  },
  'a worker of the team': {
    'factory.yaml': `${root('')}  workerHost: shop-worker\n`,
    'agents/lead/agent.md': agent('FOREMAN'),
    'agents/builder/agent.md': agent('IMPLEMENT'),
    'runners/small.yaml': small,
  },
};

/** Returns the file and the first words of each notice. */
const shown = (notices: readonly z.infer<typeof FactoryNotice>[]) =>
  notices.map(({ file, message }) => `${file}: ${/^.*? (?:is|are) not available/.exec(message)?.[0] ?? message}`);

const isAbout = (text: string) => expect.stringContaining(text);
const notAvailable: Readonly<Record<string, readonly unknown[]>> = {
  'the default agents': [
    isAbout('agents/lead/agent.md: model: unknown model "claude-5-opus-high"'),
    isAbout('agents/review/agent.md: model: unknown model "gpt-5-6-terra-high"'),
    isAbout('agents/triage/agent.md: model: unknown model "grok-4-5-high"'),
    'factory.yaml: integrations is not available',
    isAbout('factory.yaml: agentDefaults.model: unknown model "auto-genius"'),
  ],
  'from an issue to a pull request': [
    isAbout('agents/triage/agent.md: model: unknown model "auto-efficient"'),
    'automations/chat/automation.md: the provider slack is not available',
    'automations/chat/automation.md: the provider slack is not available',
    'automations/tickets/automation.md: the provider linear is not available',
    'factory.yaml: integrations is not available',
    'runners/mac.yaml: macos is not available',
    'scorers/quality/scorer.md: scorers are not available',
  ],
  'a harness for each agent': [
    isAbout('agents/builder/agent.md: harness.model: model anthropic/claude-opus-5-5: no key set'),
    'agents/builder/agent.md: harness.auth is not available',
    isAbout('agents/reviewer/agent.md: harness.model: model openai/gpt-5.3-codex: no key set'),
    'agents/reviewer/agent.md: harness.auth is not available',
    'runners/arm.yaml: aarch64 is not available',
  ],
  'common automations': [
    'automations/chat/automation.md: the provider slack is not available',
    'factory.yaml: integrations is not available',
  ],
};

describe('a definition as published for the public service', () => {
  test.each(Object.keys(examples))('applies, is stored and reports which parts are not available: %s', async (name) => {
    const files = examples[name] ?? {};
    const applied = await apply(files);
    expect(shown(applied.notices)).toEqual(notAvailable[name] ?? []);
    const kept = await stored();
    expect(kept).toMatchObject({ drift: [], notices: applied.notices });
    expect(Object.fromEntries(kept.files.map((file) => [file.path, file.content]))).toEqual(files);
    expect((await apply(files)).changes).toEqual([]);
  });

  test('starts no run with a model or machine that is not available, and names the available models', async () => {
    const dispatch = () => service.problem(400, 'POST', `${path}/runs`, { body: { prompt: 'Go.' } });
    const applied = await apply(examples['the default agents'] ?? {});
    expect(applied.notices[0]?.message).toMatch(/Runs with it are refused\. This service offers runbook$/);
    const problem = await dispatch();
    expect(problem.errors?.[0]).toMatchObject({ message: isAbout('unknown model "claude-5-opus-high"') });
    const onArm = {
      ...examples['a harness for each agent'],
      'agents/lead/agent.md': agent('FOREMAN', 'runner: arm\n'),
    };
    await apply(onArm);
    expect((await dispatch()).errors).toMatchObject([{ path: 'config.runner_config.arch' }]);
  });

  test('shows in its plan the change of a key that is not available', async () => {
    const files = examples['common automations'] ?? {};
    await apply(files);
    const { changes } = await apply({ ...files, 'factory.yaml': root('') });
    expect(changes).toMatchObject([{ kind: 'factory', members: [{ member: 'integrations' }] }]);
  });

  test('is refused if a key or model is misspelt', async () => {
    const files = examples['one repository'] ?? {};
    expect(await faultsOf({ ...files, 'factory.yaml': root('integration: []\n') })).toEqual([
      'factory.yaml:7: integration is not a known key; did you mean integrations?',
    ]);
    const misspelt = { ...files, 'agents/builder/agent.md': agent('IMPLEMENT', 'model: claude-opsu-5-5\n') };
    expect(await faultsOf(misspelt)).toEqual([isAbout('agents/builder/agent.md:4: unknown model "claude-opsu-5-5"')]);
  });
});

describe('a run', () => {
  test.each([
    [400, { os: 'macos' }, undefined],
    [400, { docker_image: 'ubuntu', arch: 'aarch64' }, undefined],
    [400, { docker_image: 'ubuntu', arch: 'aarch64' }, 'warp'],
    [200, { docker_image: 'ubuntu', arch: 'aarch64' }, 'arm-worker'],
  ])('answers %i to the runner %j on the worker %s', async (status, runner_config, worker_host) => {
    const config = { runner_config, ...(worker_host === undefined ? {} : { worker_host }) };
    const answer = await service.request('POST', '/agent/runs', { body: { prompt: 'Go.', config } });
    expect(answer.status).toBe(status);
  });
});
