import type { FactoryChange } from '@runyard/contract/factories/factory-definitions';
import { harmlessJson, harmlessLine } from '../../terminal/harmless.ts';
import { changedLines, cutAroundDifference, type Difference, differencesOf } from './differences.ts';

const signs: Readonly<Record<FactoryChange['action'], string>> = { create: '+', change: '~', delete: '-' };
const maxValueLength = 80;
const maxLineLength = 160;
/** Maximum number of lines that are shown for one member. */
const maxLines = 40;

/** Returns a line for each change. The line of an update is followed by lines for each changed member. */
export function planLines(changes: readonly FactoryChange[]): string[] {
  return changes.flatMap(({ kind, name, action, members = [] }) => [
    `${signs[action]} ${kind}${kind === 'factory' ? '' : ` ${harmlessLine(name, 400)}`}`,
    ...members.flatMap(memberLines),
  ]);
}

function memberLines({ member, before, after }: NonNullable<FactoryChange['members']>[number]): string[] {
  if (member === 'secret' && before === undefined && after === undefined)
    return ['    secret: gets the value that the team has stored'];
  const lines = differencesOf(before, after).flatMap((difference) => differenceLines(member, difference));
  const more = lines.length - maxLines;
  return more > 1 ? [...lines.slice(0, maxLines), `    … and ${more} more lines; --json shows all of them`] : lines;
}

function differenceLines(member: string, { at, before, after }: Difference): string[] {
  const place = `    ${harmlessLine(member + at, 200)}`;
  if (typeof before === 'string' && typeof after === 'string' && `${before}${after}`.includes('\n'))
    return textLines(place, before, after);
  const [a, b] = cutAroundDifference(written(before), written(after), maxValueLength);
  return [`${place}: ${a} → ${b}`];
}

const written = (value: unknown): string => (value === undefined ? 'nothing' : harmlessJson(value));

/** Returns the lines in which two texts differ. Each line is in quotation marks, so that white space at the end of a line is visible. */
function textLines(place: string, before: string, after: string): string[] {
  return changedLines(before, after).flatMap(({ line, removed, added }) => {
    const pairs = Array.from({ length: Math.max(removed.length, added.length) }, (_, index) =>
      cutAroundDifference(written(removed[index] ?? ''), written(added[index] ?? ''), maxLineLength),
    );
    return [
      `${place}, line ${line}:`,
      ...pairs.slice(0, removed.length).map(([text]) => `      - ${text}`),
      ...pairs.slice(0, added.length).map(([, text]) => `      + ${text}`),
    ];
  });
}
