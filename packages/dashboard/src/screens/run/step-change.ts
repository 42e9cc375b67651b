/** The changes that an action makes to files, as lines of a diff. */

import { compareTexts, type DiffLine, readPatch } from '../../parts/diff.tsx';
import type { ActionEntry } from './entry.ts';
import { membersOf } from './step-words.ts';

/** The changed lines of an action, and their numbers. */
export interface StepChange {
  readonly lines: readonly DiffLine[];
  readonly added: number;
  readonly deleted: number;
}

/** Matches the head of a file in a patch. */
const head = /^--- .*\n\+\+\+ .*$/m;

/** Returns the lines of a patch of one or more files; undefined if the text is no patch. */
function linesOfPatch(text: string): DiffLine[] | undefined {
  if (!/^(?:Index: |diff --git |--- )/.test(text) || !head.test(text)) return undefined;
  const lines = text.split(new RegExp(head.source, 'gm')).flatMap((file) => readPatch(file));
  return lines.length > 0 ? lines : undefined;
}

const textIn = (members: Readonly<Record<string, unknown>>, ...names: readonly string[]): string | undefined =>
  names.map((name) => members[name]).find((value): value is string => typeof value === 'string');

/** Returns the lines of one replacement. The numbers of lines are not known, because the text before is only a part of the file. */
function linesOfEdit(edit: Readonly<Record<string, unknown>>): DiffLine[] | undefined {
  const before = textIn(edit, 'old_string', 'old_text', 'oldText', 'oldString', 'old_str');
  const after = textIn(edit, 'new_string', 'new_text', 'newText', 'newString', 'new_str', 'content', 'file_text');
  if (after === undefined) return undefined;
  const lines = compareTexts(before ?? '', after.replace(/\n$/, ''));
  return before === undefined || before === '' ? lines : lines.map((line) => ({ ...line, number: undefined }));
}

/** Returns the change of an action; undefined if neither its input nor its output has one. */
export function stepChange(entry: Pick<ActionEntry, 'category' | 'input' | 'output'>): StepChange | undefined {
  if (entry.category !== 'files') return undefined;
  const members = membersOf(entry.input);
  const edits = Array.isArray(members.edits) ? members.edits.map(membersOf) : [members];
  const ofInput = () => {
    const parts = edits.map(linesOfEdit);
    return parts.some((part) => part === undefined) ? undefined : parts.flatMap((part) => part ?? []);
  };
  const diff = typeof members.diff === 'string' ? linesOfPatch(members.diff) : undefined;
  const all = linesOfPatch(entry.output) ?? diff ?? ofInput();
  if (all === undefined) return undefined;
  // A patch begins with the head of its first hunk, which says nothing without the name of a function.
  const lines = all[0]?.kind === 'hunk' && all[0].text === '' ? all.slice(1) : all;
  const count = (kind: DiffLine['kind']) => lines.filter((line) => line.kind === kind).length;
  return { lines, added: count('add'), deleted: count('del') };
}

/** Returns true if the output of an action says the same as its change. */
export const isPatch = (output: string): boolean => linesOfPatch(output) !== undefined;
