/**
 * Reads the output of `git diff-index`: the list of changed files, and the patch of each file. File names are decoded as latin1, which
 * has one character for each byte.
 */
import type { ChangedFile } from '@runyard/contract/runs/changes';

type Status = ChangedFile['status'];

export interface ListedFile {
  readonly path: string;
  readonly oldPath?: string;
  readonly status: Status;
  /** Absent: git does not compare lines of the file. */
  readonly lines?: { readonly additions: number; readonly deletions: number };
}

const statuses: Readonly<Record<string, Status>> = {
  A: 'added',
  D: 'deleted',
  M: 'modified',
  R: 'renamed',
  T: 'type_changed',
};

/**
 * Parses the output of `--raw --numstat -z`, which lists first the state of each file and then the numbers of added and deleted lines of
 * each file.
 */
export function parseFileList(output: string): ListedFile[] {
  const fields = output.split('\0');
  const states: { status: Status; path: string; oldPath?: string }[] = [];
  const lines = new Map<string, { additions: number; deletions: number }>();
  for (let at = 0; at < fields.length; ) {
    const field = fields[at] ?? '';
    at += 1;
    if (field.startsWith(':')) {
      const letter = field.split(' ')[4]?.[0] ?? 'M';
      const paths = letter === 'R' ? fields.slice(at, at + 2) : fields.slice(at, at + 1);
      at += paths.length;
      const path = paths.at(-1) ?? '';
      states.push({
        status: statuses[letter] ?? 'modified',
        path,
        ...(paths.length === 2 ? { oldPath: paths[0] ?? '' } : {}),
      });
      continue;
    }
    const [, additions, deletions, name] = /^(\d+|-)\t(\d+|-)\t(.*)$/s.exec(field) ?? [];
    if (additions === undefined || deletions === undefined) continue;
    // For a renamed file, the name is empty, and the next two fields are the old and the new path.
    const path = name || fields[at + 1] || '';
    if (name === '') at += 2;
    if (additions !== '-') lines.set(path, { additions: Number(additions), deletions: Number(deletions) });
  }
  return states.map((state) => {
    const counted = lines.get(state.path);
    return { ...state, ...(counted ? { lines: counted } : {}) };
  });
}

const escapes: Readonly<Record<string, string>> = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' };

/**
 * Returns the path of a header line such as `+++ b/x` or `+++ "b/\303\244"`. Git quotes paths like C strings. Returns undefined if the
 * header names no file.
 */
function pathOfHeader(line: string): string | undefined {
  const text = line.slice(4).replace(/\t$/, '');
  if (text === '/dev/null') return undefined;
  if (!text.startsWith('"')) return text.slice(2);
  const unquoted = text
    .slice(1, -1)
    .replaceAll(/\\(\d{3}|.)/g, (_, code: string) =>
      code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (escapes[code] ?? code),
    );
  return unquoted.slice(2);
}

export interface PatchReader {
  /** Reads a piece of the output. Returns false if no further piece is needed. */
  read(piece: string): boolean;
  /** Returns a map from path to hunks for the files whose patches are within the limits, and the paths of the other files. */
  end(): { readonly patches: ReadonlyMap<string, string>; readonly tooLarge: ReadonlySet<string> };
}

export interface PatchLimits {
  /** Maximum number of bytes of the patch of one file (`ofFile`), and of the patches of all files (`together`). */
  readonly ofFile: number;
  readonly together: number;
  /** The reader stops after this number of bytes. */
  readonly read: number;
}

/** Splits a patch while it arrives, and keeps the hunks of each file. */
export function patchReader(limits: PatchLimits): PatchReader {
  const patches = new Map<string, string>();
  const tooLarge = new Set<string>();
  let readBytes = 0;
  let keptBytes = 0;
  let rest = '';
  let path: string | undefined;
  /** The hunks of the current file so far. Undefined: the lines still belong to the file's header. */
  let hunks: string | undefined;
  let isCut = false;

  const endFile = () => {
    if (path === undefined || hunks === undefined) return;
    if (isCut || hunks.length > limits.ofFile || keptBytes + hunks.length > limits.together) tooLarge.add(path);
    else {
      patches.set(path, hunks);
      keptBytes += hunks.length;
    }
  };
  const takeLine = (line: string) => {
    // No line of a hunk matches, because such a line begins with a space, `+`, `-` or a backslash.
    if (line.startsWith('diff --git ')) {
      endFile();
      path = undefined;
      hunks = undefined;
      isCut = false;
    } else if (hunks !== undefined) {
      if (hunks.length <= limits.ofFile) hunks += line;
      else isCut = true;
    } else if (line.startsWith('@@')) hunks = line;
    else if (line.startsWith('--- ') || line.startsWith('+++ ')) path = pathOfHeader(line.trimEnd()) ?? path;
  };

  return {
    read(piece) {
      readBytes += piece.length;
      rest += piece;
      const end = rest.lastIndexOf('\n') + 1;
      for (const line of rest.slice(0, end).match(/[^\n]*\n/g) ?? []) takeLine(line);
      rest = rest.slice(end);
      // If an incomplete line is too long, drop its text and mark the file as cut.
      if (rest.length > limits.ofFile && hunks !== undefined) {
        isCut = true;
        rest = rest.slice(0, 1);
      }
      return readBytes < limits.read;
    },
    end() {
      if (rest !== '') takeLine(rest);
      if (readBytes >= limits.read) isCut = true;
      endFile();
      return { patches, tooLarge };
    },
  };
}
