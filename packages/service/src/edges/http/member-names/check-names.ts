import { checksNames, type Route } from '@runyard/contract/wire/route';
import { makeSpelling } from '@runyard/contract/wire/spelling';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Fault } from '../../../platform/fault.ts';
import { findUnknown, type IgnoredMember } from './find-unknown.ts';
import { type KnownMembers, knownMembers } from './known-members.ts';

/** Maximum of members in the header. */
const maxNamed = 20;
const maxPathLength = 100;

/** Returns a String of RFC 9651, 3.3.3. If the text has characters other than printable ASCII, returns a Display String (3.3.8). */
function structured(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
  const encoded = encodeURIComponent(text.toWellFormed()).replaceAll(/%[0-9A-F]{2}/g, (octet) => octet.toLowerCase());
  return `%"${encoded}"`;
}

/**
 * Returns the value of `X-Ignored-Fields`: a List of Strings (RFC 9651), each the path of a member that the service does not
 * know. Long paths are cut. Above 20 members, the token `more` is the last item.
 */
function ignoredFields(paths: readonly string[]): string {
  const named = paths.slice(0, maxNamed).map((path) => structured(path.slice(0, maxPathLength)));
  return [...named, ...(paths.length > maxNamed ? ['more'] : [])].join(', ');
}

const nothingKnown: KnownMembers = { kind: 'object', members: new Map(), spelling: makeSpelling([]) };

/** Returns the query with each `metadata[key]=value` as a member of the object `metadata`, because the schema has this object. */
function nested(query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name.replace(/\[.*\]$/s, ''), value]));
}

const partOf = (schema: z.ZodType | undefined): KnownMembers => (schema ? knownMembers(schema) : nothingKnown);

/** Returns the fault of an unknown member in a request with `Prefer: handling=strict`. */
function faultOf({ path, belongsIn, known }: IgnoredMember): Fault {
  const others = known.length > 0 ? `; known names: ${known.join(', ')}` : '';
  const advice = belongsIn === undefined ? `leave it out${others}` : `it belongs in ${belongsIn}`;
  return { path, message: `is not a known name here; ${advice}` };
}

/**
 * Returns the function that checks the names of a request's query and body. The function returns a fault for each misspelt name, and with
 * `Prefer: handling=strict` also for each unknown name. It lists the members without effect in the header `X-Ignored-Fields` of the
 * answer, and without that preference also the unknown names.
 */
export function nameChecker(route: Route): (request: FastifyRequest, reply: FastifyReply) => Fault[] {
  if (!checksNames(route)) return () => [];
  const query = partOf(route.query);
  const body = partOf(route.body);
  return (request, reply) => {
    const parts = [
      findUnknown(query, nested(request.query as Record<string, unknown>)),
      // The body is not parsed into members if the route does not read it.
      ...(route.body ? [findUnknown(body, request.body)] : []),
    ];
    const faults = parts.flatMap(({ misspelt }) => misspelt);
    const ignored = parts.flatMap((part) => part.ignored);
    const withoutEffect = parts.flatMap((part) => part.withoutEffect);
    const list = (paths: readonly string[]) => {
      if (paths.length > 0) reply.header('x-ignored-fields', ignoredFields(paths));
    };
    if (prefersStrict(request.headers.prefer)) {
      reply.header('preference-applied', 'handling=strict');
      list(withoutEffect);
      return [...faults, ...ignored.map(faultOf)];
    }
    list([...ignored.map(({ path }) => path), ...withoutEffect]);
    return faults;
  };
}

/**
 * Returns whether a `Prefer` header asks for `handling=strict` (RFC 7240, 4.4). If there are several `handling`
 * preferences, the first one counts (RFC 7240, 2).
 */
function prefersStrict(header: string | string[] | undefined): boolean {
  const preferences = [header ?? []].flat().flatMap((line) => line.slice(0, 1000).split(','));
  const handling = preferences
    .map((preference) => /^\s*handling\s*=\s*"?([a-z]+)"?\s*(;|$)/i.exec(preference)?.[1])
    .find((value) => value !== undefined);
  return handling?.toLowerCase() === 'strict';
}
