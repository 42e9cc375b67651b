import { expect, it } from 'vitest';
import { costOfTools } from '../../../../team/models/price.ts';
import type { Protocol } from './counts.ts';
import { countTools } from './tool-calls.ts';

const item = (type: string, more: object = {}) => ({ type: 'response.output_item.done', item: { type, ...more } });
const grounded = (queries: string[], chunks: object[] = []) => ({
  candidates: [{ groundingMetadata: { webSearchQueries: queries, groundingChunks: chunks } }],
});

it.each<[string, Protocol, readonly unknown[], object]>([
  [
    'searches of Anthropic, once, though the stream tells them twice',
    'anthropic',
    [
      { type: 'content_block_start', content_block: { type: 'server_tool_use', name: 'web_search' } },
      { type: 'content_block_start', content_block: { type: 'server_tool_use', name: 'bash_code_execution' } },
      { type: 'message_delta', usage: { server_tool_use: { web_search_requests: 1 } } },
    ],
    { web_search: 1, code_execution: 1 },
  ],
  [
    'searches of Anthropic that only the usage reports',
    'anthropic',
    [{ content: [], usage: { server_tool_use: { web_search_requests: 7 } } }],
    { web_search: 7 },
  ],
  [
    'items of a stream of OpenAI, once, though the last event repeats them; pages are free',
    'openai-responses',
    [
      item('web_search_call', { action: { type: 'search' } }),
      item('web_search_call', { action: { type: 'open_page' } }),
      item('image_generation_call'),
      { type: 'response.completed', response: { output: [{ type: 'web_search_call' }, { type: 'message' }] } },
    ],
    { web_search: 1, image_generation: 1 },
  ],
  [
    'items of a body of OpenAI',
    'openai-responses',
    [{ output: [{ type: 'file_search_call' }, { type: 'code_interpreter_call' }] }],
    { file_search: 1, code_execution: 1 },
  ],
  [
    'queries of Google, of which each chunk has all',
    'google',
    [grounded(['a']), grounded(['a', 'b'], [{ maps: {} }])],
    { web_search: 2, maps: 1 },
  ],
  ['an answer of chat completions as one search', 'openai-chat', [{ choices: [] }, { choices: [] }], { web_search: 1 }],
  ['nothing in anything else', 'anthropic', [null, 1, 'x', [], { content: {}, usage: 3 }], {}],
])('the calls of provider tools are counted: %s', (_, protocol, events, calls) => {
  const counter = countTools(protocol, new Set(['web_search']));
  for (const event of events) counter.read(event);
  expect(counter.calls()).toEqual(calls);
});

it('a thousand searches cost ten dollars', () => {
  expect(costOfTools('anthropic', { web_search: 1000, web_fetch: 50 })).toBeCloseTo(10, 9);
});
