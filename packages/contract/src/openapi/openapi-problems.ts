/** The problems that the OpenAPI document declares for each route. */
import type { Allow } from '../wire/access.ts';
import { errorExplanations } from '../wire/error-explanations.ts';
import { checksNames, type Route } from '../wire/route.ts';

const overRate =
  'The key or its team sent more requests in a minute than the service allows; `Retry-After` tells when to send it again';

/** Returns the problems that depend only on the caller. */
function accessProblems(allow: Allow): Record<number, string> {
  const unauthenticated = errorExplanations.authentication_required;
  if ('run' in allow) {
    const stopping = 'The execution is stopping: only its end can be reported';
    return { 401: unauthenticated, ...(allow.run === 'at_work' ? { 409: stopping } : {}) };
  }
  if ('anyone' in allow) return {};
  return {
    401: allow.publicThings
      ? 'Not public, and no valid key was sent'
      : allow.keylessBytes
        ? 'The key that was sent is not valid'
        : unauthenticated,
    403: 'The team of X-Team-Uid is not yours, or the kind of your key or your role may not call this',
    429: overRate,
  };
}

/**
 * Returns the problems with which a route may answer. They follow from the accepted callers, from the input, and from `errors` of the
 * route.
 */
export function problems(route: Route): Record<number, string> {
  const takesInput = Boolean(route.body ?? route.query ?? route.once);
  const unknownNames = 'With `Prefer: handling=strict`: an unknown query parameter';
  const access = accessProblems(route.allow);
  const ownForbidden = route.errors?.[403];
  return {
    ...(checksNames(route) ? { 400: unknownNames } : {}),
    ...(takesInput ? { 400: 'Malformed request; `errors` names each wrong member' } : {}),
    ...access,
    ...(route.body ? { 413: 'Body too large', 415: 'The body is not JSON' } : {}),
    // Every route has this problem, because Node itself answers 431 before the service looks for a route.
    431: 'The request line and the headers are larger than 16 KB together',
    ...(route.body || route.bodyType
      ? {
          429: `${'user' in route.allow ? `${overRate}. Or there are too many` : 'Too many'} requests with a body at once; \`Retry-After\` tells when to send it again`,
        }
      : {}),
    ...(route.ranges ? { 416: 'No byte is in the Range' } : {}),
    ...(answersFromMemory(route)
      ? {}
      : {
          500: errorExplanations.internal_error,
          503: 'The database cannot be reached, or the disk of the service is full; Retry-After tells when to call again',
        }),
    ...route.errors,
    ...(access[403] && ownForbidden ? { 403: `${ownForbidden}. ${access[403]}` } : {}),
  };
}

/**
 * Returns true if a route answers without the database. These are the routes for anyone that have no parameters and no body, the
 * routes of the schemas of definition files, and the route that begins a sign-on.
 */
const answersFromMemory = ({ allow, body, params, path }: Route): boolean =>
  isOpen(allow) && (path === '/sign-on' || path.startsWith('/factory-files/schemas/') || (!body && !params));

const isOpen = (allow: Allow): boolean => 'anyone' in allow && allow.anyone === 'always';
