/** The result of a check, which is one line of the table that bin/test prints at its end. */
export interface Outcome {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  /** Skipped tests with the reason of each skip. */
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
  /** Names of the tests that failed, or other reasons. */
  readonly failures: readonly string[];
  /** Number of tests that `bin/test` leaves to `bin/test-long` or `bin/test-kubernetes`, by file. */
  readonly left?: Readonly<Record<string, number>>;
  readonly durationMs: number;
  /**
   * Processor time of the programs that the check ran. Unlike the duration, this time hardly depends on other programs of the machine.
   */
  readonly cpuMs?: number;
  /** Time of each test file, if the check runs tests. */
  readonly files?: readonly { readonly name: string; readonly durationMs: number; readonly cpuMs: number }[];
}

const seconds = (ms: number): string => (ms / 1000).toFixed(1);

/** The list of test files with the highest processor time has this length. */
const slowestCount = 20;

/** Renders the table, the test files with the highest processor time, the skipped tests with their reasons, the failures, and the sums. */
export function renderOutcomes(outcomes: readonly Outcome[]): string {
  const width = Math.max(...outcomes.map((outcome) => outcome.name.length), 5);
  const lines = ['', `${'check'.padEnd(width)}  passed  failed  skipped  seconds  CPU seconds`];
  for (const outcome of outcomes) {
    const counts = [outcome.passed, outcome.failed, outcome.skipped.length];
    const [passed, failed, skipped] = counts.map(String);
    lines.push(
      `${outcome.name.padEnd(width)}  ${passed?.padStart(6)}  ${failed?.padStart(6)}  ${skipped?.padStart(7)}  ${seconds(outcome.durationMs).padStart(7)}  ${seconds(outcome.cpuMs ?? 0).padStart(11)}`,
    );
  }
  const files = outcomes.flatMap((outcome) => (outcome.files ?? []).map((file) => ({ ...file, check: outcome.name })));
  for (const { check, name, durationMs, cpuMs } of files.sort((a, b) => b.cpuMs - a.cpuMs).slice(0, slowestCount))
    lines.push(`slowest: ${check}: ${name}: ${seconds(durationMs)} seconds, ${seconds(cpuMs)} CPU seconds`);
  for (const [file, count] of outcomes.flatMap(({ left = {} }) => Object.entries(left)))
    lines.push(`left to bin/test-long and bin/test-kubernetes: ${file}: ${count} ${count === 1 ? 'test' : 'tests'}`);
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
