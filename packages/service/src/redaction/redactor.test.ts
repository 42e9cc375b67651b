import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createRedactor, redacted } from './redactor.ts';

const secret = 'ryr_abcabcabd-secret';

it('removes a secret from text wherever a stream is cut', () => {
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

it('returns held text with the next piece where no secret followed', () => {
  const redactor = createRedactor([secret]);
  const first = redactor.piece('', 'look: ryr_abcabc');
  expect(first).toEqual({ text: 'look: ', held: 'ryr_abcabc' });
  expect(redactor.piece(first.held, ' is no token')).toEqual({ text: 'ryr_abcabc is no token', held: '' });
});

it('redacts member names, values and JSON-escaped secrets inside JSON', () => {
  const quoted = 'pass"word\nwith lines';
  const redactor = createRedactor([secret, quoted]);
  expect(redactor.value({ [secret]: [`a ${secret}`, 1, null] })).toEqual({ [redacted]: [`a ${redacted}`, 1, null] });
  expect(redactor.whole(JSON.stringify({ line: quoted }))).toBe(`{"line":"${redacted}"}`);
});
