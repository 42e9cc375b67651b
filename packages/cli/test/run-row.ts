import { Command } from 'commander';
import type { Context } from '../src/context/context.ts';
import type { Row } from '../src/route-commands/row.ts';

/** Runs a command of a noun, such as `list --json`, as the program does. @throws CommanderError if the words are wrong */
export async function runRow(rows: readonly Row[], context: Context, ...words: string[]): Promise<void> {
  const noun = new Command('noun').exitOverride().configureOutput({ writeErr: () => {} });
  for (const row of rows) row(noun, () => context);
  await noun.parseAsync(words, { from: 'user' });
}
