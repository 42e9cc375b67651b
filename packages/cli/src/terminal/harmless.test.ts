import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createCleaner, forTerminal, harmless, harmlessJson, harmlessLine } from './harmless.ts';

const esc = '\u001b';

test.each([
  ['a colour', `${esc}[31mred${esc}[0m`, 'red'],
  ['a window title', `${esc}]0;owned\u0007after`, 'after'],
  ['a clipboard write that ends in ST', `${esc}]52;c;aGk=${esc}\\after`, 'after'],
  ['a device control string', `${esc}P$q"p${esc}\\after`, 'after'],
  ['an 8-bit CSI', '\u009b2Jafter', 'after'],
  ['an 8-bit OSC', '\u009d0;x\u009cafter', 'after'],
  ['a cursor report request', `a${esc}[6nb`, 'ab'],
  ['a character set switch', `${esc}(0lqk`, 'lqk'],
  ['a full reset', `${esc}cafter`, 'after'],
  ['bell, backspace and delete', 'a\u0007b\u0008c\u007fd', 'abcd'],
  ['reordering of text', 'a\u202eb\u2066c', 'abc'],
  ['a character that draws nothing', 'a\u00adb\u200bc\u{e0041}d\u3164e', 'abcde'],
  ['a sequence that a newline cuts off', `${esc}[31\nafter`, '\nafter'],
  ['a string that never ends, up to the next line', `${esc}]0;title\nafter`, '\nafter'],
])('harmless removes %s', (_, text, clean) => {
  expect(harmless(text)).toBe(clean);
});

test('harmless keeps text, tabs, newlines and letters of all scripts', () => {
  const text = 'tab\tline\nÄ → 漢字 👩‍💻 ⚠️ می\u200cخواهم \u0601 é ⠀⠂\n';
  expect(harmless(text)).toBe(text);
});

test('harmless converts each redrawn line into a separate line, and CRLF into one newline', () => {
  expect(harmless('10%\r50%\rdone\r\nnext\n')).toBe('10%\n50%\ndone\nnext\n');
});

test('a cleaner removes all control characters except tab and newline, wherever the text is split', () => {
  const nasty = fc.constantFrom(
    esc,
    '\u009b',
    '[',
    ']',
    '0',
    ';',
    'm',
    'P',
    '\\',
    '\u0007',
    '\r',
    '\n',
    '\t',
    'a',
    '\u202e',
    '\u0000',
    '👍',
  );
  const pieces = fc.array(
    fc.oneof(
      fc.array(nasty).map((parts) => parts.join('')),
      fc.string({ unit: 'binary' }),
    ),
  );
  fc.assert(
    fc.property(pieces, (parts) => {
      const cleaner = createCleaner();
      const out = parts.map((part) => cleaner.clean(part)).join('');
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      expect(out).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    }),
  );
});

test('a cleaner removes an escape sequence that is split over several chunks', () => {
  const cleaner = createCleaner();
  expect(cleaner.clean(`a${esc}`) + cleaner.clean('[3') + cleaner.clean('1mb')).toBe('ab');
});

test('harmlessLine shortens a title to one harmless line', () => {
  expect(harmlessLine(`two\nlines ${esc}[2J  here`)).toBe('two lines here');
  expect(harmlessLine('x'.repeat(50), 10)).toBe(`${'x'.repeat(9)}…`);
});

test('harmlessJson escapes all control characters and reordering characters, and parsing the JSON returns the same value', () => {
  const value = { text: `${esc}[31m\u009b2J\u202e\u007f\u00ad\u{e0041}"\\` };
  const json = harmlessJson(value);
  expect(json).toMatch(/^[\x20-\x7e]+$/);
  expect(JSON.parse(json)).toEqual(value);
});

test('forTerminal keeps colours, newlines and tabs, and removes all other control and reordering characters', () => {
  const coloured = `${esc}[1mbold${esc}[22m\t${esc}[31mred${esc}[39m\n`;
  expect(forTerminal(coloured)).toBe(coloured);
  expect(forTerminal(`a${esc}]52;c;Zg==\u0007b${esc}[2J\u009b2J\r\u202ec${esc}[8m${esc}`)).toBe(
    'a]52;c;Zg==b[2J2Jc[8m',
  );
});
