/**
 * The standard input of a program that another program keeps running. The parent process asks the program to stop by writing to this input.
 * This module does not load zod.
 */
import type { Readable, Writable } from 'node:stream';

/** Word that asks a program to stop. If the pipe closes without this word, the parent was killed or has crashed, and the kernel closed the pipe. */
const stopWord = 'stop\n';

/** Returns whether this program ends with its parent. */
export const stopsWithParent = (): boolean => process.argv.includes('--stop-with-parent');

/** Asks the program that reads this input to stop. */
export function askToStop(input: Writable | null | undefined): void {
  input?.end(stopWord);
}

/** Calls `end` once, when the input closes. `asked`: the parent asked the program to stop. `crashed`: the parent has ended without asking. */
export function onParentGone(end: (how: 'asked' | 'crashed') => void, input: Readable = process.stdin): void {
  let said = '';
  let isOver = false;
  const over = (): void => {
    if (isOver) return;
    isOver = true;
    end(said === stopWord ? 'asked' : 'crashed');
  };
  input.on('data', (piece: Buffer) => {
    if (said.length <= stopWord.length) said += piece.toString('latin1').slice(0, stopWord.length + 1);
  });
  input.on('error', over);
  input.on('end', over);
}
