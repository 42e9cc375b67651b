import { formatDuration } from '../../../terminal/amounts.ts';
import type { Colours } from '../../../terminal/colours.ts';
import { harmless, harmlessLine } from '../../../terminal/harmless.ts';
import { type Lines, margin, outputMargin } from './lines.ts';

/** A finished step of the setup, or a check that has ended. */
export interface FinishedStep {
  readonly step_id: string;
  /** Kind of the step of the setup; `check` for a check. */
  readonly kind: string;
  readonly name: string;
  readonly duration_ms: number;
  readonly exit_code?: number | undefined;
  readonly output_tail?: string | undefined;
  readonly error?: string | undefined;
}

const labelOf = (kind: string): string => (kind === 'harness' || kind === 'check' ? kind : 'setup');

/** Returns a function that shows a finished step, once, although the agent and the timeline report it. */
export function showSteps({ line, flow }: Lines, colours: Colours): (event: FinishedStep) => string {
  const finishedSteps = new Set<string>();
  return (event) => {
    if (finishedSteps.has(event.step_id)) return '';
    finishedSteps.add(event.step_id);
    const failed = event.error !== undefined || (event.exit_code ?? 0) !== 0;
    const mark = failed ? colours.red('✗') : colours.green('✓');
    const exit = event.exit_code === undefined ? '' : `exit ${event.exit_code} · `;
    const label = labelOf(event.kind);
    const head = `${margin}${mark} ${colours.dim(label)} ${harmlessLine(event.name)}  ${colours.dim(exit + formatDuration(event.duration_ms))}`;
    const why = failed ? [event.error ?? '', event.output_tail ?? ''].filter(Boolean).join('\n') : '';
    return line(head) + (why ? flow(event.step_id, `${harmless(why).trimEnd()}\n`, outputMargin) : '');
  };
}
