/**
 * The groups in a provider's answer. `unknown`: the answer does not say in which groups the person is; `why` is a part of a sentence. This
 * differs from an empty list, which says that the person is in no group.
 */
export type Groups =
  | { readonly kind: 'groups'; readonly names: readonly string[] }
  | { readonly kind: 'unknown'; readonly why: string };

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the claim: a member with this whole name, or the member at a path of names with dots between them. */
function claimAt(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let found: unknown = claims;
  for (const part of name.split('.')) found = isObject(found) && Object.hasOwn(found, part) ? found[part] : undefined;
  return found;
}

/** Providers name groups by texts, or by objects with an id or a name. The id comes first, because people can choose names. */
function nameOf(entry: unknown): string | undefined {
  const name = isObject(entry) ? (entry.value ?? entry.id ?? entry.name) : entry;
  return typeof name === 'string' ? name : undefined;
}

/**
 * Reads the groups from the claims of a person. The claim can be a list of texts or objects, one text, a text with a list in JSON, or an
 * object whose members are the groups (roles of Zitadel).
 */
export function groupsIn(claims: Readonly<Record<string, unknown>>, claim: string): Groups {
  const value = claimAt(claims, claim);
  const { _claim_names: elsewhere } = claims;
  if (value === undefined || value === null) {
    if (isObject(elsewhere) && Object.hasOwn(elsewhere, claim))
      return {
        kind: 'unknown',
        why: `the provider leaves ${claim} out because the person is in too many groups (_claim_names): configure the provider to send only the groups of this application, or its roles`,
      };
    return {
      kind: 'unknown',
      why: `the answer has no claim ${claim} (some providers omit the claim for people without groups)`,
    };
  }
  if (typeof value === 'string' && value.startsWith('[')) {
    try {
      const list: unknown = JSON.parse(value);
      if (Array.isArray(list)) return listed(list);
    } catch {
      // The value is no JSON, so it is the name of a group.
    }
  }
  if (typeof value === 'string') return { kind: 'groups', names: [value] };
  if (Array.isArray(value)) return listed(value);
  if (isObject(value)) return { kind: 'groups', names: Object.keys(value) };
  return { kind: 'unknown', why: `the claim ${claim} is a ${typeof value}, not a list` };
}

const listed = (list: readonly unknown[]): Groups => ({
  kind: 'groups',
  names: list.map(nameOf).filter((name) => name !== undefined),
});
