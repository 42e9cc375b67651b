/** Vitest reporter for bin/test: writes the result of each test. Unlike the json reporter, it writes why a test was skipped. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node';
import { isLong, leftTags } from '../support/long.ts';

export interface VitestReport {
  readonly passed: number;
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
  readonly failures: readonly string[];
  /** Number of tests that `bin/test` leaves to `bin/test-long` or `bin/test-kubernetes`, by file. */
  readonly left: Readonly<Record<string, number>>;
  /** Time of each test file in milliseconds. `cpuMs` is the processor time of the file and of the programs that it started. */
  readonly files: readonly { readonly name: string; readonly durationMs: number; readonly cpuMs: number }[];
}

/** Name of the environment variable that contains the path of the report. */
export const reportVariable = 'CHECKS_REPORT';

function readModule(module: TestModule): VitestReport {
  const { collectDuration, duration } = module.diagnostic();
  const file = path.relative(process.cwd(), module.moduleId);
  const skipped: { name: string; reason: string }[] = [];
  const failures: string[] = [];
  let passed = 0;
  let left = 0;
  for (const test of module.children.allTests()) {
    const result = test.result();
    const name = `${file}: ${test.fullName}`;
    if (result.state === 'passed') passed += 1;
    else if (result.state === 'failed') failures.push(`${name}: ${inOneLine(result.errors)}`);
    else if (result.state === 'skipped' && isLeft(test)) left += 1;
    else if (result.state === 'skipped') {
      skipped.push({
        name,
        reason: result.note ?? (test.options.mode === 'todo' ? 'to do' : 'its condition does not hold here'),
      });
    } else failures.push(`${name} (did not end)`);
  }
  // A file that does not load, or whose hooks fail, counts as failed even if none of its tests failed.
  if (module.state() === 'failed' && failures.length === 0)
    failures.push(`${file}: the file itself: ${inOneLine(module.errors())}`);
  const cpuMs = module.meta().processorMs ?? 0;
  return {
    passed,
    skipped,
    failures,
    left: left === 0 ? {} : { [file]: left },
    files: [{ name: file, durationMs: collectDuration + duration, cpuMs }],
  };
}

/** Returns whether `bin/test` leaves a skipped test to another program. Then the test is not counted as skipped. */
const isLeft = ({ options }: TestCase): boolean =>
  !isLong && (options.tags ?? []).some((tag) => leftTags.some(({ name }) => name === tag));

/** Returns the first 300 characters of the messages, for the list at the end of all checks. */
const inOneLine = (errors: readonly SerializedError[]): string =>
  errors
    .map(({ message }) => message)
    .join('; ')
    .replaceAll(/\s+/g, ' ')
    .slice(0, 300);

/**
 * Returns the messages of a file's failures, each cut after 2,000 characters. They are printed when the file ends, because Vitest
 * prints failures only after the last file.
 */
function reasonsOf(module: TestModule): string[] {
  const ofTests = [...module.children.allTests()].flatMap((test) => test.result().errors ?? []);
  return [...module.errors(), ...ofTests].map(({ message, diff }) => `${message}\n${diff ?? ''}`.slice(0, 2_000));
}

/** @public vitest loads it by its path. */
// biome-ignore lint/style/noDefaultExport: vitest loads a reporter by its default export
export default class ChecksReporter implements Reporter {
  readonly #ended: VitestReport[] = [];

  /** Writes a report of the files that have ended so far. bin/test reads this report if it kills Vitest at the time limit. */
  onTestModuleEnd(module: TestModule): void {
    const read = readModule(module);
    this.#ended.push(read);
    for (const failure of read.failures) console.log(`\nFAILED: ${failure}`);
    for (const reason of reasonsOf(module)) console.log(reason);
    write(this.#ended, []);
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    write(modules.map(readModule), unhandled);
  }
}

function write(read: readonly VitestReport[], unhandled: readonly SerializedError[]): void {
  const file = process.env[reportVariable];
  if (!file) return;
  const report: VitestReport = {
    passed: read.reduce((sum, module) => sum + module.passed, 0),
    skipped: read.flatMap((module) => module.skipped),
    failures: [
      ...read.flatMap((module) => module.failures),
      ...unhandled.map((error) => `error outside of any test: ${error.message}`),
    ],
    left: Object.assign({}, ...read.map((module) => module.left)),
    files: read.flatMap((module) => module.files),
  };
  writeFileSync(file, JSON.stringify(report));
}
