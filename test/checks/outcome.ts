/** What a check came to; one line of the table at the end. */
export interface Outcome {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  /** Each with its reason. */
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
  /** Names of what failed. */
  readonly failures: readonly string[];
  readonly durationMs: number;
}

/** The table, what failed, what was skipped and why, and as last line the sums. */
export function renderOutcomes(outcomes: readonly Outcome[]): string {
  const width = Math.max(...outcomes.map((outcome) => outcome.name.length), 5);
  const lines = ['', `${'check'.padEnd(width)}  passed  failed  skipped  seconds`];
  for (const outcome of outcomes) {
    const counts = [outcome.passed, outcome.failed, outcome.skipped.length];
    const [passed, failed, skipped] = counts.map(String);
    lines.push(
      `${outcome.name.padEnd(width)}  ${passed?.padStart(6)}  ${failed?.padStart(6)}  ${skipped?.padStart(7)}  ${(outcome.durationMs / 1000).toFixed(1).padStart(7)}`,
    );
  }
  for (const { name, skipped } of outcomes) {
    for (const test of skipped) lines.push(`skipped: ${name}: ${test.name}: ${test.reason}`);
  }
  for (const { name, failures } of outcomes) {
    for (const failure of failures) lines.push(`FAILED: ${name}: ${failure}`);
  }
  const sum = (count: (outcome: Outcome) => number) => outcomes.reduce((total, outcome) => total + count(outcome), 0);
  lines.push('');
  lines.push(`${sum((o) => o.passed)} passed, ${sum((o) => o.failed)} failed, ${sum((o) => o.skipped.length)} skipped`);
  return `${lines.join('\n')}\n`;
}
