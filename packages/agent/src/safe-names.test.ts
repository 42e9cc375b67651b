import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { safeNames } from './safe-names.ts';

describe('safeNames', () => {
  test.each([
    ['report.pdf', 'report.pdf'],
    ['../../etc/passwd', 'passwd'],
    ['/etc/shadow', 'shadow'],
    ['C:\\temp\\x.txt', 'x.txt'],
    ['..', 'attachment'],
    ['.', 'attachment'],
    ['', 'attachment'],
    ['.bashrc', 'bashrc'],
    ['-rf', 'rf'],
    ['a\u0000b\n\u001b[31m.txt', 'a_b__[31m.txt'],
    ['invoice\u202Efdp.exe', 'invoice_fdp.exe'],
    ['x\ud800y', 'x_y'],
    ['Ünïcode 文件.txt', 'Ünïcode 文件.txt'],
  ])('makes %j to %j', (name, safe) => {
    expect(safeNames([name])).toEqual([safe]);
  });

  test('makes names unique, even if they differ only in upper and lower case', () => {
    expect(safeNames(['a.txt', 'a.txt', 'A.TXT', 'a-2.txt'])).toEqual(['a.txt', 'a-2.txt', 'A-3.TXT', 'a-2-2.txt']);
  });

  test('shortens a name to 255 bytes and keeps the extension', () => {
    const [name = ''] = safeNames([`${'ü'.repeat(300)}.json`]);
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
    expect(name.endsWith('ü.json')).toBe(true);
  });

  test('never returns a name that leads out of a folder', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 400 }), { maxLength: 6 }), (names) => {
        const safe = safeNames(names);
        expect(new Set(safe.map((name) => name.toLowerCase())).size).toBe(names.length);
        for (const name of safe) {
          // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there.
          expect(name).not.toMatch(/[/\\\u0000-\u001f]|^\./);
          expect(name).not.toBe('');
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
        }
      }),
    );
  });
});
