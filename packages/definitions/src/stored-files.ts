import { placeOf } from '@runyard/contract/factories/files/layout';
import type { DefinitionFile } from './read-files.ts';
import { readText } from './read-text.ts';

/** A file of a definition in the form in which it is sent and stored. */
export interface TextFile {
  readonly path: string;
  readonly content: string;
}

/**
 * Returns the files of a definition without faults that are sent and stored. Leaves out files that belong to no definition, and files
 * without effect, such as those of benchmarks, that are no text: the database stores only text.
 */
export function storedFiles(all: Iterable<DefinitionFile>): TextFile[] {
  const files: TextFile[] = [];
  for (const { path, content } of all)
    if (placeOf(path).kind !== 'other' && readText(content).ok)
      files.push({ path, content: typeof content === 'string' ? content : Buffer.from(content).toString('utf8') });
  return files;
}
