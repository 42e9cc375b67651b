// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of definition files have this form
import { describe, expect, test } from 'vitest';
import { factoryYaml, foreman } from '../test/definition-files.ts';
import { readDefinition } from './read-definition.ts';

const declared = `variables:
  model: {default: auto}
  host: {}
  cpus: {default: 2}
  on: {type: boolean, default: true}
`;
const runner =
  'instanceShape: {vcpus: "${{ variables.cpus }}", memoryGb: 4}\nplatform: {linux: {dockerImage: "node:24"}}\n';

type Values = Readonly<Record<string, string | number | boolean>>;

/** Reads a definition with the variables, the given changes of its files, and the given values. */
function read(files: Readonly<Record<string, string>>, given: Values = { host: 'w' }, kept: Values = {}) {
  const all = {
    'factory.yaml': factoryYaml.replace(
      'model: auto',
      'model: ${{ variables.model }}\n  workerHost: ${{ variables.host }}',
    ),
    'agents/foreman/agent.md': foreman,
    'variables.yaml': declared,
    ...files,
  };
  return readDefinition(
    Object.entries(all).map(([path, content]) => ({ path, content })),
    { given, kept },
  );
}

function definitionOf(...parameters: Parameters<typeof read>) {
  const found = read(...parameters);
  if (!found.ok) throw new Error(JSON.stringify(found.faults));
  return found.definition;
}

function faultsOf(...parameters: Parameters<typeof read>): string[] {
  const found = read(...parameters);
  return found.ok ? [] : found.faults.map(({ file, line, message }) => `${file}:${line}: ${message}`);
}

test('a variable has the given value, else the value that an earlier apply was given, else its default', () => {
  const defaults = (given: Values, kept: Values) => definitionOf({}, given, kept).factory.agentDefaults;
  expect(defaults({ host: 'a' }, {})).toEqual({ model: 'auto', workerHost: 'a' });
  expect(defaults({}, { host: 'b', model: 'm', gone: 1 })).toEqual({ model: 'm', workerHost: 'b' });
  expect(defaults({ model: 'n' }, { host: 'b', model: 'm' })).toEqual({ model: 'n', workerHost: 'b' });
});

test('a value has the declared type, and a text is converted to it', () => {
  const file = { 'runners/r.yaml': runner };
  expect(definitionOf(file, { host: 'w', cpus: '8' }).runners[0]?.instanceShape?.vcpus).toBe(8);
  expect(faultsOf(file, { host: 'w', cpus: 'many' })).toEqual([
    'variables.yaml:1: the value of the variable cpus must be a number',
  ]);
  expect(faultsOf(file, { host: 'w', on: 'yes' })).toEqual([
    'variables.yaml:1: the value of the variable on must be a boolean',
  ]);
});

test('a variable without a value, and a value without a variable, are faults', () => {
  expect(faultsOf({}, {})).toEqual([expect.stringMatching(/the variable host has no default and no value/)]);
  expect(faultsOf({}, { host: 'w', modle: 'm' })).toEqual([
    expect.stringMatching(/does not declare the variable modle, .*did you mean model/),
  ]);
});

describe('a hostile value', () => {
  test.each([
    'a: b',
    '&a x',
    '*a',
    '!x y',
    '[1, 2]',
    '{a: 1}',
    '- x',
    '# x',
    '"',
    "'",
    '|',
    '<<: *x',
    '${{ variables.host }}',
  ])('stays the text %s, and is never read as YAML', (value) => {
    expect(definitionOf({}, { host: value }).factory.agentDefaults.workerHost).toBe(value);
  });

  test.each([
    ['webhooks/ci.yaml', 'secretName: ${{ variables.host }}\n', 'secretName takes no variables'],
    [
      'agents/foreman/agent.md',
      '---\nagentType: FOREMAN\nsecrets: ["${{ variables.host }}"]\n---\n',
      'secrets takes no variables',
    ],
    ['environments/e.yaml', 'secrets: [{name: "${{ variables.host }}"}]\n', 'secrets takes no variables'],
    [
      'agents/foreman/agent.md',
      '---\nagentType: FOREMAN\nharness: {type: claude, model: m, auth: {source: managedSecret, secretName: "${{ variables.host }}"}}\n---\n',
      'auth takes no variables',
    ],
  ])('never names a secret in %s', (path, content, message) => {
    expect(faultsOf({ [path]: content })).toEqual([expect.stringContaining(message)]);
  });

  test('never becomes a key, a part of a text, or a part of a prompt', () => {
    expect(faultsOf({ 'environments/e.yaml': 'description: "at ${{ variables.host }} now"\n' })).toEqual([
      expect.stringContaining('a variable is a whole value'),
    ]);
    expect(faultsOf({ 'environments/e.yaml': '"${{ variables.host }}": x\n' })).toEqual([
      expect.stringContaining('is not a known key'),
    ]);
    const body = 'Say ${{ variables.host }}.';
    expect(
      definitionOf({ 'agents/foreman/agent.md': `---\nagentType: FOREMAN\n---\n${body}\n` }).agents[0]?.prompt,
    ).toBe(body);
  });

  test('a reference to a variable that no file declares is a fault', () => {
    expect(faultsOf({ 'environments/e.yaml': 'description: ${{ variables.none }}\n' })).toEqual([
      'environments/e.yaml:1: there is no variable none in variables.yaml, where each variable is declared',
    ]);
  });
});

test.each(['api_key', 'dbPassword', 'GITHUB_TOKEN', 'client_secret'])(
  'a variable cannot be named as a secret: %s',
  (name) => {
    expect(faultsOf({ 'variables.yaml': `variables:\n  ${name}: {}\n` })).toEqual([
      expect.stringContaining('everyone in the team can read variables'),
    ]);
  },
);
