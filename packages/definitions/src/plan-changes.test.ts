import { expect, test } from 'vitest';
import { type Files, factoryYaml, readFilesOf, withFiles } from '../test/definition-files.ts';
import { planChanges } from './plan-changes.ts';

function definition(files: Files = {}) {
  const read = readFilesOf(withFiles(files));
  if (!read.ok) throw new Error(JSON.stringify(read.faults));
  return read.definition;
}

const automation = (text: string): Files => ({ 'automations/n/automation.md': `---\n${text}---\nDo it.\n` });
const push = (more = ''): Files => automation(`triggers: [{provider: github, event: push${more}}]\n`);

test('the plan of a new factory creates everything in the definition of the factory', () => {
  const { changes, refusals } = planChanges(undefined, definition({ ...push(), 'skills/a/SKILL.md': 'x' }));
  expect(refusals).toEqual([]);
  expect(changes).toEqual([
    { kind: 'factory', name: 'factory', action: 'create' },
    { kind: 'agent', name: 'foreman', action: 'create' },
    { kind: 'automation', name: 'n', action: 'create' },
    { kind: 'skill', name: 'skills/a/SKILL.md', action: 'create' },
  ]);
});

test('the plan is empty if two definitions differ only in form, such as the order of keys, explicit defaults, MAIN for FOREMAN or blank lines', () => {
  const one = definition({
    ...push(', filter: {repos: [a/b], branches: [main]}'),
    'webhooks/w.yaml': 'secretName: S\n',
  });
  const other = definition({
    ...push(', filter: {branches: {in: [main]}, repos: [a/b], paths: []}'),
    'webhooks/w.yaml': 'enabled: true\nauthMode: token\nsecretName: "S"\n',
    'agents/foreman/agent.md': '---\nagentType: MAIN\nrunner: null\n---\n\n\nRoute the work.\n\n',
  });
  expect(planChanges(one, other)).toEqual({ changes: [], refusals: [] });
});

test('the plan shows the old and the new value of each member that differs', () => {
  const next = definition({
    'factory.yaml': factoryYaml.replace('model: auto', 'harness: {type: claude, model: opus}').replace('demo', 'new'),
    'agents/foreman/agent.md': '---\nagentType: FOREMAN\nworkerHost: null\n---\nRoute it.\n',
  });
  expect(planChanges(definition(), next).changes).toEqual([
    {
      kind: 'factory',
      name: 'factory',
      action: 'change',
      members: [
        { member: 'agentDefaults.harness', after: { type: 'claude', model: 'opus' } },
        { member: 'agentDefaults.model', before: 'auto' },
        { member: 'name', before: 'demo', after: 'new' },
      ],
    },
    {
      kind: 'agent',
      name: 'foreman',
      action: 'change',
      members: [
        { member: 'prompt', before: 'Route the work.', after: 'Route it.' },
        { member: 'workerHost', after: null },
      ],
    },
  ]);
});

test('the plan shows a changed list as one change, with the whole old list and the whole new list', () => {
  const { changes } = planChanges(definition(push()), definition(push(', filter: {repos: [a/b]}')));
  expect(changes).toEqual([
    expect.objectContaining({ members: [expect.objectContaining({ member: 'triggers', before: expect.any(Array) })] }),
  ]);
});

test('the plan refuses to rename a webhook, but can replace a webhook by a webhook with a different secret', () => {
  const old = definition({ 'webhooks/old.yaml': 'secretName: S\n' });
  const renamed = planChanges(old, definition({ 'webhooks/new.yaml': 'secretName: S\nenabled: false\n' }));
  expect(renamed.refusals).toEqual([
    { kind: 'webhook', name: 'new', message: expect.stringContaining('the webhook old cannot be renamed to new') },
  ]);
  const replaced = planChanges(old, definition({ 'webhooks/new.yaml': 'secretName: T\n' }));
  expect(replaced).toEqual({
    refusals: [],
    changes: [
      { kind: 'webhook', name: 'new', action: 'create' },
      { kind: 'webhook', name: 'old', action: 'delete' },
    ],
  });
  const second = planChanges(
    old,
    definition({ 'webhooks/old.yaml': 'secretName: S\n', 'webhooks/b.yaml': 'secretName: S\n' }),
  );
  expect(second.refusals).toEqual([]);
});
