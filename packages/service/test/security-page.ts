/** Test support: the generated part of docs/security.md. */
import path from 'node:path';
import { renderAccessTable } from './access-table.ts';

export const securityPage = path.resolve(import.meta.dirname, '../../../docs/security.md');

const begin = '<!-- Written by packages/service/test/write-access-table.ts from the routes of the contract. -->';
const end = '<!-- End of the generated table. -->';

/** Returns the page with the table as the routes declare it now. */
export function replaceAccessTable(page: string): string {
  const [before, rest = ''] = page.split(begin);
  const after = rest.split(end)[1];
  if (after === undefined) throw new Error(`docs/security.md must have the lines "${begin}" and "${end}"`);
  return `${before}${begin}\n\n${renderAccessTable()}\n\n${end}${after}`;
}
