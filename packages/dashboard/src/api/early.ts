/** Answers to the requests that `public/app/early.js` sends while this script is still being loaded. */

declare global {
  /** The answers by path and query. Absent if the page has not loaded `early.js`, for example in tests. */
  var earlyAnswers: Map<string, Promise<Response>> | undefined;
}

/**
 * Removes and returns the early answer to a read request. Returns undefined if there is no early answer, or if the answer is a
 * refusal. The client then sends the request itself.
 */
export async function takeEarly(method: string | undefined, url: string): Promise<Response | undefined> {
  if (method !== 'GET') return undefined;
  const path = url.slice(location.origin.length);
  const early = globalThis.earlyAnswers?.get(path);
  globalThis.earlyAnswers?.delete(path);
  const answer = await early?.catch(() => undefined);
  return answer?.ok ? answer : undefined;
}
