/** Sends requests again that a busy, restarting or unreachable service did not answer. */
import { Refused, Unreached } from './api.js';
import { by } from './elements.js';

const firstWaitMs = 1_000;
const longestWaitMs = 15_000;

/** Returns whether the same request may succeed later: the service was not reached, is busy or does not work now. */
export const mayPass = (error) =>
  error instanceof Unreached || (error instanceof Refused && (error.status === 429 || error.status >= 500));

/** Readers of a service that has restarted do not all come back in the same moment. */
const waitAfter = (tries, { retryAfterMs = 0 }) =>
  Math.max(retryAfterMs, Math.min(longestWaitMs, firstWaitMs * 2 ** tries)) * (1 + Math.random() / 4);

/** Does `work` until it succeeds, and says meanwhile why it has not. @throws an error that stays, such as a refused key */
export async function insist(work) {
  let said;
  for (let tries = 0; ; tries += 1) {
    try {
      const result = await work();
      if (said !== undefined && by('problem').textContent === said) by('problem').textContent = '';
      return result;
    } catch (error) {
      if (!mayPass(error)) throw error;
      said = `${error.message} It is tried again.`;
      by('problem').textContent = said;
      await new Promise((resolve) => setTimeout(resolve, waitAfter(tries, error)));
    }
  }
}
