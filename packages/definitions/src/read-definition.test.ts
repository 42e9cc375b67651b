import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import { describe, expect, test } from 'vitest';
import {
  agent,
  type Files,
  factory,
  factoryYaml,
  faultsOf,
  linux,
  readFilesOf,
  runner,
  trigger,
  uid,
  webhook,
  withFiles,
} from '../test/definition-files.ts';

describe('readDefinition accepts', () => {
  test.each<[string, Files]>([
    ['the smallest definition', withFiles()],
    ['an agent with empty front matter', withFiles({ 'agents/aux/agent.md': '---\n---\nhelp out\n' })],
    ['an agent without a prompt', withFiles({ 'agents/aux/agent.md': '---\n---\n' })],
    [
      'a harness with a secret',
      agent(
        'harness:\n  type: claude\n  model: opus\n  reasoningLevel: high\n  auth:\n    source: managedSecret\n    secretName: KEY\n',
      ),
    ],
    ['a harness whose credential is cleared', agent('harness:\n  type: codex\n  auth: null\n')],
    ['a worker host that is cleared', agent('workerHost: null\n')],
    [
      'a harness as default',
      withFiles({
        'factory.yaml': factoryYaml.replace('  model: auto', '  harness:\n    type: claude\n    model: opus'),
      }),
    ],
    ['a schedule', trigger('provider: schedule\nevent: cron_fired\nschedule:\n  name: nightly\n  cron: 0 3 * * *')],
    ['a schedule by a word', trigger("provider: schedule\nevent: cron_fired\nschedule:\n  cron: '@daily'")],
    [
      'a webhook with a payload filter',
      trigger(
        `provider: webhook\nevent: received\nfilter:\n  webhook_ids: [${uid}]\n  payload:\n    data:\n      level: [fatal, 1, null, true]`,
      ),
    ],
    [
      'matchers of GitHub',
      trigger(
        'provider: github\nevent: pull_request_opened\nfilter:\n  labels:\n    in: [ready]\n    not_in: [wip]\n  pr_numbers: [12, 13]\n  authors: null\n  paths: {}',
      ),
    ],
    [
      'text in quotes, comments and blocks',
      factory("alias: Demo Factory-1.0_x # the handle\ndescription: |\n  It's *one* & more\n  ---\n"),
    ],
    [
      'skills',
      withFiles({ 'skills/a/SKILL.md': 'x', 'skills/a/run.sh': 'y', 'agents/foreman/skills/b/SKILL.md': 'z' }),
    ],
    [
      'files of other programs',
      withFiles({
        'README.md': '#',
        '.github/workflows/ci.yml': ':',
        'src/agents/x.ts': '',
        'agent/readme.md': '',
        'agents/.DS_Store': '\u0000',
      }),
    ],
    [
      'a byte order mark and lines that end with CR LF',
      withFiles({
        'factory.yaml': `\ufeff${factoryYaml.replaceAll('\n', '\r\n')}`,
        'agents/foreman/agent.md': '\ufeff---\r\nagentType: FOREMAN\r\n---\r\nx\r\n',
      }),
    ],
    [
      'all kinds of webhooks',
      webhook(
        'authMode: signature\nsignatureScheme: stripe\nsecretName: S\ndeliveryIdHeader: X-Run-Id\nenabled: false\n',
      ),
    ],
    [
      'a runner for linux',
      runner(`setupCommands:\n  - corepack enable\ninstanceShape:\n  vcpus: 4\n  memoryGb: 8\n${linux}`),
    ],
    [
      'a path that is no key of JavaScript objects',
      trigger(
        `provider: webhook\nevent: received\nfilter:\n  webhook_ids: [${uid}]\n  payload:\n    constructor:\n      exists: true`,
      ),
    ],
  ])('%s', (_name, files) => {
    expect(faultsOf(files)).toEqual([]);
  });
});

test('the harness claude-code is read as claude, and the fault of a misspelled harness suggests the right name', () => {
  const read = readFilesOf(agent('harness:\n  type: claude-code\n'));
  expect(read).toMatchObject({ ok: true, definition: { agents: [{ harness: { type: 'claude' } }] } });
  for (const type of presetTypes)
    expect(faultsOf(agent(`harness:\n  type: ${type.slice(0, -1)}\n`)).join()).toMatch(
      type.length > 4 ? `did you mean ${type}?` : '',
    );
});

test('triggers of other providers are kept, and a notice says that they never fire', () => {
  const read = readFilesOf(trigger('provider: githb\nevent: issue_created\nfilter:\n  a: [b]'));
  expect(read).toMatchObject({ ok: true, definition: { automations: [{ triggers: [{ provider: 'githb' }] }] } });
  expect(read.notices).toEqual([
    {
      file: 'automations/n/automation.md',
      line: 3,
      column: 15,
      message: 'the provider githb is not available on this service, so the trigger never fires; did you mean github?',
      suggestion: 'github',
    },
  ]);
});

test('each key that only the public service supports is kept, and a notice reports its place in the file', () => {
  const top =
    'credentialStrategy: CREATOR\nintegrations: [{type: jira}]\ncloudProviders: {aws: {roleArn: r}}\nproviders: 1\n';
  const inFactory = readFilesOf(factory(top));
  expect(inFactory.notices.map(({ line, message }) => `${line} ${message.split(' ')[0]}`)).toEqual([
    '8 credentialStrategy',
    '9 integrations',
    '10 cloudProviders',
    '11 providers',
  ]);
  expect(inFactory).toMatchObject({ definition: { factory: { integrations: [{ type: 'jira' }] } } });
  const harness = 'harness:\n  type: codex\n  auth:\n    source: workerEnvironment\n';
  const inAgent = readFilesOf(agent(`credentialStrategy: CREATOR\n${harness}`));
  expect(inAgent.notices.map(({ message }) => message.split(' ')[0])).toEqual(['credentialStrategy', 'harness.auth']);
  expect(readFilesOf(agent('harness:\n  type: codex\n  auth: null\n')).notices).toEqual([]);
});

test('a notice says that a filter never matches if GitHub does not send the value that the filter checks', () => {
  const read = readFilesOf(trigger('provider: github\nevent: pull_request_opened\nfilter:\n  paths: [src/**]'));
  expect(read.ok && read.notices).toEqual([
    expect.objectContaining({ line: 6, column: 14, message: expect.stringContaining('does not have paths') }),
  ]);
});

test('readDefinition fills in defaults and sorts webhooks by name', () => {
  const read = readFilesOf({
    ...webhook('secretName: S\n'),
    ...withFiles({ 'webhooks/a.yaml': 'secretName: T\n' }),
    'webhooks/w.yaml': 'secretName: S\n',
  });
  expect(read).toMatchObject({
    ok: true,
    definition: {
      agents: [{ name: 'foreman', agentType: 'FOREMAN', prompt: 'Route the work.' }],
      webhooks: [
        { name: 'a', authMode: 'token', enabled: true, secretName: 'T' },
        { name: 'w', secretName: 'S' },
      ],
    },
  });
});

test('readDefinition returns the positions of members, for faults that only the service can find', () => {
  const read = readFilesOf(webhook('authMode: token\nsecretName: S\n'));
  expect(read.ok && read.locate('webhooks/w.yaml', ['secretName'])).toEqual({ line: 2, column: 13 });
});
