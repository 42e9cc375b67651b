import { describe, expect, test } from 'vitest';
import { isAllowedOrigin } from './domain.ts';
import { factoryTools } from './factory-tools.ts';
import { serviceTools } from './service-tools.ts';
import { newestMessages } from './texts.ts';
import { argumentsSchema } from './tool.ts';

const tools = [...serviceTools, ...factoryTools];

test.each(tools.map((tool) => [tool.name, tool] as const))(
  'the schema of %s names and describes arguments',
  (_name, tool) => {
    const schema = argumentsSchema(tool);
    const properties = schema.properties as Record<string, Record<string, unknown>>;
    const renamed = Object.entries(tool.renamed ?? {});
    const argument = (member: string) => renamed.find(([, each]) => each === member)?.[0] ?? member;
    for (const name of [...(tool.members ?? []).map(argument), ...(tool.required ?? [])])
      expect(properties).toHaveProperty(name);
    const config = properties.config?.properties as Record<string, unknown> | undefined;
    expect(Object.keys(config ?? {}).toSorted()).toEqual([...(tool.configMembers ?? [])].toSorted());
    const text = JSON.stringify(schema);
    for (const [, name] of text.matchAll(/"#\/\$defs\/([^"]+)"/g)) expect(schema.$defs).toHaveProperty(String(name));
    // Limits the size of the schemas, because each request to a model contains all schemas of a server.
    expect(text.length).toBeLessThan(6_000);
  },
);

describe('an Origin', () => {
  test.each([
    [undefined, 'https://runs.example', true],
    ['https://runs.example', 'https://runs.example', true],
    ['https://runs.example:8443', 'https://runs.example', false],
    ['http://runs.example', 'https://runs.example', false],
    ['null', 'https://runs.example', false],
    ['http://localhost:8080', 'http://127.0.0.1:8080', true],
    ['http://localhost:8081', 'http://127.0.0.1:8080', false],
    ['http://localhost', 'https://runs.example', false],
    ['http://127.0.0.1.evil.example:8080', 'http://127.0.0.1:8080', false],
  ])('%s is allowed at %s: %s', (origin, baseUrl, isAllowed) => {
    expect(isAllowedOrigin(origin, baseUrl)).toBe(isAllowed);
  });
});

describe('the newest messages', () => {
  const message = (text: string) => ({ role: 'assistant' as const, content: [{ type: 'text' as const, text }] });
  const step = (id: string, ...texts: string[]) => ({ id, messages: texts.map(message), steps: [] });
  const conversation = {
    conversation_id: 'c',
    steps: [step('1', 'one', 'two'), step('2', 'three'), step('3', 'four')],
  };
  const read = (most: number) => JSON.parse(newestMessages(conversation, most, 1_000));

  test('are all messages if all of them fit', () => {
    expect(read(10_000)).toEqual(conversation);
  });

  test('may begin inside a step, and the answer gives the number of omitted messages', () => {
    const size = JSON.stringify(message('four')).length;
    expect(read(3 * size + 80)).toMatchObject({
      omitted_messages: 1,
      steps: [{ id: '1', messages: [message('two')] }, { id: '2' }, { id: '3' }],
    });
    expect(read(0)).toMatchObject({ omitted_messages: 4, steps: [] });
  });

  test('omit the messages of subagents before the messages of the agent', () => {
    const whole = { conversation_id: 'c', steps: [{ ...step('1', 'one'), steps: [step('d', 'x'.repeat(500))] }] };
    expect(JSON.parse(newestMessages(whole, 200, 1_000))).toMatchObject({
      omitted_messages: 1,
      steps: [{ id: '1', messages: [message('one')], steps: [] }],
    });
  });
});
