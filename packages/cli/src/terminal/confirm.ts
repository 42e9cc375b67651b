import { createInterface } from 'node:readline/promises';
import { interruptedCode } from '../exits/exit-codes.ts';
import { Failure } from '../exits/failure.ts';

/**
 * Asks a question at the terminal, and returns whether the answer is yes.
 * @throws Failure with exit code 2 if there is no terminal, and with 130 after Ctrl-C or Ctrl-D
 */
export async function isConfirmed(question = 'Apply? [y/N] '): Promise<boolean> {
  if (!process.stdin.isTTY) throw new Failure('there is no terminal for the question; apply the plan with --yes', 2);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new AbortController();
  terminal.once('close', () => closed.abort());
  try {
    return /^y(es)?$/i.test((await terminal.question(question, { signal: closed.signal })).trim());
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError')
      throw new Failure('interrupted at the question', interruptedCode);
    throw error;
  } finally {
    terminal.close();
  }
}
