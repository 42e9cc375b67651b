/** Reads the code blocks of pages about deployment, so that tests execute them. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { root } from './chart.ts';

/** Returns the code blocks of a page of docs/ that are marked with `kind`, such as `sh`. */
export const blocksOf = (page: string, kind: string): string[] =>
  [
    ...readFileSync(path.join(root, 'docs', page), 'utf8').matchAll(new RegExp(`^\`\`\`${kind}\n(.*?)^\`\`\`$`, 'gms')),
  ].map(([, block = '']) => block);

/** Returns the only one of these blocks that contains the text. */
export function blockWith(page: string, kind: string, text: string): string {
  const found = blocksOf(page, kind).filter((block) => block.includes(text));
  expect(found, `${page}: ${text}`).toHaveLength(1);
  return found[0] ?? '';
}
