import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, it, test } from 'vitest';
import { createRedactor, redacted } from './redactor.ts';

const secret = 'ryr_abcabcabd-secret';

it('the redactor removes a secret from a stream of text, however the stream is split', () => {
  const cuts = fc.array(fc.nat({ max: 60 }), { maxLength: 6 });
  fc.assert(
    fc.property(fc.string({ maxLength: 20 }), fc.string({ maxLength: 20 }), cuts, (before, after, at) => {
      const text = `${before}${secret}${after}`;
      const redactor = createRedactor([secret]);
      let held = '';
      let stored = '';
      let from = 0;
      for (const cut of [...at.sort((a, b) => a - b), text.length]) {
        const piece = redactor.piece(held, text.slice(from, cut));
        stored += piece.text;
        held = piece.held;
        from = Math.max(from, cut);
      }
      stored += held;
      expect(stored).toBe(`${before}${redacted}${after}`);
    }),
  );
});

it('the redactor holds back text that may be the beginning of a secret, and returns the text with the next piece if no secret follows', () => {
  const redactor = createRedactor([secret]);
  const first = redactor.piece('', 'look: ryr_abcabc');
  expect(first).toEqual({ text: 'look: ', held: 'ryr_abcabc' });
  expect(redactor.piece(first.held, ' is no token')).toEqual({ text: 'ryr_abcabc is no token', held: '' });
});

it('the redactor removes secrets in member names, values and JSON texts inside of JSON', () => {
  const quoted = 'pass"word\nwith lines';
  const redactor = createRedactor([secret, quoted]);
  expect(redactor.value({ [secret]: [`a ${secret}`, 1, null] })).toEqual({ [redacted]: [`a ${redacted}`, 1, null] });
  expect(redactor.whole(JSON.stringify({ line: quoted }))).toBe(`{"line":"${redacted}"}`);
});

const key = `-----BEGIN KEY-----\n${'Q7r+w/9Z'.repeat(16)}\n-----END KEY-----\n`;
const values = ['p@ss w0rd/é?&"quoted"', key, '{"private_key":"-----BEGIN\\nabcdef\\n-----END"}'];
/**
 * Functions that write a value in a form in which programs print it.
 */
const spellings: Readonly<Record<string, (value: string) => string>> = {
  'as it is': (value) => value,
  'inside JSON': (value) => JSON.stringify({ value }),
  'inside JSON inside JSON': (value) => JSON.stringify({ line: JSON.stringify({ value }) }),
  'in base64': (value) => Buffer.from(value).toString('base64'),
  'in base64 with lines of 76 characters': (value) =>
    Buffer.from(value).toString('base64').replaceAll(/.{76}/g, '$&\n'),
  'in base64 as part of a header': (value) => Buffer.from(`user:${value}@`).toString('base64'),
  'in base64 after another byte': (value) => Buffer.from(`u${value}`).toString('base64'),
  'in base64url': (value) => Buffer.from(value).toString('base64url'),
  'in a URL': (value) => `https://example.com/?q=${encodeURIComponent(value)}&x=1`,
  'in a form': (value) => new URLSearchParams({ value }).toString(),
  'in hex': (value) => Buffer.from(value).toString('hex'),
  'by PHP': (value) => JSON.stringify(value).replaceAll('/', '\\/').replaceAll('é', '\\u00e9'),
  'by Go': (value) => JSON.stringify(value).replaceAll('&', '\\u0026'),
  'by .NET': (value) =>
    JSON.stringify(value)
      .slice(1, -1)
      .replaceAll('\\"', '\\u0022')
      .replaceAll(/[&+é]/g, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase()}`),
  "by Python's quote": (value) => encodeURIComponent(value).replaceAll('%2F', '/'),
  'in HTML': (value) => value.replaceAll('&', '&amp;').replaceAll('"', '&quot;'),
  'in XML of ASCII': (value) => value.replaceAll('&', '&amp;').replaceAll('é', '&#233;'),
};

/** Returns the length of the longest part of `spelled` that is still in the text. */
function longestLeft(text: string, spelled: string): number {
  let longest = 0;
  for (let from = 0; from < spelled.length; from += 1)
    while (text.includes(spelled.slice(from, from + longest + 1)) && from + longest < spelled.length) longest += 1;
  return longest;
}

it.each(Object.entries(spellings))(
  'the redactor removes a secret that is written %s, wherever the stream is cut',
  (_, spell) => {
    for (const value of values) {
      const redactor = createRedactor([value]);
      const text = `before ${spell(value)} after`;
      for (let cut = 0; cut <= text.length; cut += 1) {
        const first = redactor.piece('', text.slice(0, cut));
        const second = redactor.piece(first.held, text.slice(cut));
        const stored = first.text + second.text + second.held;
        expect(stored, `cut at ${cut}`).toContain(redacted);
        expect(stored.startsWith('before ') && stored.endsWith(' after'), stored).toBe(true);
        for (const part of value.split('\n').filter((line) => line.length > 20))
          expect(longestLeft(stored, part), stored).toBeLessThan(12);
      }
    }
  },
);

const awkward = 'p4$$ "w\'ö`rd\\ €';
const bytesOf = (from: number, to?: number) => new TextDecoder().decode(Buffer.from(awkward).subarray(from, to));

test.each([
  ['export -p of dash', 'dash', 'export V; export -p'],
  ['export -p of bash', 'bash', 'export V; export -p'],
  ['set -x of dash', 'dash', 'set -x; : "$V"'],
  ['set -x of bash', 'bash', 'set -x; : "$V"'],
  ['printf %q of bash', 'bash', 'printf %q "$V"'],
  ['export -p of bash in a locale of ASCII', 'bash', 'export LC_ALL=C V; export -p'],
])('the redactor removes a secret from the output of %s', (_, shell, script) => {
  const { stdout, stderr } = spawnSync(shell, ['-c', script], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', V: awkward },
  });
  const text = createRedactor([awkward]).whole(stdout + stderr);
  expect(text).toContain(redacted);
  expect(text).not.toMatch(/p4|w.*rd\b/);
});

test('the redactor removes a secret even if a program decoded the bytes of one character of the secret in two pieces', () => {
  const redactor = createRedactor([awkward]);
  for (let cut = 1; cut < Buffer.byteLength(awkward); cut += 1) {
    const first = redactor.piece('', `a ${bytesOf(0, cut)}`);
    const second = redactor.piece(first.held, `${bytesOf(cut)} b`);
    expect(first.text + second.text + second.held, `cut at ${cut}`).toBe(`a ${redacted} b`);
  }
});

test('the redactor searches 60 KB of text five times for a secret of many lines in less than two seconds of processor time', () => {
  const redactor = createRedactor([key, ...values]);
  const text = 'Compiling module/of+the=app & <others> in "quotes"\n'.repeat(1_200);
  const before = process.threadCpuUsage().user;
  for (let count = 0; count < 5; count += 1) expect(redactor.piece('', text).text).toBe(text);
  expect(process.threadCpuUsage().user - before).toBeLessThan(2_000_000);
});
