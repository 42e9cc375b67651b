import { placeOf } from '@runyard/contract/factories/files/layout';
import type { DefinitionFile } from './read-files.ts';
import { readText } from './read-text.ts';

/** A file of a definition in the form in which it is sent and stored. */
export interface TextFile {
  readonly path: string;
  readonly content: string;
}

/**
 * Returns the files that are sent and stored for a definition without faults. Omits files that do not belong to a definition. Also omits
 * files that have no effect and are not text, such as files of benchmarks, because the database stores only text.
 */
export function storedFiles(all: Iterable<DefinitionFile>): TextFile[] {
  const files: TextFile[] = [];
  for (const { path, content } of all)
    if (placeOf(path).kind !== 'other' && readText(content).ok)
      files.push({ path, content: typeof content === 'string' ? content : Buffer.from(content).toString('utf8') });
  return files;
}
