/** The names that a schema knows at each place, derived from the schema once. */

import { makeSpelling, type Spelling } from '@runyard/contract/wire/spelling';
import { isWithoutEffect } from '@runyard/contract/wire/without-effect';
import type { z } from 'zod';

/** The names that the members of a value may have. `free`: a map whose names the caller chooses, or a value without members. */
export type KnownMembers =
  | { readonly kind: 'free' }
  /** A member that the service knows, but that has no effect. */
  | { readonly kind: 'no_effect' }
  | { readonly kind: 'object'; readonly members: ReadonlyMap<string, KnownMembers>; readonly spelling: Spelling }
  | { readonly kind: 'each'; readonly of: KnownMembers }
  | { readonly kind: 'by_member'; readonly member: string; readonly branches: ReadonlyMap<unknown, KnownMembers> };

const free: KnownMembers = { kind: 'free' };

/** The parts of zod's definitions that this file reads. */
interface Definition {
  readonly type: string;
  readonly innerType?: z.core.$ZodType;
  readonly in?: z.core.$ZodType;
  readonly element?: z.core.$ZodType;
  readonly valueType?: z.core.$ZodType;
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>;
  readonly catchall?: z.core.$ZodType;
  readonly options?: readonly z.core.$ZodType[];
  readonly discriminator?: string;
}

const definitionOf = (schema: z.core.$ZodType) => schema._zod.def as unknown as Definition;

function ofObject(members: ReadonlyMap<string, KnownMembers>): KnownMembers {
  return { kind: 'object', members, spelling: makeSpelling([...members.keys()]) };
}

/** Returns the known names for values of either schema: a name is known if one of the schemas has it. */
function either(a: KnownMembers, b: KnownMembers): KnownMembers {
  if (a.kind === 'object' && b.kind === 'object') {
    const members = new Map(a.members);
    for (const [name, known] of b.members) {
      const other = members.get(name);
      members.set(name, other ? either(other, known) : known);
    }
    return ofObject(members);
  }
  if (a.kind === 'each' && b.kind === 'each') return { kind: 'each', of: either(a.of, b.of) };
  // If one schema is a text or a number and the other is an object, only the object has names.
  if (a.kind === 'free') return b;
  return b.kind === 'free' ? a : free;
}

function ofUnion({ options = [], discriminator }: Definition): KnownMembers {
  if (discriminator === undefined) return options.map(knownMembers).reduce(either, free);
  const branches = options.flatMap((option) => {
    const values = option._zod.propValues?.[discriminator] ?? [];
    const known = knownMembers(option);
    return [...values].map((value) => [value, known] as const);
  });
  return { kind: 'by_member', member: discriminator, branches: new Map(branches) };
}

/** Returns the names that a schema has. Maps with free names, such as metadata, variables and headers, are never checked. */
export function knownMembers(schema: z.core.$ZodType): KnownMembers {
  const definition = definitionOf(schema);
  const { innerType, element, valueType, shape = {}, catchall } = definition;
  if (isWithoutEffect(schema)) return { kind: 'no_effect' };
  switch (definition.type) {
    case 'object': {
      // A catch-all with a type makes the object a map. A catch-all `unknown` only keeps members of newer versions.
      if (catchall && !['unknown', 'never'].includes(definitionOf(catchall).type)) return free;
      return ofObject(new Map(Object.entries(shape).map(([name, member]) => [name, knownMembers(member)])));
    }
    case 'array':
      return element ? { kind: 'each', of: knownMembers(element) } : free;
    case 'record':
      return valueType ? { kind: 'each', of: knownMembers(valueType) } : free;
    case 'union':
      return ofUnion(definition);
    case 'pipe':
      return definition.in ? knownMembers(definition.in) : free;
    default:
      return innerType ? knownMembers(innerType) : free;
  }
}
