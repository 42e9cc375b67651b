import type { FactoryChange } from '@runyard/contract/factory-definitions';
import { harmlessLine } from '../live/harmless.ts';

const signs: Readonly<Record<FactoryChange['action'], string>> = { create: '+', change: '~', delete: '-' };
const maxValueLength = 60;

const shown = (value: unknown): string =>
  value === undefined ? 'nothing' : harmlessLine(JSON.stringify(value), maxValueLength);

/** Returns a line for each change, and one for each of its members. */
export function planLines(changes: readonly FactoryChange[]): string[] {
  return changes.flatMap(({ kind, name, action, members = [] }) => [
    `${signs[action]} ${kind}${kind === 'factory' ? '' : ` ${harmlessLine(name, 400)}`}`,
    ...members.map(({ member, before, after }) =>
      member === 'secret' && before === undefined && after === undefined
        ? '    secret: gets the value that the team has stored'
        : `    ${harmlessLine(member, 200)}: ${shown(before)} → ${shown(after)}`,
    ),
  ]);
}
