import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { RunAgentRequest } from '@runyard/contract/runs/run-request';
import { expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { buildRunRequest } from './request.ts';

const noInput = () => {
  throw new Error('standard input is not to be read');
};
const file = (name: string, content: string | Uint8Array) => {
  const full = path.join(folder, name);
  writeFileSync(full, content);
  return full;
};
const folder = newFolder();

test('buildRunRequest reads the whole prompt from a file', () => {
  expect(buildRunRequest(file('a.md', '---\nx: 1\n---\nDo it\n'), {}, noInput)).toEqual({
    prompt: '---\nx: 1\n---\nDo it\n',
    config: { idle_timeout_minutes: 0 },
  });
});

test('buildRunRequest reads the prompt from standard input for `-`, and uses other words as the prompt', () => {
  expect(buildRunRequest('-', {}, () => 'from a pipe').prompt).toBe('from a pipe');
  expect(buildRunRequest('say hello', {}, noInput).prompt).toBe('say hello');
});

test('buildRunRequest needs no prompt if there is a skill', () => {
  const request = buildRunRequest(undefined, { skill: 'acme/site:review' }, noInput);
  expect(RunAgentRequest.parse(request)).toEqual(request);
  expect(request).toEqual({ config: { idle_timeout_minutes: 0, skill_spec: 'acme/site:review' } });
  expect(() => buildRunRequest(undefined, {}, noInput)).toThrow('or --skill');
});

test('buildRunRequest converts the options into members of the request', () => {
  const request = buildRunRequest(
    'go',
    {
      title: 'T',
      model: 'local/x',
      name: 'nightly',
      approval: 'ask',
      harness: 'oz',
      idle: '5',
      attach: [file('data.json', '{}'), file('raw.bin', new Uint8Array([0, 255]))],
      metadata: ['ticket=A-1', 'empty=', 'formula=a=b'],
    },
    noInput,
  );
  expect(RunAgentRequest.parse(request)).toEqual(request);
  expect(request).toEqual({
    prompt: 'go',
    title: 'T',
    config: {
      idle_timeout_minutes: 5,
      name: 'nightly',
      model_id: 'local/x',
      harness: { type: 'oz' },
      approval_policy: 'ask',
    },
    attachments: [
      { file_name: 'data.json', mime_type: 'application/json', data: 'e30=' },
      { file_name: 'raw.bin', mime_type: 'application/octet-stream', data: 'AP8=' },
    ],
    metadata: { ticket: 'A-1', empty: '', formula: 'a=b' },
  });
});

test('buildRunRequest passes a shell command that starts the harness', () => {
  const request = buildRunRequest('go', { harness: 'command', harnessCommand: 'tr a-z A-Z' }, noInput);
  expect(RunAgentRequest.parse(request).config?.harness).toEqual({
    type: 'command',
    command: ['sh', '-c', 'tr a-z A-Z'],
  });
  expect(() => buildRunRequest('go', { harnessCommand: 'tr a-z A-Z' }, noInput)).toThrow('needs --harness');
});

test('buildRunRequest puts the limits of a run into the configuration', () => {
  const request = buildRunRequest('go', { maxCost: '1.5', maxTurns: '20', maxMinutes: '30' }, noInput);
  expect(request.config).toMatchObject({ max_cost_usd: 1.5, max_turns: 20, max_duration_minutes: 30 });
  expect(RunAgentRequest.parse(request)).toEqual(request);
});

test.each([
  ['a cost of 0', () => buildRunRequest('go', { maxCost: '0' }, noInput), '--max-cost takes a number above 0'],
  ['half a turn', () => buildRunRequest('go', { maxTurns: '0.5' }, noInput), '--max-turns takes a whole number'],
  ['an idle time over an hour', () => buildRunRequest('go', { idle: '61' }, noInput), '--idle takes minutes'],
  ['a file that is not there', () => buildRunRequest('missing.md', {}, noInput), 'there is no file missing.md'],
  ['a path that is not there', () => buildRunRequest('prompts/missing', {}, noInput), 'there is no file'],
  ['an empty prompt', () => buildRunRequest('-', {}, () => ' \n'), 'the prompt is empty (standard input)'],
  ['a folder', () => buildRunRequest(folder, {}, noInput), 'is a folder'],
  [
    'bytes that are no text',
    () => buildRunRequest(file('b.md', new Uint8Array([0xff, 0xfe])), {}, noInput),
    'is not UTF-8 text',
  ],
  [
    'a pair without a key',
    () => buildRunRequest('go', { metadata: ['=x'] }, noInput),
    '--metadata takes key=value, not "=x"',
  ],
  [
    'an attachment that is not there',
    () => buildRunRequest('go', { attach: ['nope.txt'] }, noInput),
    'there is no file nope.txt',
  ],
  [
    'an attachment that is too large',
    () => buildRunRequest('go', { attach: [file('big.bin', new Uint8Array(10.5 * 1024 ** 2))] }, noInput),
    'big.bin is too large to attach: 10.5 MB; at most 10 MB',
  ],
  ['too many attachments', () => buildRunRequest('go', { attach: Array(6).fill('x') }, noInput), 'at most 5 files'],
])('%s is refused with a reason', (_, build, reason) => {
  expect(build).toThrow(reason);
});

test('buildRunRequest takes members from a configuration file, and options have priority', () => {
  const config = file(
    'config.json',
    JSON.stringify({ model_id: 'a/b', idle_timeout_minutes: 3, base_prompt: 'Short.' }),
  );
  const built = buildRunRequest(
    'Do it.',
    { config, model: 'c/d', mode: 'plan', ask: ['push', 'host=example.com'] },
    noInput,
  );
  expect(RunAgentRequest.parse(built)).toEqual({
    prompt: 'Do it.',
    mode: 'plan',
    config: {
      model_id: 'c/d',
      idle_timeout_minutes: 3,
      base_prompt: 'Short.',
      approval_policy: 'ask',
      approval_rules: [{ push: '*' }, { host: 'example.com' }],
    },
  });
  expect(() => buildRunRequest('a', { config: file('list.json', '[]') }, noInput)).toThrow('must contain an object');
  expect(() => buildRunRequest('a', { config: file('bad.json', '{') }, noInput)).toThrow('is not JSON');
});
