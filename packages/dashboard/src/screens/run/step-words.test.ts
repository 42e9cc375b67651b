import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { ActionEntry, Entry } from './entry.ts';
import { foldReads, withoutRepeats } from './folded-entries.ts';
import { noticeWords } from './notice-words.ts';
import { stepChange } from './step-change.ts';
import { planIn, readingWords, stepWords } from './step-words.ts';

const action = (name: string, category: string, input: unknown, more: Partial<ActionEntry> = {}): ActionEntry => ({
  kind: 'action',
  id: name,
  seq: 1,
  at: undefined,
  category,
  name,
  input,
  output: '',
  state: 'completed',
  ...more,
});
const sentence = (entry: ActionEntry): string => {
  const { verb, object, place } = stepWords(entry);
  return [verb, object, place && `in ${place}`].filter(Boolean).join(' ');
};

const folder = new URL('../../../../agent/test/sessions/', import.meta.url);
interface Recorded {
  readonly type: string;
  readonly name: string;
  readonly category: string;
  readonly input: unknown;
  readonly output: string;
}
/** Returns the actions of a recorded session of a real harness, with their outputs. */
function recorded(harness: string): ActionEntry[] {
  const steps: Recorded[] = JSON.parse(readFileSync(new URL(`${harness}.golden.json`, folder), 'utf8'));
  return steps.flatMap((step, index) =>
    step.type === 'action'
      ? [action(step.name, step.category, step.input, { output: steps[index + 1]?.output ?? '' })]
      : [],
  );
}
const harnesses = readdirSync(folder).flatMap((name) => /^(.*)\.golden\.json$/.exec(name)?.[1] ?? []);

describe('the sentence about a step', () => {
  test.each(harnesses)('names the command and the file of a recorded session of %s', (harness) => {
    const [command, edit] = recorded(harness);
    expect(command && sentence(command)).toMatch(/^Ran echo hello; exit 3( in \/workspace)?$/);
    expect(edit && sentence(edit)).toMatch(/^(Edited|Wrote) (\/workspace\/)?a\.txt$/);
    expect(edit && stepChange(edit)).toMatchObject({ added: 2, deleted: 0 });
  });

  test.each([
    [action('read', 'files', { path: 'src/a.ts' }), 'Read src/a.ts'],
    [action('search', 'search', { pattern: 'round', path: 'src' }), 'Searched for round in src'],
    [action('WebFetch', 'search', { url: 'https://a.test/', prompt: 'Sum' }), 'Fetched https://a.test/'],
    [action('start_run', 'integration', { prompt: 'Test it' }), 'Started a child run Test it'],
    [action('report_artifact', 'files', { type: 'PLAN', title: 'Steps' }), 'Reported Steps'],
    [
      action('report_artifact', 'files', { type: 'PULL_REQUEST', url: 'https://a.test/1' }),
      'Reported the pull request https://a.test/1',
    ],
    [action('db.query', 'integration', { sql: 'SELECT 1' }), 'Called db.query'],
    [action('apply_patch', 'files', { command: ['apply_patch', '*** Begin'] }), 'Edited apply_patch'],
  ])('is %#: %s', (entry, words) => {
    expect(sentence(entry)).toBe(words);
  });

  test.each([
    ['running', 'Running'],
    ['waiting', 'Asks to run'],
    ['denied', 'Was not allowed to run'],
    ['interrupted', 'Ran'],
  ] as const)('tells that an action is %s', (state, verb) => {
    expect(stepWords(action('shell', 'command', { command: 'ls' }, { state })).verb).toBe(verb);
  });

  test('does not fail for inputs of any form', () => {
    for (const input of [null, undefined, 1, '', 'x', [], [1], { command: {} }, { path: [] }, { edits: [null, 1] }])
      for (const category of ['command', 'files', 'search', 'integration', 'skill', 'other'])
        expect(sentence(action('constructor', category, input)), JSON.stringify(input)).toContain(' ');
    expect(stepChange(action('edit', 'files', { edits: [null, 1] }))).toBeUndefined();
    expect(noticeWords({ name: 'constructor', data: null }).words).toBe('Constructor');
  });
});

test('a change has the lines of the patch in the output, or else the texts of all replacements in the input', () => {
  const patch = '--- a.ts\n+++ a.ts\n@@ -7,1 +7,1 @@\n-one\n+two\n--- b.ts\n+++ b.ts\n@@ -1,0 +1,1 @@\n+three\n';
  const both = stepChange(action('edit', 'files', { path: 'a.ts' }, { output: patch }));
  expect(both).toMatchObject({ added: 2, deleted: 1 });
  expect(both?.lines.map(({ text }) => text).filter(Boolean)).toEqual(['one', 'two', 'three']);
  const edits = [
    { old_string: 'one', new_string: 'two' },
    { old_string: 'x', new_string: 'y\nz' },
  ];
  expect(stepChange(action('MultiEdit', 'files', { file_path: 'a', edits }))).toMatchObject({ added: 3, deleted: 2 });
  const own = stepChange(action('edit', 'files', { path: 'a', old_text: 'one', new_text: 'two' }));
  expect(own?.lines.map(({ number }) => number)).toEqual([undefined, undefined]);
});

test('neighbouring reads become one item, and reads that failed stay on their own', () => {
  const read = (id: string, more: Partial<ActionEntry> = {}) => ({
    ...action('read', 'files', { path: id }, more),
    id,
  });
  const text: Entry = { kind: 'text', id: 't', seq: 1, at: undefined, role: 'assistant', text: 'Now.' };
  const folded = foldReads([
    read('a'),
    read('b'),
    text,
    read('c'),
    read('d', { state: 'failed' }),
    read('e'),
    read('f'),
    read('g'),
  ]);
  expect(folded.map(({ id }) => id)).toEqual(['reads/a', 't', 'c', 'd', 'reads/e']);
  expect(folded.at(-1)).toMatchObject({ entries: [{ id: 'e' }, { id: 'f' }, { id: 'g' }] });
  expect(readingWords(['read', 'read', 'search', 'fetch'])).toBe('Read 2 files, searched once and fetched 1 page');
});

test('a question is shown once: the call of the tool that asks it is left out', () => {
  const ask = action('ask_user', 'integration', { question: 'Up?' });
  const request: Entry = { kind: 'request', id: 'q', seq: 2, at: undefined, isQuestion: true, title: 'Up?', input: {} };
  expect(withoutRepeats([ask, request])).toEqual([request]);
  expect(withoutRepeats([ask])).toEqual([ask]);
});

test('a plan is read from a notice and from the tools of harnesses', () => {
  const step = { content: 'Do it', status: 'completed' };
  expect(planIn({ entries: [step, null] })).toEqual([step]);
  expect(planIn({ todos: [step] })).toEqual([step]);
  expect(planIn({ plan: [{ step: 'Do it', status: 'completed' }] })).toEqual([step]);
  expect(planIn({ plan: 'no' })).toBeUndefined();
});

test('a notice is a sentence with its reason', () => {
  expect(noticeWords({ name: 'connection_denied', data: { host: 'a.test' } })).toMatchObject({
    words: 'The connection to a.test was denied.',
    isBad: true,
  });
  expect(noticeWords({ name: 'workspace_not_kept', data: { reason: 'too large' } }).words).toBe(
    'The workspace was not stored: too large',
  );
  expect(noticeWords({ name: 'usage', data: { used: 1000, size: 4000 } }).words).toMatch(/^25 % of the context/);
});
