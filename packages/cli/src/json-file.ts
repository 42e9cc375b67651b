import { readFileSync } from 'node:fs';
import { Failure } from './failure.ts';

/** Reads JSON from a file, or from standard input for `-`. The service checks it. */
export function jsonFrom(file: string): unknown {
  const from = file === '-' ? 'standard input' : file;
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new Failure(`there is no file ${from}`);
    throw new Failure(`cannot read ${from}: ${error instanceof Error ? error.message : String(error)}`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Failure(`${from} is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
