/** Answers to requests that `public/app/early.js` started before this script was loaded. */

declare global {
  /** The answers by path and query. Absent if the page has not loaded `early.js`, for example in tests. */
  var earlyAnswers: Map<string, Promise<Response>> | undefined;
}

/**
 * Returns and removes the early answer to a read. Returns undefined if there is no such answer or the answer is a refusal; the client then sends
 * the request again.
 */
export async function takeEarly(method: string | undefined, url: string): Promise<Response | undefined> {
  if (method !== 'GET') return undefined;
  const path = url.slice(location.origin.length);
  const early = globalThis.earlyAnswers?.get(path);
  globalThis.earlyAnswers?.delete(path);
  const answer = await early?.catch(() => undefined);
  return answer?.ok ? answer : undefined;
}
