import { checksNames, type Route } from '@runyard/contract/wire/route';
import { makeSpelling } from '@runyard/contract/wire/spelling';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Fault } from '../../../platform/fault.ts';
import { findUnknown, type IgnoredMember } from './find-unknown.ts';
import { ignoredFields } from './ignored-fields.ts';
import { type KnownMembers, knownMembers } from './known-members.ts';
import { prefersStrict } from './prefer.ts';

const nothingKnown: KnownMembers = { kind: 'object', members: new Map(), spelling: makeSpelling([]) };

/** Returns the query with `metadata[key]=value` as a member of `metadata`, as the schema has it. */
function nested(query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name.replace(/\[.*\]$/s, ''), value]));
}

const partOf = (schema: z.ZodType | undefined): KnownMembers => (schema ? knownMembers(schema) : nothingKnown);

/** Returns the fault that an unknown member is in a request with `Prefer: handling=strict`. */
function faultOf({ path, belongsIn, known }: IgnoredMember): Fault {
  const others = known.length > 0 ? `; known names: ${known.join(', ')}` : '';
  const advice = belongsIn === undefined ? `leave it out${others}` : `it belongs in ${belongsIn}`;
  return { path, message: `is not a known name here; ${advice}` };
}

/**
 * Returns the function that checks the names of a request's query and body. It returns a fault for each misspelt name, and with
 * `Prefer: handling=strict` for each unknown one. Without that preference, it lists the unknown names in the header `X-Ignored-Fields`
 * of the answer.
 */
export function nameChecker(route: Route): (request: FastifyRequest, reply: FastifyReply) => Fault[] {
  if (!checksNames(route)) return () => [];
  const query = partOf(route.query);
  const body = partOf(route.body);
  return (request, reply) => {
    const parts = [
      findUnknown(query, nested(request.query as Record<string, unknown>)),
      // A route that does not read the body does not parse it into members.
      ...(route.body ? [findUnknown(body, request.body)] : []),
    ];
    const faults = parts.flatMap(({ misspelt }) => misspelt);
    const ignored = parts.flatMap((part) => part.ignored);
    if (prefersStrict(request.headers.prefer)) {
      reply.header('preference-applied', 'handling=strict');
      return [...faults, ...ignored.map(faultOf)];
    }
    if (ignored.length > 0) reply.header('x-ignored-fields', ignoredFields(ignored.map(({ path }) => path)));
    return faults;
  };
}
