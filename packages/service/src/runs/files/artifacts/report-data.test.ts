import { expect, test } from 'vitest';
import { checkReportData } from './report-data.ts';

const dataOf = (data: Record<string, unknown>) => {
  const checked = checkReportData('FILE', data);
  return checked.ok ? checked.report.data : checked.faults;
};

test('characters that change the direction of text are removed from names and titles of artifacts', () => {
  expect(
    dataOf({ filename: 'invoice\u202efdp.exe', filepath: 'out/\u2066x\u2069.exe', title: '\u200fa\u061c' }),
  ).toMatchObject({
    filename: 'invoicefdp.exe',
    filepath: 'out/x.exe',
    title: 'a',
  });
});

test.each(['\u202e', '.\u200e.', 'a/b', ''])('a file artifact with the name %j is refused', (filename) => {
  expect(dataOf({ filename })).toMatchObject([{ path: 'data.filename' }]);
});
