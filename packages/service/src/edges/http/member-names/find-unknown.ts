import { asksForSomething } from '@runyard/contract/wire/without-effect';
import type { Fault } from '../../../platform/fault.ts';
import type { KnownMembers } from './known-members.ts';

/** Members of a request that its schemas do not know. */
export interface UnknownNames {
  /** Members whose names are misspellings of known names. */
  readonly misspelt: readonly Fault[];
  /** All other unknown members. */
  readonly ignored: readonly IgnoredMember[];
  /** Paths of known members that have no effect on this service. */
  readonly withoutEffect: readonly string[];
}

export interface IgnoredMember {
  /** Path of the unknown member, such as `config.colour`. */
  readonly path: string;
  /** Path of another object in the request that knows a member with this name. */
  readonly belongsIn?: string;
  /** Names that the schema knows at this place. */
  readonly known: readonly string[];
}

type KnownObject = Extract<KnownMembers, { kind: 'object' }>;

/** Largest number of unknown names that are compared with the known names, because a comparison blocks the process. */
const maxCompared = 500;
/** Largest number of misspelt names, and of ignored names, in a result. More names would not help a reader. */
const maxNoted = 100;

/** Finds the unknown members of a body or query before the schema parses it. */
export function findUnknown(root: KnownMembers, value: unknown): UnknownNames {
  const misspelt: Fault[] = [];
  const ignored: IgnoredMember[] = [];
  const withoutEffect: string[] = [];
  const path: string[] = [];
  let compared = 0;

  const note = (known: KnownObject, name: string) => {
    compared += 1;
    const suggestion = compared <= maxCompared ? known.spelling.suggest(name) : undefined;
    const place = [...path, name].join('.');
    if (suggestion !== undefined) {
      if (misspelt.length < maxNoted)
        misspelt.push({ path: place, message: `is not a known name; did you mean ${suggestion}?` });
    } else if (ignored.length < maxNoted) {
      const home = [...known.members].find(([, member]) => member.kind === 'object' && member.members.has(name));
      const belongsIn = home && [...path, home[0]].join('.');
      ignored.push({
        path: place,
        known: [...known.members.keys()],
        ...(belongsIn === undefined ? {} : { belongsIn }),
      });
    }
  };

  const visit = (known: KnownMembers, given: unknown): void => {
    if (known.kind === 'no_effect') {
      if (asksForSomething(given) && withoutEffect.length < maxNoted) withoutEffect.push(path.join('.'));
      return;
    }
    if (known.kind === 'free' || typeof given !== 'object' || given === null) return;
    if (known.kind === 'by_member') {
      const branch = known.branches.get((given as Record<string, unknown>)[known.member]);
      if (branch) visit(branch, given);
      return;
    }
    for (const [name, member] of Object.entries(given)) {
      const inside = known.kind === 'each' ? known.of : known.members.get(name);
      if (inside !== undefined) {
        path.push(name);
        visit(inside, member);
        path.pop();
      } else if (known.kind === 'object') {
        note(known, name);
      }
    }
  };
  visit(root, value);
  return { misspelt, ignored, withoutEffect };
}
