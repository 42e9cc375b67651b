import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readEventStream, type StreamPart, UnreadableStream } from './event-stream.ts';

async function partsOf(...chunks: string[]): Promise<StreamPart[]> {
  async function* sent() {
    yield* chunks;
  }
  const parts: StreamPart[] = [];
  for await (const part of readEventStream(sent())) parts.push(part);
  return parts;
}

const stream =
  'retry: 600\n\n:\n\nid: 1\nevent: state\ndata: {"a":\ndata: "b: c"}\n\n: end\n\nid: 2\ndata\n\nid: 3\n\nid: 4\ndata: cut off\n';
const parts: StreamPart[] = [
  { type: 'retry', ms: 600 },
  { type: 'comment', text: '' },
  { type: 'id', id: '1' },
  { type: 'event', data: '{"a":\n"b: c"}' },
  { type: 'comment', text: 'end' },
  { type: 'id', id: '2' },
  { type: 'event', data: '' },
  { type: 'id', id: '3' },
];

describe.each([
  ['LF', '\n'],
  ['CR LF', '\r\n'],
  ['CR', '\r'],
])('an event stream whose lines end with %s', (_, lineEnd) => {
  const text = stream.replaceAll('\n', lineEnd);

  test('parses', async () => {
    expect(await partsOf(text)).toEqual(parts);
  });

  test('parses the same events, however the stream is split into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(text.length), { maxLength: 20 }), async (places) => {
        const cuts = [0, ...places.toSorted((one, other) => one - other), text.length];
        const chunks = cuts.slice(1).map((end, index) => text.slice(cuts[index], end));
        expect(await partsOf(...chunks)).toEqual(parts);
      }),
    );
    expect(await partsOf(...text)).toEqual(parts);
  });
});

test('readEventStream yields an event as soon as the empty line after the event has arrived, even if lines end with CR', async () => {
  async function* sent() {
    yield 'data: a\r\r';
    throw new Error('the reader asked for another chunk');
  }
  expect((await readEventStream(sent()).next()).value).toEqual({ type: 'event', data: 'a' });
});

test('readEventStream ignores retry times that are not numbers or that are longer than a timer can wait', async () => {
  expect(await partsOf('retry: soon\n\n', 'retry: 1e3\n\n', 'retry: 9999999999\n\n', 'retry: 5\n\n')).toEqual([
    { type: 'retry', ms: 5 },
  ]);
});

test.each([
  ['one line without an end', 'data: ', 'x'.repeat(1024 * 1024)],
  ['one event without an end', 'data: a\n', `data: ${'x'.repeat(1024 * 1024)}\n`],
])('readEventStream refuses a stream of %s before it fills the memory', async (_, first, repeated) => {
  let chunks = 0;
  async function* endless() {
    yield first;
    for (;;) {
      chunks += 1;
      yield repeated;
    }
  }
  await expect(readEventStream(endless()).next()).rejects.toThrow(UnreadableStream);
  expect(chunks).toBeLessThan(20);
});
