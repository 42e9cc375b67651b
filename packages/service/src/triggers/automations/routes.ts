import type { Automation } from '@runyard/contract/automations/automations';
import { maxFactoryAutomations } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { Signer } from '../../platform/secrets/signer.ts';
import { invalid, notFound, type Refusal, refuse, wrongCursor } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { checkNotifyRules, readNotifyRules, setNotifyRules } from '../../runs/inbox/rules.ts';
import { refusedSubmission } from '../../runs/runs/submit/translate.ts';
import { type FindWaiting, withWaiting } from '../../team/access/contents/waiting-after-change.ts';
import { executorNotAllowed, executorOfRequest } from '../../team/access/executor.ts';
import { serve, serveOnce } from '../../team/access/serve.ts';
import { readFactory } from '../factories/factories.ts';
import { listFiresOfAutomation } from '../history/list.ts';
import type { AutomationRow } from './automation-row.ts';
import {
  type AutomationFailure,
  createAutomation,
  deleteAutomation,
  listAutomations,
  readAutomation,
  updateAutomation,
} from './automations.ts';
import type { CheckDeps } from './check.ts';
import { toItems } from './items.ts';
import { listTeamAutomations } from './team-list.ts';
import { testFilter, testFilterOnDeliveries } from './test-filter.ts';

const noAutomation = () => notFound('automation');

function refuseFailure(failure: AutomationFailure, name: string): Refusal {
  switch (failure.kind) {
    case 'no_factory':
      return notFound('factory');
    case 'not_found':
      return noAutomation();
    case 'too_many':
      return refuse('conflict', { detail: `A factory has at most ${maxFactoryAutomations} automations; delete one.` });
    case 'taken':
      return refuse('conflict', { detail: `name: the factory has an automation ${name}; choose another name.` });
    default:
      return refusedSubmission(failure);
  }
}

interface AutomationRouteDeps extends CheckDeps {
  readonly db: Database;
  readonly signing: Signer;
}

/** The routes that create, read, change and delete automations. */
export function automationRoutes(deps: AutomationRouteDeps, findWaiting: FindWaiting): readonly ServedRoute[] {
  const { db } = deps;

  const itemOf = async (row: AutomationRow): Promise<Automation> => {
    const [item] = await toItems(db, row.team_id, [row]);
    if (!item) throw new Error('the automation has no item');
    return item;
  };

  return [
    serve(routes.listAutomations, async ({ principal: { teamId }, params: { factoryUid } }) => {
      if (!(await readFactory(db, teamId, factoryUid))) return notFound('factory');
      const rows = await listAutomations(db, teamId, factoryUid);
      return { automations: await toItems(db, teamId, rows), page_info: { has_next_page: false } };
    }),

    serve(
      routes.listTeamAutomations,
      async ({ principal: { teamId }, query }) =>
        (await listTeamAutomations(db, deps.signing, teamId, query)) ?? wrongCursor(),
    ),

    serveOnce(routes.createAutomation, {
      work: async (tx, { principal, params, body }) => {
        const executor = await executorOfRequest(tx, principal, body.executor_uid);
        if (executor === null) return refuse('not_authorized', { detail: executorNotAllowed });
        const faults = await checkNotifyRules(tx, body.notify, { by: principal, present: [] });
        if (faults.length > 0) return invalid(faults);
        const made = await createAutomation(deps, tx, principal, params.factoryUid, body, executor);
        if (made.kind !== 'stored') return refuseFailure(made, body.name);
        const { uid: automationUid, team_id: teamId } = made.automation;
        await setNotifyRules(tx, { teamId, automationUid }, body.notify);
        return made.automation;
      },
      answer: itemOf,
    }),

    serve(routes.getAutomation, async ({ principal: { teamId }, params }) => {
      const row = await readAutomation(db, { teamId, ...params });
      return row ? await itemOf(row) : noAutomation();
    }),

    serve(routes.updateAutomation, async ({ principal, params, body }) => {
      const executor = await executorOfRequest(db, principal, body.executor_uid);
      if (executor === null) return refuse('not_authorized', { detail: executorNotAllowed });
      const owner = { teamId: principal.teamId, automationUid: params.automationUid };
      const made = await db.transaction(async (tx) => {
        const rules = { by: principal, present: await readNotifyRules(tx, owner) };
        const faults = await checkNotifyRules(tx, body.notify, rules);
        if (faults.length > 0) return { kind: 'invalid', faults } as const;
        const changed = await updateAutomation(
          deps,
          tx,
          principal,
          params.factoryUid,
          params.automationUid,
          body,
          executor,
        );
        if (changed.kind === 'stored') await setNotifyRules(tx, owner, body.notify);
        return changed;
      });
      if (made.kind === 'no_factory') return noAutomation();
      if (made.kind !== 'stored') return refuseFailure(made, body.name);
      return await withWaiting(
        await itemOf(made.automation),
        findWaiting(db, principal, 'automation', made.automation.uid),
      );
    }),

    serve(routes.listAutomationFires, async ({ principal: { teamId }, params, query }) => {
      const row = await readAutomation(db, { teamId, ...params });
      if (!row) return noAutomation();
      return (await listFiresOfAutomation(db, deps.signing, row, query)) ?? wrongCursor();
    }),

    serve(routes.testFilter, async ({ principal: { teamId }, params: { factoryUid }, body }) => {
      const outcome = await testFilter(db, { teamId, factoryUid }, body);
      switch (outcome.kind) {
        case 'explained':
          return outcome.explanation;
        case 'invalid':
          return invalid(outcome.faults);
        case 'no_factory':
          return notFound('factory');
        case 'no_payload':
          return notFound('delivery with a stored payload');
      }
    }),

    serve(routes.testFilterOnDeliveries, async ({ principal: { teamId }, params: { factoryUid }, body }) => {
      const outcome = await testFilterOnDeliveries(db, { teamId, factoryUid }, body);
      switch (outcome.kind) {
        case 'tested':
          return outcome.response;
        case 'invalid':
          return invalid(outcome.faults);
        case 'no_webhook':
          return notFound('webhook');
      }
    }),

    serve(routes.deleteAutomation, async ({ principal, params }) => {
      const wasThere = await db.transaction((tx) =>
        deleteAutomation(tx, principal, params.factoryUid, params.automationUid),
      );
      return wasThere ? { success: true as const } : noAutomation();
    }),
  ];
}
