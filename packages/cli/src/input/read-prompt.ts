import { statSync } from 'node:fs';
import { Failure } from '../exits/failure.ts';
import { readInput } from './input-file.ts';

/**
 * Returns the prompt that an argument names: the text of a file, of standard input for `-`, or the argument itself.
 * @throws Failure if the argument looks like the name of a file that does not exist
 */
export function readPrompt(source: string, readStandardInput = () => readInput('-').toString('utf8')): string {
  if (source === '-') return readStandardInput();
  const stat = statSync(source, { throwIfNoEntry: false });
  if (stat?.isDirectory()) throw new Failure(`${source} is a folder; name a file with the prompt`);
  if (stat) return readText(source);
  // A single word with a slash or a file extension is probably a mistyped file name and not a prompt.
  if (!/\s/.test(source) && /[/\\]|\.[a-z]{1,8}$/i.test(source)) throw new Failure(`there is no file ${source}`);
  return source;
}

function readText(file: string): string {
  const bytes = readInput(file);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Failure(`${file} is not UTF-8 text`);
  }
}
