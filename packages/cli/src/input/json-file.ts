import { Failure } from '../exits/failure.ts';
import { readInput } from './input-file.ts';

/** Reads JSON from a file, or from standard input for `-`. The service checks the content. */
export function jsonFrom(file: string): unknown {
  const from = file === '-' ? 'standard input' : file;
  const text = readInput(file).toString('utf8');
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Failure(`${from} is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}
