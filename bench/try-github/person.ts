/** Works on GitHub as the person whose token is given, and closes at the end what the person has opened. */

export interface PersonSettings {
  /** Base of the API, without a slash at the end. */
  readonly api: string;
  readonly token: string;
  /** `owner/name`. */
  readonly repository: string;
  readonly signal: AbortSignal;
}

export interface Person {
  /** Sends a request about the repository; `path` is below it. Throws if GitHub does not answer with success. */
  ask<T>(method: string, path: string, body?: object): Promise<T>;
  /** Remembers how to close what was opened. `name`: for the message if it cannot be closed. */
  closeLater(name: string, method: 'PATCH' | 'DELETE', path: string, body?: object): void;
  /** Closes everything, newest first. Returns the names of what could not be closed, with the reasons. */
  closeAll(): Promise<readonly string[]>;
}

const limitMs = 30_000;

export function openPerson({ api, token, repository, signal }: PersonSettings): Person {
  const opened: { readonly name: string; close(): Promise<unknown> }[] = [];

  async function ask<T>(method: string, path: string, body: object | undefined, stop: readonly AbortSignal[]) {
    const answer = await fetch(`${api}/repos/${repository}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/vnd.github+json',
        'content-type': 'application/json',
        'x-github-api-version': '2022-11-28',
      },
      signal: AbortSignal.any([AbortSignal.timeout(limitMs), ...stop]),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok)
      throw new Error(
        `GitHub answered ${answer.status} to ${method} /repos/${repository}${path}: ${text.slice(0, 300)}`,
      );
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  return {
    // A writing request gets no signal: a stop in the middle would lose the id of a new issue, which must be closed at the end.
    ask: (method, path, body) => ask(method, path, body, method === 'GET' ? [signal] : []),
    closeLater: (name, method, path, body) => {
      opened.push({ name, close: () => ask(method, path, body, []) });
    },
    closeAll: async () => {
      const left: string[] = [];
      for (let last = opened.pop(); last !== undefined; last = opened.pop())
        await last.close().catch((error: Error) => left.push(`${last?.name}: ${error.message}`));
      return left;
    },
  };
}
