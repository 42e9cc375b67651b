import { createInterface } from 'node:readline/promises';
import { Failure } from '../exits/failure.ts';

/** Asks a question at the terminal, and returns whether the answer is yes. @throws Failure with exit code 2 if there is no terminal */
export async function isConfirmed(question = 'Apply? [y/N] '): Promise<boolean> {
  if (!process.stdin.isTTY) throw new Failure('there is no terminal for the question; apply the plan with --yes', 2);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(question)).trim());
  } finally {
    terminal.close();
  }
}
