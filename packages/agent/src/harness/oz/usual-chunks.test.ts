import { expect, test } from 'vitest';
import { usualChunk, withUsualChunks } from './usual-chunks.ts';

const call = (args: unknown) => ({
  choices: [{ delta: { tool_calls: [{ index: 0, function: { name: 'shell', arguments: args } }] } }],
});

test.each([
  ['no choices', { id: 'c' }, { id: 'c', choices: [] }],
  ['choices of null', { id: 'c', choices: null, usage: { a: 1 } }, { id: 'c', choices: [], usage: { a: 1 } }],
  ['arguments as an object', call({ command: 'ls "a"' }), call('{"command":"ls \\"a\\""}')],
  ['usual arguments', call('{"command":{}}'), call('{"command":{}}')],
  ['an error', { error: { message: 'overloaded' } }, { error: { message: 'overloaded' } }],
])('a chunk with %s has the form of the API', (_, chunk, expected) => {
  expect(JSON.parse(usualChunk(JSON.stringify(chunk)))).toEqual(expected);
});

test.each(['{"not json', '[]', '1', 'null', ''])('%j stays unchanged', (data) => {
  expect(usualChunk(data)).toBe(data);
});

test('a stream with unusual chunks gets usual lines even if the stream is split at any position', async () => {
  const wire =
    ': comment\r\n\r\ndata: {"choices":null}\r\n\r\nevent: x\ndata:{"id":"é🙂"}\n\ndata: [DONE]\n\ndata: {"choices":null}';
  const expected =
    ': comment\r\n\r\ndata: {"choices":[]}\n\r\nevent: x\ndata:{"id":"é🙂","choices":[]}\n\ndata: [DONE]\n\ndata: {"choices":[]}';
  const bytes = new TextEncoder().encode(wire);
  for (const size of [1, 7, bytes.length]) {
    const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.slice(at * size, (at + 1) * size),
    );
    const headers = { 'content-type': 'text/event-stream' };
    const fetch = withUsualChunks(async () => new Response(ReadableStream.from(parts), { headers }));
    expect(await (await fetch('http://x')).text()).toBe(expected);
  }
});

test('an answer that is an error or not a stream stays unchanged', async () => {
  const body = '{"choices":null}';
  const error = { status: 500, headers: { 'content-type': 'text/event-stream' } };
  for (const init of [{ headers: { 'content-type': 'application/json' } }, error])
    expect(await (await withUsualChunks(async () => new Response(body, init))('http://x')).text()).toBe(body);
});
