import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openTestLoops, providers, results } from '../../../test/loop.ts';
import { type McpTool, toolName } from '../../mcp/connect-server.ts';
import { providerSchema } from '../../mcp/tool-schema.ts';

const { models, workspace, engine } = await openTestLoops();

describe.each(Object.keys(providers))('the loop with %s', (provider) => {
  test('streams text, runs a command and returns its result to the model', async () => {
    models.script([
      {
        thinking: 'Let me look.',
        text: ['I will ', 'look.'],
        toolCalls: [{ name: 'shell', input: { command: 'echo found > it; cat it' } }],
      },
      { text: ['It is ', 'found.'] },
    ]);
    const before = models.requests.length;
    const { turn, texts, spoken } = engine(provider);
    expect(await turn('Where is it?')).toEqual({ stopReason: 'end_turn', verdict: { success: true, message: '' } });
    expect(texts).toEqual(['I will ', 'look.', 'It is ', 'found.']);
    expect(readFileSync(join(workspace(), 'it'), 'utf8')).toBe('found\n');
    expect(results(spoken)).toEqual(['completed']);
    const [first, second] = models.requests.slice(before);
    expect(first?.conversation?.toolNames).toEqual([
      'shell',
      'read',
      'write',
      'edit',
      'search',
      'report_artifact',
      'handoff',
      'ask_user',
    ]);
    expect(first?.conversation?.prompt).toBe('Where is it?');
    expect(second?.conversation?.toolResults.join()).toContain('found');
    if (provider === 'openai responses') expect(second?.body.store).toBe(false);
  });

  test('sends the bytes of an image with the prompt, and sends them again after another engine has read the saved conversation', async () => {
    models.script([{ text: ['A dot.'] }, { text: ['Still.'] }]);
    const data = Buffer.from('\x89PNG\r\n\x1a\nbytes of an image', 'latin1').toString('base64');
    let memory = '';
    const remember = async (said: string) => {
      memory = said;
    };
    const first = engine(provider, { remember });
    await first.turn('What is it?', [{ mimeType: 'image/png', data }], ['/w/attachments/a.png (image/png, 30 bytes)']);
    const requestText = JSON.stringify(models.requests.at(-1)?.body);
    expect(requestText).toContain(data);
    expect(requestText).toContain('image/png');
    expect(models.requests.at(-1)?.conversation?.prompt).toContain('/w/attachments/a.png');
    await engine(provider, { memory }).turn('And now?');
    expect(JSON.stringify(models.requests.at(-1)?.body)).toContain(data);
  });

  test('offers odd tools of MCP servers in a form that the provider accepts', async () => {
    models.script([{ text: ['Ready.'] }]);
    const odd = [
      {},
      { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }], properties: { a: {}, b: {} } },
      { type: 'object', properties: { labels: { type: 'array' } } },
      { type: 'object', $defs: { Q: { type: 'object' } }, properties: { q: { $ref: '#/$defs/Q' } } },
    ];
    const toolsWith = (schemaOf: (given: object) => Readonly<Record<string, unknown>>): McpTool[] =>
      odd.map((given, at) => ({
        name: toolName('odd', `tool${at}`),
        server: 'odd',
        tool: `tool${at}`,
        description: '',
        inputSchema: schemaOf(given),
        onlyReads: false,
        call: async () => ({ text: '', images: [], failed: false }),
      }));
    const repaired = toolsWith((given) => providerSchema(given).schema);
    expect((await engine(provider, { mcp: () => repaired }).turn('Hi.')).verdict.success).toBe(true);
    expect(models.requests.at(-1)?.conversation?.toolNames).toEqual(
      expect.arrayContaining(repaired.map(({ name }) => name)),
    );
    const asGiven = toolsWith((given) => ({ ...given }));
    expect((await engine(provider, { mcp: () => asGiven }).turn('Hi.')).verdict.success).toBe(false);
  });

  test('repeats a request whose stream breaks off', async () => {
    models.script([{ text: ['one ', 'two ', 'three'] }]);
    models.misbehave({ kind: 'cut', afterPieces: 2 });
    const { turn, texts, thoughts } = engine(provider);
    expect((await turn('Count.')).verdict).toEqual({ success: true, message: '' });
    expect(texts.join('')).toMatch(/one two three$/);
    expect(thoughts.join('')).toContain('trying again');
  });

  test('fails after several answers 500 with a message that names the model, the status and the next step', async () => {
    models.misbehave({ kind: 'status', status: 500, message: 'melted' }, 3);
    const { verdict } = await engine(provider).turn('Hi.');
    expect(verdict).toMatchObject({ success: false, code: 'internal_error' });
    expect(verdict.message).toMatch(/answered 500 after 3 tries: melted.*run again later/);
  });

  test('does not repeat a request that the provider refuses', async () => {
    models.misbehave({ kind: 'status', status: 403, message: 'not yours' });
    const before = models.requests.length;
    const { verdict } = await engine(provider).turn('Hi.');
    expect(verdict).toMatchObject({
      success: false,
      code: 'not_authorized',
      message: expect.stringContaining('not yours'),
    });
    expect(models.requests.length - before).toBe(1);
  });

  test('repeats a request after an error event in its stream', async () => {
    models.script([{ text: ['fine'] }]);
    models.misbehave({ kind: 'error_event', afterPieces: 2 });
    const { turn, texts } = engine(provider);
    expect((await turn('Hi.')).verdict.success).toBe(true);
    expect(texts.at(-1)).toBe('fine');
  });
});
