/** Endpoints of models: provider, then the path of the provider's API. Other paths of the gateway (git, MCP) cannot be reached here. */
const modelPath = /^\/(?:anthropic|openai|google|local)\/[A-Za-z0-9._:/-]+$/;

/**
 * Returns the path and query at the service for a request of a harness; undefined: the forwarder does not pass it on. Google's clients
 * may write the colon of a method as `%3A`.
 */
export function gatewayTarget(requestTarget: string): string | undefined {
  const [path = '', ...query] = requestTarget.split('?');
  const plain = path.replace(/%3a/gi, ':');
  if (!modelPath.test(plain) || plain.split('/').some((segment) => segment === '.' || segment === '..'))
    return undefined;
  const parameters = new URLSearchParams(query.join('?'));
  // Google's clients may put the key here.
  parameters.delete('key');
  const text = parameters.toString();
  return `/api/v1/gateway${plain}${text === '' ? '' : `?${text}`}`;
}

/** Returns true if the path asks a model for an answer, which costs money; false for lists and for counting tokens. */
export const asksModel = (target: string): boolean =>
  /\/(?:messages|responses|chat\/completions)(?:\?|$)|:(?:stream)?generateContent(?:\?|$)/i.test(target);

const host = /^[A-Za-z0-9._-]{1,253}(?::\d{1,5})?$|^\[[0-9A-Fa-f:.]{2,45}\](?::\d{1,5})?$/;

/**
 * Returns host and port that a program wants to reach through a proxy, in a form that may be shown; undefined: the target is malformed.
 */
export const shownHost = (wanted: string): string | undefined => (host.test(wanted) ? wanted.toLowerCase() : undefined);
