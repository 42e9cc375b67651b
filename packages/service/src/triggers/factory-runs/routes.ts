import { routes } from '@runyard/contract/routes';
import type { Signer } from '../../platform/secrets/signer.ts';
import { invalid, notFound, type Refusal, refuse, wrongCursor } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import type { SubmitDeps } from '../../runs/runs/submit/prepare.ts';
import { refusedSubmission, sourceOf } from '../../runs/runs/submit/translate.ts';
import { serve, serveOnce, serveRepeatable } from '../../team/access/serve.ts';
import { readFactory } from '../factories/factories.ts';
import { dispatchFactory } from './dispatch.ts';
import { findTaskByReference, searchTasks } from './tasks/find.ts';
import { listTasks } from './tasks/list.ts';
import { readTask, readTaskOfConversation, readTaskOfRun } from './tasks/read.ts';
import {
  type CreateTaskOutcome,
  cancelTask,
  createTask,
  deleteTask,
  type StartMoves,
  updateTask,
} from './tasks/write.ts';

interface FactoryRunRouteDeps extends SubmitDeps {
  baseUrl(): string;
}

/** The route that dispatches work to the foreman of a factory. */
export const factoryRunRoutes = (deps: FactoryRunRouteDeps): readonly ServedRoute[] => [
  serveRepeatable(routes.dispatchFactory, async ({ principal, params, body, once, from }) => {
    const outcome = await dispatchFactory(deps, {
      actor: principal,
      factoryUid: params.factoryUid,
      request: body,
      source: sourceOf(from, principal),
      repeatable: once,
    });
    switch (outcome.kind) {
      case 'dispatched':
        return { ...outcome.response, run_url: `${deps.baseUrl()}/runs/${outcome.response.run_id}` };
      case 'no_factory':
        return notFound('factory');
      default:
        return refusedSubmission(outcome);
    }
  }),
];

const noTask = () => notFound('task');

function refusedCreate(outcome: Exclude<CreateTaskOutcome, { kind: 'created' }>): Refusal {
  const wrong = (message: string) => invalid([{ path: 'conversation_id', message }]);
  switch (outcome.kind) {
    case 'no_factory':
      return notFound('factory');
    case 'no_conversation':
      return wrong('there is no such conversation');
    case 'child':
      return wrong('belongs to runs that other runs started; use the conversation of the run above them');
    case 'taken':
      return refuse('conflict', {
        detail: `conversation_id: the conversation already has the task ${outcome.uid} of the factory ${outcome.factoryUid}; change that task, or delete it first.`,
      });
  }
}

interface TaskRouteDeps {
  readonly startMoves: StartMoves;
  readonly executionDeps: ExecutionDeps;
  readonly signing: Signer;
}

/** The routes of the tasks of factories. */
export function factoryTaskRoutes({ executionDeps, signing, startMoves }: TaskRouteDeps): readonly ServedRoute[] {
  const { db } = executionDeps;

  return [
    serve(routes.listFactoryTasks, async ({ principal: { teamId }, params: { factoryUid }, query }) => {
      if (!(await readFactory(db, teamId, factoryUid))) return notFound('factory');
      return (await listTasks(db, signing, { teamId, factoryUid }, query)) ?? wrongCursor();
    }),

    serveOnce(routes.createFactoryTask, {
      work: async (tx, { principal, params: { factoryUid }, body }) => {
        const outcome = await createTask(tx, principal, factoryUid, body);
        if (outcome.kind !== 'created') return refusedCreate(outcome);
        return (await readTask(tx, { teamId: principal.teamId, factoryUid }, outcome.uid)) ?? noTask();
      },
    }),

    serve(routes.getFactoryTask, async ({ principal: { teamId }, params: { factoryUid, taskUid } }) => {
      return (await readTask(db, { teamId, factoryUid }, taskUid)) ?? noTask();
    }),

    serve(routes.updateFactoryTask, async ({ principal, params, body }) => {
      if (!(await updateTask(db, principal, params, body, startMoves))) return noTask();
      const place = { teamId: principal.teamId, factoryUid: params.factoryUid };
      return (await readTask(db, place, params.taskUid)) ?? noTask();
    }),

    serve(routes.deleteFactoryTask, async ({ principal, params }) =>
      (await deleteTask(db, principal, params)) ? { success: true as const } : noTask(),
    ),

    serve(routes.cancelFactoryTask, async ({ principal, params }) => {
      switch (await cancelTask(executionDeps, principal, params, startMoves)) {
        case 'not_found':
          return noTask();
        case 'pending':
          return refuse('conflict', {
            detail: 'The run of the task is PENDING; try again in some seconds.',
            headers: { 'retry-after': '1' },
          });
        case 'not_supported':
          return refuse('operation_not_supported', {
            detail:
              'The run of the task is self-hosted, local or of a GitHub Action, and cannot be cancelled over the API.',
          });
        case 'cancelled': {
          const place = { teamId: principal.teamId, factoryUid: params.factoryUid };
          return (await readTask(db, place, params.taskUid)) ?? noTask();
        }
      }
    }),

    serve(routes.getFactoryTaskByConversation, async ({ principal: { teamId }, params: { factoryUid }, query }) => {
      return (await readTaskOfConversation(db, { teamId, factoryUid }, query.conversation_id)) ?? noTask();
    }),

    serve(routes.searchFactoryTasks, async ({ principal: { teamId }, query }) => ({
      tasks: await searchTasks(db, teamId, query),
    })),

    serve(routes.findFactoryTask, async ({ principal: { teamId }, query }) => {
      return (await findTaskByReference(db, teamId, query.reference)) ?? noTask();
    }),

    serve(routes.getFactoryTaskByRun, async ({ principal: { teamId }, params: { factoryUid }, query }) => {
      return (await readTaskOfRun(db, { teamId, factoryUid }, query.run_id)) ?? noTask();
    }),
  ];
}
