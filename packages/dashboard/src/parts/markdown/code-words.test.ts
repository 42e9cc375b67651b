import { expect, test } from 'vitest';
import { readCode } from './code-words.ts';

test('finds the words of each line, also of words of several lines', () => {
  const [lines] = readCode('src/a.ts', ['const a = 1; // one\n/* two\nlines */ return "x";']) ?? [];
  expect(lines).toEqual([
    [['const', 'keyword'], [' a = '], ['1', 'number'], ['; '], ['// one', 'comment']],
    [['/* two', 'comment']],
    [['lines */', 'comment'], [' '], ['return', 'keyword'], [' '], ['"x"', 'string'], [';']],
  ]);
});

test('keeps each text and each line', () => {
  const texts = ['', 'a\n\n', 'def f():\n  """doc\n  """\n'];
  const read = readCode('f.py', texts) ?? [];
  expect(read.map((lines) => lines.map((words) => words.map(([text]) => text).join('')).join('\n'))).toEqual(texts);
});

test.each(['Dockerfile.unknown', 'a.xyz', 'LICENSE', 'a.', ''])(
  'returns nothing for the unknown language of %s',
  (name) => {
    expect(readCode(name, ['a'])).toBeUndefined();
  },
);

test.each(['a.TSX', 'b.yml', 'Makefile', 'src/c.rs', 'd.sh', 'e.json', 'f.sql', 'g.html'])(
  'knows the language of %s',
  (name) => {
    expect(readCode(name, ['a: 1'])).toHaveLength(1);
  },
);
