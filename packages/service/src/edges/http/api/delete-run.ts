import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound, refuse } from '../../../platform/serving/refusal.ts';
import { deleteRun } from '../../../runs/runs/delete/delete.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Registers the deletion of ended runs. */
export function registerDeleteRunRoute(app: FastifyInstance, deps: ServiceDeps): void {
  const { executionDeps, blobs, log } = deps;
  addRoute(app, routes.deleteRun, async ({ params, principal }) => {
    const outcome = await deleteRun(executionDeps, principal.teamId, params.runId, undefined, principal);
    switch (outcome.kind) {
      case 'not_found':
        return notFound('run');
      case 'not_ended':
        return refuse('conflict', {
          detail: `The run is ${outcome.state}. ${outcome.canBeCancelled ? 'Cancel it, or wait' : 'Wait'} for its end, then delete it.`,
        });
      case 'sandbox_running':
        return refuse('conflict', {
          detail:
            'The run has ended, but its sandbox, or a run that it started, is still being closed; try again in some seconds.',
          headers: { 'retry-after': '5' },
        });
      case 'deleted':
        for (const key of outcome.blobKeys) {
          await blobs.delete(key).catch((error: unknown) => {
            log.warn({ err: error, blob_key: key }, 'a blob of a deleted run is left to the nightly sweep');
          });
        }
        return { success: true as const };
    }
  });
}
