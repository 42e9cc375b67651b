/** What a BLOCKED run asks, and how to answer it. Pure. */
import type { BlockedOn } from '@runyard/contract/approvals';
import type { Colours } from './colours.ts';
import { harmless, harmlessLine } from './harmless.ts';

const longest = 30;

/** The whole of what is asked: nobody should approve what was cut without knowing it. */
export function questionLines(asked: Pick<BlockedOn, 'kind' | 'title' | 'options' | 'action'>): string[] {
  const what =
    asked.kind === 'question'
      ? 'asks'
      : `asks for permission to use ${harmlessLine(asked.action?.name ?? 'something', 60)}`;
  const lines = harmless(asked.title).trimEnd().split('\n');
  const shown = lines.slice(0, longest);
  if (lines.length > shown.length)
    shown.push(`… ${lines.length - shown.length} more lines: bin/runyard runs get shows all`);
  return [
    `${what}:`,
    ...shown.map((line) => `  ${line}`),
    ...(asked.options ?? []).map((option) => `  - ${harmlessLine(option, 200)}`),
  ];
}

/** One line per way to answer. */
export function answerLines(runId: string, kind: BlockedOn['kind'], colours: Colours): string[] {
  const command = (words: string, about: string) =>
    `${colours.cyan(`bin/runyard ${words}`)}${about ? colours.dim(`  ${about}`) : ''}`;
  if (kind === 'question') return [command(`send ${runId} 'ANSWER'`, '')];
  return [command(`approve ${runId}`, ''), command(`deny ${runId} ['WHY']`, '')];
}
