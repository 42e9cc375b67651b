/** Writes the table of routes and credentials into docs/security.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { replaceAccessTable, securityPage } from './security-page.ts';

writeFileSync(securityPage, replaceAccessTable(readFileSync(securityPage, 'utf8')));
