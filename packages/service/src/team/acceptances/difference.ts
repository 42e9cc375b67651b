import type { ContentDifference } from '@runyard/contract/runs/acceptances';

type Members = Readonly<Record<string, unknown>>;

/** Nesting below which values are compared as a whole. */
const maxDepth = 8;

/** Returns the members of an object, or of a list whose items have different names or paths; undefined: the value has no members. */
function membersOf(value: unknown): Members | undefined {
  if (value === null || typeof value !== 'object') return undefined;
  if (!Array.isArray(value)) return value as Members;
  const keys = value.map((item: unknown) =>
    item !== null && typeof item === 'object' ? (Reflect.get(item, 'name') ?? Reflect.get(item, 'path')) : undefined,
  );
  const isNamed =
    value.length > 0 && keys.every((key) => typeof key === 'string') && new Set(keys).size === keys.length;
  return isNamed ? Object.fromEntries(value.map((item: unknown, index) => [keys[index], item])) : undefined;
}

/**
 * Returns the members that differ between two contents, by the names of the second and then of the first. Objects are compared member by
 * member, other values as a whole. `before` is undefined if there is no earlier content.
 */
export function differencesOf(before: unknown, after: unknown): ContentDifference[] {
  const found: ContentDifference[] = [];
  const compare = (path: readonly string[], one: unknown, other: unknown) => {
    if (JSON.stringify(one) === JSON.stringify(other)) return;
    const [members, others] = [membersOf(one), membersOf(other)];
    const isLeaf = path.length >= maxDepth || (!members && one !== undefined) || (!others && other !== undefined);
    if (!isLeaf) {
      for (const name of new Set([...Object.keys(others ?? {}), ...Object.keys(members ?? {})]))
        compare([...path, name], members?.[name], others?.[name]);
      return;
    }
    // An absent member and null mean the same in stored contents.
    if ((one ?? null) === null && (other ?? null) === null) return;
    found.push({
      path: path.join('.'),
      ...(one === undefined ? {} : { before: one }),
      ...(other === undefined ? {} : { after: other }),
    });
  };
  compare([], before, after);
  return found;
}
