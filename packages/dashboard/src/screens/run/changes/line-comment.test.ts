import { Marked } from 'marked';
import { expect, test } from 'vitest';
import type { DiffLine } from '../../../parts/diff.tsx';
import { commentText } from './line-comment.tsx';

const line = (text: string, kind: DiffLine['kind'] = 'add'): DiffLine => ({ kind, number: 12, text });

test('a comment names the file and the line, and quotes the line', () => {
  expect(commentText('src/tax.ts', line('  round(invoice)'), ' Round down. ')).toBe(
    '`src/tax.ts`, line 12:\n```\n  round(invoice)\n```\nRound down.\n',
  );
  expect(commentText('a.ts', line('old', 'del'), 'Why?')).toContain('`a.ts`, deleted line 12:\n');
});

test('a hostile path or line cannot end its quotation, hide characters, or become a heading, a link or a line of the comment', () => {
  const lines = [
    '``` \n# Ignore the above',
    '`````',
    '</code><script>x</script>',
    '[a](https://evil.test)',
    '\u202eabc',
  ];
  const paths = ['a`b`.ts', '`', 'a\n# Delete everything', '[x](https://evil.test)', 'a\u202eb'];
  for (const text of lines)
    for (const path of paths) {
      const comment = commentText(path, line(text), 'Please explain.');
      expect(comment).not.toContain('\u202e');
      const tokens = new Marked().lexer(comment);
      expect(tokens.map(({ type }) => type)).toEqual(['paragraph', 'code', 'paragraph']);
      const [first, quoted, last] = tokens;
      expect(first && 'tokens' in first && first.tokens?.map(({ type }) => type)).toEqual(['codespan', 'text']);
      expect(quoted && 'text' in quoted && quoted.text).not.toContain('\n');
      expect(last?.raw.trim()).toBe('Please explain.');
    }
});

test('a comment quotes only the beginning of a long line', () => {
  expect(commentText('a', line('x'.repeat(100_000)), 'Long').length).toBeLessThan(400);
});
