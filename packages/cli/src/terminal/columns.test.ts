import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { noColours } from './colours.ts';
import { type Column, fit, table, tabSeparated } from './columns.ts';
import { printList } from './list.ts';

interface Row {
  readonly id: string;
  readonly size: number;
  readonly title: string;
}
const columns: Column<Row>[] = [
  { header: 'ID', text: ({ id }) => id },
  { header: 'SIZE', align: 'right', text: ({ size }) => `${size} B`, raw: ({ size }) => String(size) },
  { header: 'TITLE', flexible: true, text: ({ title }) => title },
];
const rows: Row[] = [
  { id: 'a', size: 5, title: 'short' },
  { id: 'bb', size: 1234, title: '日本語のとても長いタイトルで端末の幅を超えるもの' },
  { id: 'c', size: 0, title: 'a family 👨‍👩‍👧 and a flag 🇯🇵 and e\u0301 and more words than there is room for' },
];

test('a table has a header', () => {
  expect(table(columns, rows.slice(0, 1), 80, noColours)).toBe('ID  SIZE  TITLE\na    5 B  short\n');
});

test.each([[80], [50], [31]])('a table fits a terminal of %d columns, even if it has wide characters', (width) => {
  for (const line of table(columns, rows, width, noColours).trimEnd().split('\n'))
    expect(stringWidth(line)).toBeLessThanOrEqual(width);
});

test('a table shows columns that do not fit on an extra line below the row', () => {
  const lines = table(columns, rows, 22, noColours).split('\n');
  expect(lines.slice(0, 5)).toEqual(['ID    SIZE', 'a      5 B', '  TITLE short', 'bb  1234 B', '  TITLE']);
});

test('a table never cuts sentences, and omits empty sentences', () => {
  const facts: Column<Row>[] = [
    ...columns.slice(0, 2),
    {
      header: 'WHY',
      sentence: true,
      text: ({ title }) => (title === 'short' ? '' : 'no key is set; set one and start again'),
    },
  ];
  expect(table(facts, rows.slice(0, 2), 60, noColours).split('\n')[2]).toBe(
    'bb  1234 B  no key is set; set one and start again',
  );
  expect(table(facts, rows.slice(0, 2), 30, noColours)).toBe(
    'ID    SIZE\na      5 B\nbb  1234 B\n  WHY no key is set; set one\n  and start again\n',
  );
});

test.each([
  ['abcdef', 4, 'abc…'],
  ['abcd', 4, 'abcd'],
  ['日本語', 5, '日本…'],
  ['日本語', 4, '日…'],
  ['👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧', 5, '👨‍👩‍👧👨‍👩‍👧…'],
  ['one two', 5, 'one…'],
])('fit cuts %j to %d columns as %j', (text, room, expected) => expect(fit(text, room)).toBe(expected));

test('tabSeparated separates values by tabs, whatever characters the values contain', () => {
  const hostile = { id: 'a\tb\nc\u001b[31m', size: 5, title: '' };
  expect(tabSeparated(columns, [hostile, ...rows.slice(0, 1)])).toBe('a b c\t5\t\na\t5\tshort\n');
});

const printed = (options: { json?: true }, screen: object) => {
  const written: string[] = [];
  const context = { out: (text: string) => void written.push(text), report: () => {}, colours: noColours };
  printList(context, { columns, rows: rows.slice(0, 1), json: { rows: 1 }, none: 'nothing' }, options, screen);
  return written.join('');
};

test('printList prints a table only in a terminal', () => {
  expect(printed({}, { isTTY: true, columns: 80 })).toContain('TITLE');
  expect(printed({}, {})).toBe('a\t5\tshort\n');
  expect(printed({ json: true }, { isTTY: true, columns: 80 })).toBe('{"rows":1}\n');
});
