import { describe, expect, test } from 'vitest';
import {
  agent,
  automation,
  type Files,
  factory,
  factoryYaml,
  faultsOf,
  runner,
  webhook,
  withFiles,
} from '../test/definition-files.ts';

describe('readDefinition refuses, with file, line and column,', () => {
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
      'a misspelt key of the published format',
      factory('integration: []\n'),
      'factory.yaml:8:1: integration is not a known key; did you mean integrations?',
    ],
    [
      'a check in the spelling of the API',
      agent('checks:\n  - name: a\n    command: b\n    fresh: true\n    trusted_paths: [a]\n'),
      'agents/foreman/agent.md:7:5: checks[0].trusted_paths is not a known key; did you mean trustedPaths?',
    ],
    [
      'a check with a trusted path outside of the repository',
      agent('checks:\n  - name: a\n    command: b\n    fresh: true\n    trustedPaths: [../a]\n'),
      'agents/foreman/agent.md:7:20: checks[0].trustedPaths[0] must be a path of the repository such as test/** or package.json: without / at its ends, and without empty parts, `.`, `..`, \\ and the characters [ ] { } !',
    ],
    [
      'a retry after a code that a retry cannot change',
      agent('retry:\n  on: [budget_exceeded]\n  max: 1\n'),
      'agents/foreman/agent.md:4:8: retry.on[0] budget_exceeded cannot be repeated: the retry would fail too',
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
    [
      'a secret twice, once for the setup',
      factory('secrets: [A, {name: A, phase: setup}]\n'),
      'factory.yaml:8:10: secrets must not name a secret twice',
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
      'automations/n/automation.md:4:1: has no prompt: write it as text after the front matter',
    ],
    ['no triggers', automation('enabled: true\n'), 'automations/n/automation.md:2:1: triggers is missing'],
    [
      'an empty list of triggers',
      automation('triggers: []\n'),
      'automations/n/automation.md:2:11: triggers must have at least 1 entry',
    ],
    [
      'enabled as text',
      automation('enabled: yes\ntriggers: [{provider: github, event: push}]\n'),
      'automations/n/automation.md:2:10: enabled must be true or false, and is a text',
    ],
    [
      'a scheme without signature',
      webhook('signatureScheme: stripe\nsecretName: S\n'),
      'webhooks/w.yaml:1:18: signatureScheme is only for authMode: signature; set that mode, or leave this key out',
    ],
    [
      'a signature without scheme',
      webhook('authMode: signature\nsecretName: S\n'),
      'webhooks/w.yaml:1:1: needs signatureScheme, because authMode is signature: standard_webhooks, stripe, github, sentry, pagerduty, vercel, slack, gitlab, bitbucket, jira, linear, shopify, intercom, zendesk, grafana, zoom, hmac',
    ],
    [
      'a header with credentials',
      webhook('secretName: S\ndeliveryIdHeader: Stripe-Signature\n'),
      'webhooks/w.yaml:2:19: deliveryIdHeader must not be a header that carries a credential, because the log shows its value',
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
    [
      'a runner whose image is not an image name',
      runner('platform:\n  linux:\n    dockerImage: Node\n'),
      'runners/r.yaml:3:18: platform.linux.dockerImage "Node" is not the name of a container image: its parts between `/` must consist of lower-case letters and digits, with single `.`, `_` or `-` between them. Write it like `node:24` or `ghcr.io/team/image:tag`',
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
      'agents/b/skills/a/SKILL.md:1:1: the file agents/b/agent.md does not exist',
    ],
    ['a list as file', webhook('- a\n'), 'webhooks/w.yaml:1:1: must be a map of keys, and is a list'],
  ])('%s', (_name, files, fault) => {
    expect(faultsOf(files)).toEqual([fault]);
  });

  test('many faults of several files together, in order', () => {
    const faults = faultsOf({ ...webhook('a: 1\n'), ...factory('x: 1\ny: 2\n') });
    expect(faults.map((each) => each.split(' ')[0])).toEqual([
      'factory.yaml:8:1:',
      'factory.yaml:9:1:',
      'webhooks/w.yaml:1:1:',
      'webhooks/w.yaml:1:1:',
    ]);
  });
});
