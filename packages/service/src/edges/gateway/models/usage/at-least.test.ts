import { describe, expect, test } from 'vitest';
import { turnsDuring } from '../../../../../test/turns.ts';
import { estimateTokens, usedAtLeast } from './at-least.ts';
import { noTokens } from './counts.ts';

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

  test('does not count an image that is split over several parts and slices', async () => {
    const image = 'A'.repeat(600_000);
    expect(await estimate(`12345678 ${image}`, `${'A'.repeat(500)} 1234567 `, image)).toBe(5);
  });

  test('lets other work run between two slices, even if the text has words that are almost as long as images', async () => {
    const text = `${'x'.repeat(999)} `.repeat(8_000);
    const estimated = estimate(text);
    expect(await turnsDuring(estimated)).toBeGreaterThan(text.length / 1024 / 1024);
    expect(await estimated).toBe(text.length / 4);
  });
});

describe('the usage of an answer', () => {
  const passed = { least: 3, estimate: 50 };
  const reportedTokens = { ...noTokens, input: 100, output: 1 };
  test.each([
    ['complete and told', reportedTokens, true, reportedTokens],
    ['complete and not told', noTokens, true, { ...noTokens, input: 20, output: 50 }],
    ['complete and told as zero', { ...noTokens }, true, { ...noTokens, input: 20, output: 50 }],
    ['complete without words', { ...noTokens, input: 100 }, true, { ...noTokens, input: 100 }],
    ['cut and told up to its beginning', reportedTokens, false, { ...reportedTokens, output: 3 }],
    ['cut and not told', noTokens, false, { ...noTokens, input: 20, output: 50 }],
  ])('that is %s', (_, counts, isComplete, used) => {
    expect(usedAtLeast(counts, isComplete, 20, passed)).toEqual(used);
  });
});
