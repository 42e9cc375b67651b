/** Answers of the requests that `public/app/early.js` has started before this script was loaded. */

declare global {
  /** By path and query. Absent where the page has another frame, as in tests. */
  var earlyAnswers: Map<string, Promise<Response>> | undefined;
}

/**
 * Returns the early answer to a read, and removes it; undefined: there is none, or it is a refusal, so that the client requests it again.
 */
export async function takeEarly(method: string | undefined, url: string): Promise<Response | undefined> {
  if (method !== 'GET') return undefined;
  const path = url.slice(location.origin.length);
  const early = globalThis.earlyAnswers?.get(path);
  globalThis.earlyAnswers?.delete(path);
  const answer = await early?.catch(() => undefined);
  return answer?.ok ? answer : undefined;
}
