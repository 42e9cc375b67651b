/**
 * Marks of files that the person has viewed. This browser keeps them. A mark belongs to one version of a file: if the agent changes the file
 * again, the file is no longer viewed. Marks are hashes, so the next person of the browser reads no names of files.
 */
import type { ChangedFile } from '@runyard/contract/runs/changes';
import { useState } from 'react';
import { keep, readKept } from '../../../api/kept.ts';

/** Maximum number of marks that a browser keeps. The oldest marks are dropped. */
const maxMarks = 2_000;
const name = 'viewed';

/** Returns a hash of 53 bits. It is no protection: a collision would only mark a file as viewed. */
function hashOf(text: string): string {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  return ((b >>> 0) * 2 ** 21 + ((a >>> 0) & (2 ** 21 - 1))).toString(36);
}

/** The person, the run and the repository of a file. */
export interface FilePlace {
  readonly person: string;
  readonly run: string;
  readonly repository: string;
}

const markOf = ({ person, run, repository }: FilePlace, { path, status, additions, patch }: ChangedFile): string =>
  hashOf(JSON.stringify([person, run, repository, path, status, additions, patch]));

const readMarks = (): string[] => (readKept(name) ?? '').split(' ').filter((mark) => mark !== '');

/** The files that a person has viewed. */
export interface Viewed {
  readonly has: (place: FilePlace, file: ChangedFile) => boolean;
  readonly set: (place: FilePlace, file: ChangedFile, isViewed: boolean) => void;
}

/** Reads and sets the marks of this browser. */
export function useViewed(): Viewed {
  const [marks, setMarks] = useState(() => new Set(readMarks()));
  return {
    has: (place, file) => marks.has(markOf(place, file)),
    set: (place, file, isViewed) => {
      const mark = markOf(place, file);
      // Another tab may have set marks since this tab has read them.
      const others = readMarks().filter((each) => each !== mark);
      const all = isViewed ? [...others, mark].slice(-maxMarks) : others;
      keep(name, all.join(' '));
      setMarks(new Set(all));
    },
  };
}
