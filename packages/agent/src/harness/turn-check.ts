import type { HarnessOutcome } from '../acp/outcome.ts';
import type { ServiceConnection } from '../service/connection.ts';
import { readBody } from '../service/connection.ts';
import type { Forwarder } from './forwarder/forwarder.ts';
import { type ModelRefusal, refusalSentence } from './forwarder/refusals.ts';

/**
 * Finds causes of a failed turn that the harness itself does not report: refusals of the gateway, and processes that the kernel killed
 * because of the memory limit.
 */
export interface TurnCheck {
  begin(): Promise<void>;
  /** Returns the outcome of the turn with the causes that were found. */
  explain(outcome: HarnessOutcome): Promise<HarnessOutcome>;
}

/** Path at which the relay of Runyard's own worker reports the memory of the sandbox. Other workers have no such path. */
const memoryPath = '/sandbox/memory';
const memoryTimeoutMs = 2_000;

interface SandboxMemory {
  readonly oomKills: number;
  readonly memoryMb: number;
}

export function turnCheck(
  connection: ServiceConnection,
  forwarder: () => Forwarder | undefined,
  onMemory: (memory: { readonly memory_mb: number }) => void,
): TurnCheck {
  let killsBefore = 0;
  return {
    async begin() {
      forwarder()?.beginTurn();
      killsBefore = (await readMemory(connection))?.oomKills ?? 0;
    },
    async explain(outcome) {
      if (outcome.kind === 'cancelled' || outcome.kind === 'interrupted') return outcome;
      const memory = await readMemory(connection);
      const wasKilled = memory !== undefined && memory.oomKills > killsBefore;
      if (wasKilled) onMemory({ memory_mb: memory.memoryMb });
      const { succeeded, refused } = forwarder()?.answers ?? { succeeded: 0, refused: undefined };
      if (outcome.kind === 'failed') {
        const reasons = [
          ...(wasKilled ? [memorySentence(memory)] : []),
          outcome.message,
          ...(refused === undefined ? [] : [refusalSentence(refused)]),
        ];
        return { ...withoutBlame(outcome, succeeded > 0 ? undefined : refused), message: reasons.join('\n') };
      }
      // Some harnesses show an error as text and end their turn as a success.
      if (succeeded > 0 || refused === undefined) return outcome;
      return { kind: 'failed', summary: outcome.summary, message: refusalSentence(refused) };
    },
  };
}

type Failed = Extract<HarnessOutcome, { kind: 'failed' }>;

/**
 * Removes the error code that blames the harness if the gateway refused every request of the turn. If the reason was an outage, the
 * outcome gets the code of an outage with `retried`, because the harness has already repeated the requests.
 */
function withoutBlame(outcome: Failed, refused: ModelRefusal | undefined): Failed {
  if (refused === undefined || outcome.code !== 'agent_process_failed') return outcome;
  const { code: _, ...rest } = outcome;
  const isOutage = refused.status === 429 || refused.status >= 500;
  return isOutage ? { ...rest, code: 'resource_unavailable', retried: true } : rest;
}

const memorySentence = ({ memoryMb }: SandboxMemory): string =>
  `The sandbox used up its ${memoryMb} MB of memory and the kernel ended a process in it. Let the agent use less, or raise RUNYARD_SANDBOX_MEMORY_MB of the worker.`;

async function readMemory(connection: ServiceConnection): Promise<SandboxMemory | undefined> {
  if (connection.relaySocket === undefined) return undefined;
  try {
    const answer = await connection.open({
      method: 'GET',
      path: memoryPath,
      idleTimeoutMs: memoryTimeoutMs,
      signal: AbortSignal.timeout(memoryTimeoutMs),
    });
    const body = JSON.parse((await readBody(answer, 4_096)).toString()) as Record<string, unknown>;
    const { oom_kills: oomKills, memory_mb: memoryMb } = body;
    return typeof oomKills === 'number' && typeof memoryMb === 'number' ? { oomKills, memoryMb } : undefined;
  } catch {
    return undefined;
  }
}
