/** Edit distance without transpositions (Levenshtein). */
function distance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const swap = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[right.length] ?? 0;
}

/** Returns at most `count` of `names` that resemble `wanted`, the most similar first. The part after the slash alone may match too. */
export function closest(wanted: string, names: readonly string[], count: number): string[] {
  const short = wanted.slice(0, 200).toLowerCase();
  return names
    .map((name) => {
      const bare = name.slice(name.indexOf('/') + 1);
      return { name, far: Math.min(distance(short, name.toLowerCase()), distance(short, bare.toLowerCase())) };
    })
    .filter(({ far }) => far <= Math.max(2, short.length / 2))
    .sort((left, right) => left.far - right.far)
    .slice(0, count)
    .map(({ name }) => name);
}
