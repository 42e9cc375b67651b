import { expect, test } from 'vitest';
import { matchingRule } from './matching-rule.ts';

const shell = (command: string) => ({
  title: 'Run',
  action: { id: 'a', name: 'shell', category: 'command' as const, input: { command } },
});
const write = (input: object) => ({
  title: 'Write',
  action: { id: 'a', name: 'Write', category: 'files' as const, input },
});
const matches = (rule: object, request: Parameters<typeof matchingRule>[1]) =>
  matchingRule([rule], request, '/work') !== undefined;

test.each([
  ['git push', true],
  ['git -C site push origin HEAD', true],
  ['env git push', true],
  ['/usr/bin/git push', true],
  ['true;git push', true],
  ['true\ngit push', true],
  ['git \\\n push', true],
  [`g"i"t 'pu'sh`, true],
  ["g$'it' push", true],
  [`bash -c "git push"`, true],
  ['GIT PUSH', true],
  ['git commit -m done; echo push', false],
  ['git status', false],
  ['push git', false],
])('the rule "git push" matches the command %j: %s', (command, expected) => {
  expect(matches({ command: 'git push' }, shell(command))).toBe(expected);
});

test('a rule matches the words of a command that a harness gives as a list, or only in the title', () => {
  const list = { ...shell(''), action: { ...shell('').action, input: { command: ['git', 'push'] } } };
  expect(matches({ command: 'git push' }, list)).toBe(true);
  expect(matches({ command: 'git push' }, { ...shell('x'), title: '`git push`' })).toBe(true);
});

test.each([
  ['src/a.ts', false],
  ['/work/src/a.ts', false],
  ['src/../package.json', true],
  ['/work/srcs/a.ts', true],
  ['/etc/passwd', true],
])('the rule about writes outside of src matches the file %s: %s', (path, expected) => {
  expect(matches({ write_outside: 'src' }, write({ file_path: path }))).toBe(expected);
});

test('a change whose file is unknown counts as a write outside of the folder, and a command does not', () => {
  expect(matches({ write_outside: 'src' }, write({ diff: '…' }))).toBe(true);
  expect(matches({ write_outside: 'src' }, write({ changes: [{ path: 'src/a' }, { path: 'b' }] }))).toBe(true);
  expect(matches({ write_outside: 'src' }, write({ changes: [{ path: 'src/a' }, { path: 'src/b' }] }))).toBe(false);
  expect(matches({ write_outside: 'src' }, shell('echo a > b'))).toBe(false);
});

test("a rule about tools matches all harnesses' names of an MCP tool, and an action that the harness does not describe", () => {
  const tool = (name: string) => ({
    title: name,
    action: { id: 'a', name, category: 'integration' as const, input: {} },
  });
  expect(matches({ tool: 'tickets.*' }, tool('tickets.close'))).toBe(true);
  expect(matches({ tool: 'tickets.*' }, tool('mcp__tickets__close'))).toBe(true);
  expect(matches({ tool: 'tickets.*' }, tool('shell'))).toBe(false);
  expect(matches({ tool: 'tickets.*' }, { title: 'something' })).toBe(true);
});

test('rules that the gateway and the proxy enforce match no action of a harness', () => {
  expect(matches({ push: '*' }, shell('git push'))).toBe(false);
  expect(matches({ host: 'example.com' }, shell('curl https://example.com'))).toBe(false);
});
