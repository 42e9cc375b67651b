import { describe, expect, test } from 'vitest';
import { type Files, factoryYaml, faultsOf, readFilesOf, withFiles } from '../../test/definition-files.ts';

const agent = (matter: string): Files =>
  withFiles({ 'agents/foreman/agent.md': `---\nagentType: MAIN\n${matter}---\nx\n` });
const automation = (matter: string, body = 'Do it.'): Files =>
  withFiles({ 'automations/n/automation.md': `---\n${matter}---\n${body}\n` });
const trigger = (text: string): Files =>
  automation(
    `triggers:\n${text
      .split('\n')
      .map((line, at) => `${at === 0 ? '  - ' : '    '}${line}`)
      .join('\n')}\n`,
  );
const webhook = (text: string): Files => withFiles({ 'webhooks/w.yaml': text });
const runner = (text: string): Files => withFiles({ 'runners/r.yaml': text });
const factory = (more: string): Files => withFiles({ 'factory.yaml': factoryYaml + more });
const uid = 'abcdefghij0123456789AB';
const linux = 'platform:\n  linux:\n    dockerImage: ubuntu:24.04\n';

describe('takes', () => {
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

describe('refuses, with file, line and column,', () => {
  test.each<[string, Files, string]>([
    [
      'a misspelt key',
      factory('descripton: x\n'),
      'factory.yaml:8:1: descripton is not a known key; did you mean description?',
    ],
    [
      'a key in another case',
      webhook('secretname: S\nsecretName: S\n'),
      'webhooks/w.yaml:1:1: secretname is not a known key; did you mean secretName?',
    ],
    [
      'a nested unknown key',
      agent('harness:\n  type: codex\n  modell: x\n'),
      'agents/foreman/agent.md:5:3: harness.modell is not a known key; did you mean model?',
    ],
    [
      'a key of the published format',
      factory('integrations: []\n'),
      'factory.yaml:8:1: integrations is not available: this service has no integrations; send events to a webhook, and leave it out',
    ],
    ['a missing key', webhook('authMode: token\n'), 'webhooks/w.yaml:1:1: secretName is missing'],
    [
      'a missing file',
      { 'agents/foreman/agent.md': '---\nagentType: MAIN\n---\n' },
      'factory.yaml:1:1: is missing: every factory has this file',
    ],
    [
      'another version',
      withFiles({ 'factory.yaml': factoryYaml.replace('v1alpha1', 'v1') }),
      'factory.yaml:1:16: schemaVersion must be v1alpha1, and is "v1"',
    ],
    [
      'a number in place of text',
      factory('alias: 12\n'),
      'factory.yaml:8:8: alias must be a text, and is a number; put it in quotes',
    ],
    [
      'a wrong role',
      withFiles({ 'agents/a/agent.md': '---\nagentType: REVEIW\n---\n' }),
      'agents/a/agent.md:2:12: agentType must be one of CUSTOM, FOREMAN, MAIN, TRIAGE, SPEC, IMPLEMENT, REVIEW, VERIFY; did you mean REVIEW?',
    ],
    [
      'two foremen',
      withFiles({
        'agents/b/agent.md': '---\nagentType: MAIN\n---\n',
        'agents/foreman/agent.md': '---\nagentType: FOREMAN\n---\n',
      }),
      'agents/foreman/agent.md:2:12: agents/b/agent.md is the foreman already: a factory has exactly one',
    ],
    [
      'no foreman',
      { 'factory.yaml': factoryYaml, 'agents/a/agent.md': '---\nagentType: REVIEW\n---\n' },
      'factory.yaml:1:1: needs one agent with agentType: FOREMAN, such as agents/foreman/agent.md',
    ],
    [
      'model and harness',
      agent('model: auto\nharness:\n  type: codex\n'),
      'agents/foreman/agent.md:5:3: harness excludes model; keep one of the two',
    ],
    [
      'neither of them as default',
      withFiles({ 'factory.yaml': factoryYaml.replace('model: auto', 'workerHost: w') }),
      'factory.yaml:7:3: agentDefaults needs model or harness',
    ],
    [
      'an empty harness',
      agent('harness: {}\n'),
      'agents/foreman/agent.md:3:10: harness needs one of type, model, reasoningLevel and auth',
    ],
    [
      'a misspelt harness',
      agent('harness:\n  type: cluade\n'),
      'agents/foreman/agent.md:4:9: harness.type is not a known harness; did you mean claude?',
    ],
    [
      'a credential of the built-in harness',
      agent('harness:\n  type: oz\n  reasoningLevel: high\n'),
      'agents/foreman/agent.md:5:19: harness.reasoningLevel is not for the harness oz; leave it out',
    ],
    [
      'a secret that is not named',
      agent('harness:\n  type: codex\n  auth:\n    source: managedSecret\n'),
      'agents/foreman/agent.md:6:5: harness.auth needs secretName, because source is managedSecret',
    ],
    ['a secret twice', factory('secrets: [A, A]\n'), 'factory.yaml:8:10: secrets must not name a secret twice'],
    [
      'a repository twice',
      withFiles({
        'factory.yaml': factoryYaml.replace('agentDefaults', '  - {owner: ACME, name: payments}\nagentDefaults'),
      }),
      'factory.yaml:6:5: repositories[1] repeats ACME/payments',
    ],
    [
      'another member of an MCP server',
      factory('mcpServers:\n  gh: {warpId: m, command: x}\n'),
      'factory.yaml:9:19: mcpServers.gh.command is not a known key; known keys: warpId',
    ],
    [
      'a long alias',
      factory(`alias: ${'a'.repeat(61)}\n`),
      'factory.yaml:8:8: alias must be 1 to 60 letters, digits, spaces, dots, underscores and hyphens',
    ],
    [
      'an unknown agent',
      automation('agent: formean\ntriggers: [{provider: github, event: push}]\n'),
      'automations/n/automation.md:2:8: agent: there is no agents/formean/agent.md; did you mean foreman?',
    ],
    [
      'an unknown runner',
      agent('runner: linux\n'),
      'agents/foreman/agent.md:3:9: runner: there is no runners/linux.yaml',
    ],
    [
      'an automation without a prompt',
      automation('triggers: [{provider: github, event: push}]\n', ''),
      'automations/n/automation.md:4:1: needs the prompt of its runs as text behind the front matter',
    ],
    ['no triggers', automation('enabled: true\n'), 'automations/n/automation.md:2:1: triggers is missing'],
    [
      'an empty list of triggers',
      automation('triggers: []\n'),
      'automations/n/automation.md:2:11: triggers must have at least 1 entries',
    ],
    [
      'enabled as text',
      automation('enabled: yes\ntriggers: [{provider: github, event: push}]\n'),
      'automations/n/automation.md:2:10: enabled must be true or false, and is a text',
    ],
    [
      'an unknown event',
      trigger('provider: github\nevent: pull_request_open'),
      'automations/n/automation.md:4:12: triggers[0].event is no event of github; did you mean pull_request_opened?',
    ],
    [
      'a filter that the event does not take',
      trigger('provider: github\nevent: push\nfilter:\n  base_branches: [main]'),
      'automations/n/automation.md:6:7: triggers[0].filter.base_branches is not a known key; known keys: repos, branches, paths',
    ],
    [
      'a filter in camel case',
      trigger('provider: github\nevent: pull_request_opened\nfilter:\n  baseBranches: [main]'),
      'automations/n/automation.md:6:7: triggers[0].filter.baseBranches is not a known key; did you mean base_branches?',
    ],
    [
      'a value on both sides of a matcher',
      trigger('provider: github\nevent: push\nfilter:\n  repos: {in: [a/b], not_in: [A/B]}'),
      'automations/n/automation.md:6:20: triggers[0].filter.repos.in[0] is in not_in too, so it can never match',
    ],
    [
      'a scalar as matcher',
      trigger('provider: github\nevent: push\nfilter:\n  branches: main'),
      'automations/n/automation.md:6:17: triggers[0].filter.branches must be a list of values, or an object with in and not_in',
    ],
    [
      'text as number of a pull request',
      trigger('provider: github\nevent: pull_request_opened\nfilter:\n  pr_numbers: ["12"]'),
      'automations/n/automation.md:6:20: triggers[0].filter.pr_numbers[0] must be a number, and is a text',
    ],
    [
      'a name in place of a UID',
      trigger('provider: webhook\nevent: received\nfilter:\n  webhook_ids: [stripe]'),
      'automations/n/automation.md:6:21: triggers[0].filter.webhook_ids[0] must be exactly 22 characters of [A-Za-z0-9]',
    ],
    [
      'a webhook trigger without UIDs',
      trigger('provider: webhook\nevent: received'),
      'automations/n/automation.md:3:5: triggers[0].filter is missing',
    ],
    [
      'a payload filter with a scalar',
      trigger(`provider: webhook\nevent: received\nfilter:\n  webhook_ids: [${uid}]\n  payload:\n    status: failed`),
      'automations/n/automation.md:8:17: triggers[0].filter.payload.status must be an array of values or an object; to match one value, write ["failed"]',
    ],
    [
      'a schedule on another trigger',
      trigger('provider: github\nevent: push\nschedule:\n  cron: 0 3 * * *'),
      'automations/n/automation.md:5:5: triggers[0].schedule is not a known key; known keys: provider, event, filter',
    ],
    [
      'a schedule with seconds',
      trigger('provider: schedule\nevent: cron_fired\nschedule:\n  cron: 0 0 3 * * *'),
      'automations/n/automation.md:6:13: triggers[0].schedule.cron must have five fields (minute, hour, day of the month, month, day of the week), not 6',
    ],
    [
      'a schedule that never fires',
      trigger('provider: schedule\nevent: cron_fired\nschedule:\n  cron: 0 0 31 2 *'),
      'automations/n/automation.md:6:13: triggers[0].schedule.cron never fires: no month has such a day',
    ],
    [
      'two schedules without a name',
      automation(
        'triggers:\n  - {provider: schedule, event: cron_fired, schedule: {cron: "@daily"}}\n  - {provider: schedule, event: cron_fired, schedule: {cron: "@hourly"}}\n',
      ),
      'automations/n/automation.md:4:55: triggers[1].schedule needs a name, because another schedule of the automation has none',
    ],
    [
      'a scheme without signature',
      webhook('signatureScheme: stripe\nsecretName: S\n'),
      'webhooks/w.yaml:1:18: signatureScheme is only for authMode: signature; set that, or leave this out',
    ],
    [
      'a signature without scheme',
      webhook('authMode: signature\nsecretName: S\n'),
      'webhooks/w.yaml:1:1: needs signatureScheme, because authMode is signature: standard_webhooks, stripe, github, sentry, pagerduty, vercel, slack, gitlab',
    ],
    [
      'a header with credentials',
      webhook('secretName: S\ndeliveryIdHeader: Stripe-Signature\n'),
      'webhooks/w.yaml:2:19: deliveryIdHeader must not be a header that carries credentials or signatures',
    ],
    [
      'line breaks in a header',
      webhook('secretName: S\ndeliveryIdHeader: "X-A\\r\\nB: c"\n'),
      'webhooks/w.yaml:2:19: deliveryIdHeader must be the name of an HTTP header, at most 100 characters',
    ],
    [
      'a linux runner without image',
      runner('platform:\n  os: linux\n'),
      'runners/r.yaml:2:3: platform needs linux.dockerImage, because os is linux',
    ],
    ['a runner without platform', runner('description: x\n'), 'runners/r.yaml:1:1: platform is missing'],
    [
      'a flat automation',
      withFiles({ 'automations/flat.md': '---\n---\n' }),
      'automations/flat.md:1:1: is no file of a definition: an automation is automations/<name>/automation.md',
    ],
    [
      'another suffix',
      withFiles({ 'webhooks/w.yml': '' }),
      'webhooks/w.yml:1:1: is no file of a definition: a webhook is webhooks/<name>.yaml',
    ],
    [
      'a misspelt folder',
      withFiles({ 'webhook/w.yaml': '' }),
      'webhook/w.yaml:1:1: is in the folder webhook; did you mean webhooks?',
    ],
    ['another name of the root file', withFiles({ 'factory.yml': '' }), 'factory.yml:1:1: must be named factory.yaml'],
    [
      'a skill without SKILL.md',
      withFiles({ 'skills/a/x.sh': '' }),
      'skills/a/x.sh:1:1: the skill skills/a has no SKILL.md',
    ],
    [
      'skills of an agent that is not there',
      withFiles({ 'agents/b/skills/a/SKILL.md': '' }),
      'agents/b/skills/a/SKILL.md:1:1: there is no agents/b/agent.md',
    ],
    ['a list as file', webhook('- a\n'), 'webhooks/w.yaml:1:1: must be a map of keys, and is a list'],
  ])('%s', (_name, files, fault) => {
    expect(faultsOf(files)).toEqual([fault]);
  });

  test('many faults of several files at once, in their order', () => {
    const faults = faultsOf({ ...webhook('a: 1\n'), ...factory('x: 1\ny: 2\n') });
    expect(faults.map((each) => each.split(' ')[0])).toEqual([
      'factory.yaml:8:1:',
      'factory.yaml:9:1:',
      'webhooks/w.yaml:1:1:',
      'webhooks/w.yaml:1:1:',
    ]);
  });
});

test('keeps triggers of other providers, and says that they never fire', () => {
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

test('fills in defaults and orders by name', () => {
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

test('locates members for faults that only the service finds', () => {
  const read = readFilesOf(webhook('authMode: token\nsecretName: S\n'));
  expect(read.ok && read.locate('webhooks/w.yaml', ['secretName'])).toEqual({ line: 2, column: 13 });
});
