/** Calls the API with the key of this tab, which `sessionStorage` keeps until the tab is closed. */
const keyName = 'runyard.key';
const nameName = 'runyard.name';

export const runId = location.pathname.split('/').at(-1);
const api = '/api/v1';

/** The service refused a request; `message` is the detail of its problem document, `retryAfterMs` the time of its Retry-After, else 0. */
export class Refused extends Error {
  constructor(status, message, retryAfterMs) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The service was not reached, or its answer broke off. */
export class Unreached extends Error {
  constructor(cause) {
    super(`The service could not be reached (${cause.message}).`, { cause });
  }
}

export const hasKey = () => sessionStorage.getItem(keyName) !== null;

/** Keeps the key in this tab. `name`: the person who signed in by a link. */
export function keepKey(key, name) {
  sessionStorage.setItem(keyName, key);
  if (name) sessionStorage.setItem(nameName, name);
}

/** Returns the person who signed in by a link; null: the key was typed in. */
export const signedInName = () => sessionStorage.getItem(nameName);

export function dropKey() {
  sessionStorage.removeItem(keyName);
  sessionStorage.removeItem(nameName);
}

async function send(path, options) {
  const response = await fetch(api + path, options).catch((error) => {
    throw options.signal?.aborted ? error : new Unreached(error);
  });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new Refused(
    response.status,
    problem.detail ?? problem.title ?? `The service answered HTTP ${response.status}.`,
    (Number(response.headers.get('retry-after')) || 0) * 1000,
  );
}

/** Sends a request with the key of this tab. @throws Refused, Unreached, or the reason of the signal in the options */
export const call = (path, options = {}) =>
  send(path, {
    ...options,
    headers: { authorization: `Bearer ${sessionStorage.getItem(keyName)}`, ...options.headers },
  });

/** Returns the JSON of an answer. @throws Refused, Unreached */
export async function read(path) {
  const response = await call(path);
  return await response.json().catch((error) => {
    throw new Unreached(error);
  });
}

/** Exchanges the one-time code of a link for the key of a browser session. */
export async function exchangeCode(code) {
  const response = await send('/browser-sessions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  return response.json();
}

// `crypto.randomUUID` exists only on https and localhost.
const randomId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

const unanswered = new Map();

/** Posts `body`. Repeating the same request before an answer came is the same operation to the service. @throws Refused, Unreached */
export async function post(path, body) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const request = `${path} ${text}`;
  const idempotencyKey = unanswered.get(request) ?? randomId();
  unanswered.set(request, idempotencyKey);
  const headers = {
    'idempotency-key': idempotencyKey,
    ...(text === undefined ? {} : { 'content-type': 'application/json' }),
  };
  try {
    await call(path, { method: 'POST', headers, body: text });
    unanswered.delete(request);
  } catch (error) {
    if (error instanceof Refused && error.status < 500) unanswered.delete(request);
    throw error;
  }
}
