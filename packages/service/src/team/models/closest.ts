import { editDistance } from '@runyard/contract/wire/edit-distance';

/**
 * Returns at most `count` of `names` that are similar to `wanted`, the most similar first. A name also counts if only its part after the
 * slash is similar.
 */
export function closest(wanted: string, names: readonly string[], count: number): string[] {
  const short = wanted.slice(0, 200).toLowerCase();
  return names
    .map((name) => {
      const bare = name.slice(name.indexOf('/') + 1);
      return { name, far: Math.min(editDistance(short, name.toLowerCase()), editDistance(short, bare.toLowerCase())) };
    })
    .filter(({ far }) => far <= Math.max(2, short.length / 2))
    .sort((left, right) => left.far - right.far)
    .slice(0, count)
    .map(({ name }) => name);
}
