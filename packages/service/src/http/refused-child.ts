import type { ChildRefusal } from '../runs/admit-child.ts';
import { invalid, type Refusal, refuse } from './problem.ts';

/** Why no run can be created below the one that the request names. */
export function refusedChild(reason: ChildRefusal): Refusal {
  switch (reason) {
    case 'parent_gone':
      return invalid([{ path: 'parent_run_id', message: 'there is no such run' }]);
    case 'parent_cancelled':
      return refuse('conflict', {
        detail:
          'The parent, or a run above it, was cancelled, and what works for it with it. Continue the parent by a follow-up first, or create the run without parent_run_id.',
      });
  }
}
