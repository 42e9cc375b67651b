import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openTestLoops, results } from '../../../test/loop.ts';

const { models, workspace, engine } = await openTestLoops();

describe('the loop', () => {
  test('gives the model an error for malformed input and for unknown tools, and continues', async () => {
    models.script([
      {
        toolCalls: [
          { name: 'shell', input: { command: 3 } },
          { name: 'teleport', input: {} },
          { name: 'shell', input: { command: 'echo ok' } },
          { name: 'write', input: {}, inputText: '{"path": "a", "content": "cut o' },
          { name: 'write', input: { path: { length: { toString: '' } }, content: 'x' } },
        ],
      },
      { text: ['understood'] },
    ]);
    const { turn, texts, spoken } = engine();
    expect((await turn('Hi.')).verdict.success).toBe(true);
    expect(results(spoken)).toEqual(['failed', 'failed', 'completed', 'failed', 'failed']);
    const toolResults = models.requests.at(-1)?.conversation?.toolResults ?? [];
    expect(toolResults).toHaveLength(5);
    expect(toolResults[0]).toContain('The input of shell is not accepted: command must be a string, not a number.');
    expect(toolResults[1]).toContain('teleport');
    expect(toolResults[2]).toContain('ok');
    expect(toolResults[3]).toContain('The input of write is not a JSON object. It may have been cut off.');
    expect(texts).toEqual(['understood']);
  });

  test('submits the result of the run with a tool, and reads the faults', async () => {
    const values: unknown[] = [];
    const submit = async (value: unknown) => {
      values.push(value);
      return { ok: value === 2, message: value === 2 ? 'accepted' : '/n: must be 2' };
    };
    const call = (input: Record<string, unknown>) => ({ toolCalls: [{ name: 'submit_result', input }] });
    models.script([call({ result: 1 }), call({}), call({ result: 2 }), { text: ['done'] }]);
    const result = { schema: { type: 'object' }, submit, about: 'Return a result.' };
    const { turn, spoken } = engine('anthropic', { result });
    expect((await turn('Hi.')).verdict.success).toBe(true);
    expect(values).toEqual([1, undefined, 2]);
    expect(results(spoken)).toEqual(['failed', 'failed', 'completed']);
    expect(JSON.stringify(models.requests.map(({ conversation }) => conversation?.toolResults))).toContain(
      '/n: must be 2',
    );
  });

  test('writes on GitHub with the tools of the run, and reads why nothing was written', async () => {
    const answer = async (tool: string, input: unknown) => ({
      ok: Object(input).body === 'a',
      message: `${tool} done`,
    });
    const call = (body: string) => ({ toolCalls: [{ name: 'comment', input: { body } }] });
    models.script([call('a'), call('b'), { text: ['done'] }]);
    const { turn, spoken } = engine('anthropic', { github: { names: ['comment'], answer } });
    expect((await turn('Hi.')).verdict).toEqual({ success: true, message: '' });
    expect(results(spoken)).toEqual(['completed', 'failed']);
    expect(models.requests.at(-1)?.conversation?.toolResults[0]).toContain('comment done');
  });

  test.each([
    ['longer than an argument may be', `echo ${'x'.repeat(140_000)}`, 'The longest that can be passed is'],
    ['with a NUL character', 'echo a\u0000b', 'NUL'],
  ])('tells the model that a command %s was not run and continues', async (_, command, reason) => {
    models.script([
      {
        toolCalls: [
          { name: 'shell', input: { command } },
          { name: 'search', input: { pattern: command } },
          { name: 'shell', input: { command: 'echo ok' } },
        ],
      },
      { text: ['understood'] },
    ]);
    const { turn, spoken } = engine();
    expect((await turn('Hi.')).verdict).toEqual({ success: true, message: '' });
    expect(results(spoken)).toEqual(['failed', 'failed', 'completed']);
    const toolResults = models.requests.at(-1)?.conversation?.toolResults ?? [];
    expect(toolResults[0]).toContain('could not be started');
    expect(toolResults[0]).toContain(reason);
    expect(toolResults[1]).toContain('could not be started');
    expect(toolResults[2]).toContain('ok');
  });

  test('removes lone surrogates from the input of a call before the input is sent to the model again', async () => {
    models.script([{ toolCalls: [{ name: 'read', input: { path: 'a\ud83d' } }] }, { text: ['ok'] }]);
    const { turn } = engine();
    expect((await turn('Hi.')).verdict.success).toBe(true);
    expect(models.requests.at(-1)?.conversation?.toolResults).toHaveLength(1);
    expect(JSON.stringify(models.requests.at(-1)?.body)).not.toMatch(/\\ud[89a-f]/i);
  });

  test('gives the model the exit code of a failed command', async () => {
    models.script([{ toolCalls: [{ name: 'shell', input: { command: 'echo no; exit 7' } }] }, { text: ['I see'] }]);
    const { turn, spoken } = engine();
    await turn('Hi.');
    expect(results(spoken)).toEqual(['failed']);
    expect(models.requests.at(-1)?.conversation?.toolResults.join()).toContain('no\n\n[exit code 7]');
  });

  test('writes, edits, reads and searches files', async () => {
    writeFileSync(join(workspace(), 'old.txt'), 'one\ntwo\ntwo\n');
    models.script([
      {
        toolCalls: [
          { name: 'write', input: { path: 'deep/new.txt', content: 'hello needle\n' } },
          { name: 'edit', input: { path: 'old.txt', old_text: 'two', new_text: '2' } },
          { name: 'edit', input: { path: 'old.txt', old_text: 'one', new_text: '1' } },
          { name: 'read', input: { path: 'old.txt', first_line: 1, lines: 1 } },
          { name: 'search', input: { pattern: 'need.e' } },
          { name: 'search', input: { pattern: 'nowhere' } },
          { name: 'read', input: { path: '.' } },
          { name: 'read', input: { path: 'absent' } },
          { name: 'report_artifact', input: { type: 'FILE', path: 'old.txt' } },
        ],
      },
      { text: ['ok'] },
    ]);
    const { turn, spoken } = engine();
    await turn('Hi.');
    const toolResults = models.requests.at(-1)?.conversation?.toolResults ?? [];
    expect(toolResults[0]).toContain('13 bytes');
    expect(toolResults[1]).toContain('occurs 2 times');
    expect(toolResults[2]).toContain('replaced 1 occurrence');
    expect(toolResults[3]).toBe('1\t1\n[2 more lines]');
    expect(toolResults[4]).toContain('deep/new.txt:1:hello needle');
    expect(toolResults[5]).toBe('[no match]');
    expect(toolResults[6]).toBe('deep/\nold.txt');
    expect(toolResults[7]).toContain('ENOENT');
    expect(toolResults[8]).toContain('artifact-1');
    expect(results(spoken)).toEqual([
      'completed',
      'failed',
      'completed',
      'completed',
      'completed',
      'completed',
      'completed',
      'failed',
      'completed',
    ]);
  });

  test('shows the model the output of a command as a terminal does, and shows people the whole output', async () => {
    const command = 'for i in $(seq 1 300); do printf "\\r\\033[2K\\033[32mDownloading %d%%\\033[0m" $i; done';
    models.script([{ toolCalls: [{ name: 'shell', input: { command } }] }, { text: ['done'] }]);
    const { turn, spoken } = engine();
    expect((await turn('Go.')).verdict.success).toBe(true);
    const requestText = JSON.stringify(models.requests.at(-1)?.body);
    expect(requestText).toContain('Downloading 300%');
    expect(requestText).not.toContain('Downloading 299%');
    expect(JSON.stringify(spoken)).toContain('Downloading 299%');
  });

  test("limits the output of a command in the model's context", async () => {
    models.script([
      { toolCalls: [{ name: 'shell', input: { command: 'head -c 5000000 /dev/zero | tr "\\0" x' } }] },
      { text: ['big'] },
    ]);
    await engine().turn('Hi.');
    const [told = ''] = models.requests.at(-1)?.conversation?.toolResults ?? [];
    expect(told.length).toBeLessThan(40_000);
    expect(told).toMatch(/… .* left out …/);
  });
});

test('a turn with the mode plan offers tools that only read and the shell, and refuses a call of another tool', async () => {
  models.script([{ toolCalls: [{ name: 'write', input: { path: 'planned', content: 'x' } }] }, { text: ['ok'] }]);
  const { turn } = engine('anthropic');
  await turn('Hi.', [], [], { isPlan: true });
  const offered = models.requests.at(-1)?.conversation?.toolNames ?? [];
  expect(offered).toEqual(expect.arrayContaining(['shell', 'read', 'search']));
  expect(offered).not.toEqual(expect.arrayContaining(['write']));
  expect(offered).not.toEqual(expect.arrayContaining(['edit']));
  expect(models.requests.at(-1)?.conversation?.toolResults).toEqual([expect.stringContaining('write is refused')]);
  expect(existsSync(join(workspace(), 'planned'))).toBe(false);
});
