/** Test support: generates the tables in docs/security.md. */
import path from 'node:path';
import { renderAccessTable } from './access-table.ts';
import { renderRightsTable } from './rights-table.ts';

export const securityPage = path.resolve(import.meta.dirname, '../../../docs/security.md');

const writtenBy = '<!-- Written by bin/generate from';
const tables = [
  { begin: `${writtenBy} the routes of the contract. -->`, render: renderAccessTable },
  { begin: `${writtenBy} the decision about rights. -->`, render: renderRightsTable },
];
const end = '<!-- End of the generated table. -->';

/** Returns the page with new tables, which are made from the present routes and code. */
export function replaceAccessTable(page: string): string {
  return tables.reduce((text, { begin, render }) => {
    const [before, rest = ''] = text.split(begin);
    const at = rest.indexOf(end);
    if (at < 0) throw new Error(`docs/security.md must have the lines "${begin}" and "${end}"`);
    return `${before}${begin}\n\n${render()}\n\n${rest.slice(at)}`;
  }, page);
}
