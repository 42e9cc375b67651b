import { placeOf } from '@runyard/contract/factories/files/layout';
import type { DefinitionFile } from './read-files.ts';
import { readText } from './read-text.ts';

/** A file of a definition as clients send it and the service stores it. */
export interface TextFile {
  readonly path: string;
  readonly content: string;
}

/**
 * Returns the files of a definition that clients send and the service stores. `all` must be a definition without faults. Omits files
 * that do not belong to a definition. Also omits files that are not text, because the database stores only text. Such files have no
 * effect on this service; for example, they belong to benchmarks.
 */
export function storedFiles(all: Iterable<DefinitionFile>): TextFile[] {
  const files: TextFile[] = [];
  for (const { path, content } of all)
    if (placeOf(path).kind !== 'other' && readText(content).ok)
      files.push({ path, content: typeof content === 'string' ? content : Buffer.from(content).toString('utf8') });
  return files;
}
