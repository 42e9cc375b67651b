/** Patterns of files that a check in a fresh sandbox takes from the base commit. */

/** Returns true if a text is a pattern of paths: parts between slashes, without `.`, `..` and characters with a meaning in other globs. */
export const isTrustedPath = (text: string): boolean =>
  !/[\\[\]{}!\0]/.test(text) && text.split('/').every((part) => part !== '' && part !== '.' && part !== '..');

/**
 * Returns true if the path matches the pattern, or is below a folder that matches it. `**` stands for any number of parts of the path, `*` for any text within a part,
 * and `?` for one character. Names that begin with a dot are no exception. Case counts.
 */
export function matchesTrustedPath(path: string, pattern: string): boolean {
  const parts = path.split('/');
  /** Positions in the parts of the path that the parts of the pattern so far can have reached. */
  let reached = new Set([0]);
  for (const part of pattern.split('/')) {
    const next = new Set<number>();
    for (const at of reached) {
      if (part === '**') for (let to = at; to <= parts.length; to += 1) next.add(to);
      else if (at < parts.length && matchesPart(parts[at] ?? '', part)) next.add(at + 1);
    }
    reached = next;
  }
  return reached.size > 0 && !(reached.size === 1 && reached.has(0));
}

/** Compares one part of a path with one part of a pattern. Takes time in proportion to the product of their lengths. */
function matchesPart(text: string, pattern: string): boolean {
  let [at, star, mark] = [0, -1, 0];
  let index = 0;
  while (index < text.length) {
    if (pattern[at] === '*') [star, mark, at] = [at, index, at + 1];
    else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[index])) {
      at += 1;
      index += 1;
    } else if (star === -1) return false;
    else {
      mark += 1;
      [at, index] = [star + 1, mark];
    }
  }
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}
