import { expect, test } from 'vitest';
import { answerReader } from './answer-reader.ts';
import { AnswerTooLarge } from './errors.ts';

const reader = (maxBytes = 1000) => answerReader(() => maxBytes);
const read = (text: string, maxBytes?: number) => reader(maxBytes).read(Buffer.from(text));

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const answers: [title: string, text: string, status: number, body: string][] = [
  ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', 200, 'hello'],
  ['an empty body', 'HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n', 201, ''],
  ['a status without a body', 'HTTP/1.1 204 No Content\r\n\r\n', 204, ''],
  ['chunks', `${chunked}3\r\nhel\r\n2;ext=1\r\nlo\r\n0\r\n\r\n`, 200, 'hello'],
  ['chunks with line ends in them', `${chunked}6\r\na\r\nb\r\n\r\n0\r\n\r\n`, 200, 'a\r\nb\r\n'],
  ['trailers', `${chunked}1\r\nx\r\n0\r\nDigest: y\r\n\r\n`, 200, 'x'],
  [
    'an informational answer before it',
    'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
    200,
    'ok',
  ],
];

test.each(answers)('the reader reads an answer with %s, in one piece and byte by byte', (_, text, status, body) => {
  const complete = {
    answer: { status, retryAfter: undefined, body: Buffer.from(body) },
    isReusable: true,
  };
  expect(read(text)).toEqual(complete);
  const { read: next } = reader();
  const bytes = [...Buffer.from(text)].map((byte) => next(Buffer.of(byte)));
  expect(bytes.slice(0, -1).every((each) => each === undefined)).toBe(true);
  expect(bytes.at(-1)).toEqual(complete);
});

test('the reader returns the value of the header retry-after', () => {
  expect(read('HTTP/1.1 503 No\r\nRetry-After:  7 \r\ncontent-length: 0\r\n\r\n')?.answer.retryAfter).toBe('7');
});

test.each([
  ['closes the connection', 'HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 0\r\n\r\n'],
  ['is longer than it says', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab'],
])('does not reuse a connection if its answer %s', (_, text) => {
  expect(read(text)?.isReusable).toBe(false);
});

test.each([
  ['is of another protocol', 'SSH-2.0-x\r\n\r\n'],
  ['has no valid length', 'HTTP/1.1 200 OK\r\ncontent-length: 1x\r\n\r\n'],
  ['has a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n'],
  ['has neither a length nor chunks', 'HTTP/1.1 200 OK\r\n\r\nhello'],
  ['has a chunk without a size', `${chunked}\r\n`],
  ['has a chunk that is longer than its size', `${chunked}1\r\nab\r\n`],
  ['has an endless head', `HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(12_000)}`],
])('rejects an answer that %s', (_, text) => {
  expect(() => read(text)).toThrow(/^the answer /);
});

test.each([
  ['a length', `HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd`],
  ['chunks', `${chunked}2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n`],
])('rejects an answer with %s that is larger than allowed', (_, text) => {
  expect(read(text, 4)?.answer.body.toString()).toBe('abcd');
  expect(() => read(text, 3)).toThrow(AnswerTooLarge);
});
