import { maxResumesOfTurn } from '@runyard/contract/limits';
import type { SandboxEnd } from './sandbox-end.ts';

/** An execution whose sandbox has ended before its agent reported the end of the turn. */
export interface EndedTurn {
  /** `claimed`: the agent had not begun its first turn. */
  readonly phase: 'claimed' | 'running';
  readonly kind: SandboxEnd['kind'];
  /** `on_worker_loss` of the run's configuration, as it is stored. */
  readonly policy: string | null;
  /** How often the turn was resumed. */
  readonly resumes: number;
}

/**
 * `retry`: the agent had done nothing, so the launch is repeated; `unfit`: no launch can succeed, so the run is FAILED; `resume`: the turn continues elsewhere; `resumed_too_often` and
 * `error`: the run ends in ERROR.
 */
export type EndDecision = 'retry' | 'unfit' | 'resume' | 'resumed_too_often' | 'error';

/** Ends that the machine or its operator caused. An agent that ended by itself would do so again. */
const lossKinds: ReadonlySet<SandboxEnd['kind']> = new Set(['stopped', 'lost', 'silent']);

/** Decides how a run continues after the end of its sandbox. */
export function decideEnd({ phase, kind, policy, resumes }: EndedTurn): EndDecision {
  if (phase === 'claimed') return kind === 'unfit' ? 'unfit' : 'retry';
  if (policy !== 'resume' || !lossKinds.has(kind)) return 'error';
  return resumes < maxResumesOfTurn ? 'resume' : 'resumed_too_often';
}
