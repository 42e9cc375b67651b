/** Sends requests about pull requests to the API of a code host. */
import { askCodeHost } from '../../../team/code-hosts/ask.ts';

/** Describes a pull request to open. */
export interface Wanted {
  readonly owner: string;
  readonly repo: string;
  readonly head: string;
  readonly base: string;
  /** False if `base` is only the default: then an open pull request into another branch is used too. */
  readonly isBaseNamed: boolean;
  readonly title: string;
  readonly body: string;
  readonly draft: boolean;
}

/**
 * `refused`: the credential does not allow the request. `conflict`: the host cannot open the pull request. Each `message` is a whole
 * sentence.
 */
export type AtHost =
  | { readonly kind: 'open'; readonly url: string; readonly isNew: boolean }
  | { readonly kind: 'refused' | 'not_found' | 'conflict' | 'unavailable'; readonly message: string };

/** An answer of the API. `json` is undefined if the answer was not JSON or was too long. */
export interface ApiAnswer {
  readonly status: number;
  readonly json: unknown;
}

/** Sends a request to the API. Status 0: the API could not be reached. */
export type AskApi = (method: 'GET' | 'POST', path: string, body?: object) => Promise<ApiAnswer>;

const limitMs = 15_000;
const maxAnswerBytes = 1024 * 1024;

/** Returns a function that sends requests to the API with a token. Redirects are not followed. */
export function askApiWith(
  api: string,
  token: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): AskApi {
  return async (method, path, body) => {
    const bytes = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const answer = await askCodeHost({
      url: new URL(`${api}${path}`),
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...headers,
        ...(bytes && { 'content-type': 'application/json', 'content-length': String(bytes.length) }),
      },
      ...(bytes && { body: bytes }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(limitMs)]),
      maxBytes: maxAnswerBytes,
    }).catch(() => null);
    if (answer === null) return { status: 0, json: undefined };
    try {
      return { status: answer.status, json: JSON.parse(answer.bytes.toString('utf8')) };
    } catch {
      return { status: answer.status, json: undefined };
    }
  };
}

/** Returns a member of an answer if the member is a string. */
export const textOf = (json: unknown, member: string): string | undefined => {
  const value: unknown = typeof json === 'object' && json !== null ? Reflect.get(json, member) : undefined;
  return typeof value === 'string' ? value : undefined;
};

/** Returns the error message in the host's answer, shortened and without control characters. */
export function saidBy(json: unknown): string {
  const parts = [textOf(json, 'message'), textOf(json, 'error')];
  for (const member of ['errors', 'message', 'error']) {
    const list: unknown = typeof json === 'object' && json !== null ? Reflect.get(json, member) : undefined;
    if (Array.isArray(list))
      parts.push(...list.map((each) => (typeof each === 'string' ? each : textOf(each, 'message'))));
  }
  return parts
    .filter((part) => part !== undefined && part !== '')
    .join(': ')
    .replace(/\p{C}+/gu, ' ')
    .slice(0, 300);
}

/** Returns the outcome for a status that has the same meaning for all requests; undefined if the meaning depends on the request. */
export function faultOf({ status, json }: ApiAnswer, { owner, repo }: Wanted): AtHost | undefined {
  const name = `${owner}/${repo}`;
  const hostMessage = saidBy(json);
  const quoted = hostMessage === '' ? '' : ` It says: ${hostMessage}`;
  switch (status) {
    case 401:
      return { kind: 'refused', message: `The code host does not accept the stored credential for ${name}.${quoted}` };
    case 403:
      return {
        kind: 'refused',
        message: `The stored credential may not open pull requests in ${name}. Give it that permission: at GitHub "Pull requests: write", at GitLab the scope "api".${quoted}`,
      };
    case 404:
      return {
        kind: 'not_found',
        message: `The code host has no repository ${name}, or hides it from the stored credential.${quoted}`,
      };
    default:
      if (status >= 300 && status < 400)
        return { kind: 'not_found', message: `${name} was moved or renamed. Change the name in the environment.` };
      if (status === 0 || status === 429 || status >= 500 || json === undefined)
        return {
          kind: 'unavailable',
          message: `The API of the code host ${status === 0 ? 'cannot be reached' : `answered ${status}`} for ${name}.${quoted}`,
        };
      return undefined;
  }
}
