import { readFileSync } from 'node:fs';
import { Failure } from './failure.ts';

/** Reads JSON from a file, or from standard input for `-`. The service checks it. */
export function jsonFrom(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'));
  } catch (error) {
    throw new Failure(`${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
