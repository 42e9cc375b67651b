import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Frame, readFrames } from './frames.ts';

async function framesOf(...chunks: string[]): Promise<Frame[]> {
  async function* sent() {
    yield* chunks;
  }
  const frames: Frame[] = [];
  for await (const frame of readFrames(sent())) frames.push(frame);
  return frames;
}

const stream =
  'retry: 600\n\n:\n\nid: 1\nevent: state\ndata: {"a":\ndata: "b: c"}\n\n: end\n\nid: 2\ndata\n\nid: 3\ndata: cut off\n';
const nothing = { id: undefined, data: undefined, retryMs: undefined, comment: undefined };
const frames: Frame[] = [
  { ...nothing, retryMs: 600 },
  { ...nothing, comment: '' },
  { ...nothing, id: '1', data: '{"a":\n"b: c"}' },
  { ...nothing, comment: 'end' },
  { ...nothing, id: '2', data: '' },
];

describe.each([
  ['LF', '\n'],
  ['CR LF', '\r\n'],
  ['CR', '\r'],
])('an event stream whose lines end with %s', (_, lineEnd) => {
  const text = stream.replaceAll('\n', lineEnd);

  test('is read', async () => {
    expect(await framesOf(text)).toEqual(frames);
  });

  test('is read wherever it is cut into pieces', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(text.length), { maxLength: 20 }), async (places) => {
        const cuts = [0, ...places.toSorted((one, other) => one - other), text.length];
        const chunks = cuts.slice(1).map((end, index) => text.slice(cuts[index], end));
        expect(await framesOf(...chunks)).toEqual(frames);
      }),
    );
    expect(await framesOf(...text)).toEqual(frames);
  });
});

test('an event is read as soon as its empty line is there, where lines end with CR', async () => {
  async function* sent() {
    yield 'data: a\r\r';
    throw new Error('nothing more was needed');
  }
  expect((await readFrames(sent()).next()).value).toMatchObject({ data: 'a' });
});
