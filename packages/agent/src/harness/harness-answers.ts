import type { AgentLink } from '../acp/agent-link.ts';
import { errorText } from './error-text.ts';

/** A failure of a harness. The run shows its message. */
export class HarnessFailure extends Error {
  override name = 'HarnessFailure';
}

/**
 * Resolves with the answer of a harness to `method`. Rejects with a `HarnessFailure` if the harness answers with an error, exits, or
 * is silent for `timeoutMs`.
 */
export type HarnessAnswers = <T>(method: string, request: Promise<T>, timeoutMs?: number) => Promise<T>;

/** Time that a harness gets to exit after its connection has closed. */
const exitAfterCloseMs = 1_000;

export function harnessAnswers(
  harness: string,
  link: Pick<AgentLink, 'exited' | 'closed' | 'strayLines'>,
): HarnessAnswers {
  /**
   * Returns the lines of the harness that were not messages. They are quoted as JSON, so that escape sequences are visible and harmless.
   */
  const strays = () => {
    const lines = link.strayLines ?? [];
    return lines.length === 0
      ? ''
      : ` Its standard output began with text that is not a protocol message: ${lines.map((line) => JSON.stringify(line)).join(', ')}.`;
  };
  return async (method, request, timeoutMs) => {
    let timer: NodeJS.Timeout | undefined;
    const exited = link.exited.then(({ description, stderrTail }) => {
      const end =
        stderrTail.trim() === ''
          ? ' It printed nothing to standard error.'
          : ` End of its standard error:\n${stderrTail.trimEnd()}`;
      throw new HarnessFailure(`The harness ${harness} ${description} before it answered ${method}.${strays()}${end}`);
    });
    const silent = new Promise<never>((_, reject) => {
      if (timeoutMs === undefined) return;
      const text = `The harness ${harness} was started but did not answer ${method} within ${Math.round(timeoutMs / 1000)} s. Check that its command speaks the Agent Client Protocol on standard input and output.`;
      timer = setTimeout(() => reject(new HarnessFailure(text + strays())), timeoutMs);
    });
    // When a harness exits, the closing of its pipe may reject the request before the exit is known. Wait a moment for the exit, because
    // the message about the exit is more precise.
    const answered = request.catch(async (error: unknown) => {
      if (link.closed.aborted)
        await Promise.race([exited, new Promise((resolve) => setTimeout(resolve, exitAfterCloseMs))]);
      throw error;
    });
    try {
      return await Promise.race([answered, exited, silent]);
    } catch (error) {
      if (error instanceof HarnessFailure) throw error;
      throw new HarnessFailure(`The harness ${harness} answered ${method} with an error: ${errorText(error)}`);
    } finally {
      clearTimeout(timer);
      exited.catch(() => {});
      answered.catch(() => {});
    }
  };
}
