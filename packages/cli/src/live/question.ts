/** What a run asks, and how to answer it. Pure. */
import type { BlockedOn } from '@runyard/contract/approvals';
import type { RunItem } from '@runyard/contract/runs';
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

/** What is asked, in a line that may hold anything. A run that is not BLOCKED has another message: that of its failed setup. */
export function questionLine({ state, status_message }: RunItem, { kind, title, action }: BlockedOn): string {
  if (state === 'BLOCKED' && status_message) return status_message.message;
  return kind === 'question' ? `asks: ${title}` : `asks for permission to use ${action?.name ?? 'something'}: ${title}`;
}

/** One line per way to answer. */
export function answerLines(runId: string, kind: BlockedOn['kind'], colours: Colours): string[] {
  const command = (words: string, about: string) =>
    `${colours.cyan(`bin/runyard ${words}`)}${about ? colours.dim(`  ${about}`) : ''}`;
  if (kind === 'question') return [command(`send ${runId} 'ANSWER'`, '')];
  return [command(`approve ${runId}`, ''), command(`deny ${runId} ['WHY']`, '')];
}
