import { describe, expect, test } from 'vitest';
import { turnsDuring } from '../../../../../test/turns.ts';
import { estimateTokens } from './at-least.ts';

const estimate = (...parts: string[]) => estimateTokens(parts.map((part) => Buffer.from(part)));

describe('the estimate of a prompt', () => {
  test.each([
    ['nothing', '', 0],
    ['text, four bytes a token', '{"a":"bé"}', 3],
    ['a word of 999 letters', 'x'.repeat(999), 250],
    ['an image in base64, which is left out', `"${'aB3+/=_-'.repeat(125)}"`, 1],
    ['text behind an image', `${'x'.repeat(1000)}"text"`, 2],
  ])('of %s', async (_, text, tokens) => {
    expect(await estimate(text)).toBe(tokens);
  });

  test('leaves out an image that lies in several parts and slices', async () => {
    const image = 'A'.repeat(600_000);
    expect(await estimate(`12345678 ${image}`, `${'A'.repeat(500)} 1234567 `, image)).toBe(5);
  });

  test('lets other work have its turn, also where words are almost as long as images', async () => {
    const text = `${'x'.repeat(999)} `.repeat(8_000);
    const estimated = estimate(text);
    expect(await turnsDuring(estimated)).toBeGreaterThan(text.length / 1024 / 1024);
    expect(await estimated).toBe(text.length / 4);
  });
});
