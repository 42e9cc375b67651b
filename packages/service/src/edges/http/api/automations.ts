import type { Automation } from '@runyard/contract/automations';
import { maxFactoryAutomations } from '@runyard/contract/limits';
import { explainPayloadFilter } from '@runyard/contract/payload-filter/explain';
import { parsePayloadFilter } from '@runyard/contract/payload-filter/parse';
import type { PayloadFilter } from '@runyard/contract/payload-filter/plan';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { answerOnce } from '../../../platform/idempotency/answer-once.ts';
import { once } from '../../../platform/idempotency/once.ts';
import { invalid, notFound, Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { refusedSubmission } from '../../../runs/runs/submit/refused.ts';
import type { AutomationRow } from '../../../triggers/automations/automation-row.ts';
import {
  type AutomationFailure,
  createAutomation,
  deleteAutomation,
  listAutomations,
  readAutomation,
  updateAutomation,
} from '../../../triggers/automations/automations.ts';
import { toItems } from '../../../triggers/automations/items.ts';
import { readFactory } from '../../../triggers/factories/factories.ts';
import { listFiresOfAutomation } from '../../../triggers/history/list.ts';
import { parsePayload } from '../../../triggers/webhooks/ingest/parse-payload.ts';
import { readPayloadOfDelivery } from '../../../triggers/webhooks/log/deliveries.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

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

function explained(filter: PayloadFilter, payload: unknown) {
  const { would_trigger, checks } = explainPayloadFilter(filter, payload);
  return { would_trigger, checks: [...checks] };
}

/** Registers the management of automations. */
export function registerAutomationRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db } = deps;

  const itemOf = async (row: AutomationRow): Promise<Automation> => {
    const [item] = await toItems(db, { teamId: row.team_id, factoryUid: row.factory_uid }, [row]);
    if (!item) throw new Error('the automation has no item');
    return item;
  };

  addRoute(app, routes.listAutomations, async ({ principal: { teamId }, params: { factoryUid } }) => {
    if (!(await readFactory(db, teamId, factoryUid))) return notFound('factory');
    const rows = await listAutomations(db, teamId, factoryUid);
    return { automations: await toItems(db, { teamId, factoryUid }, rows), page_info: { has_next_page: false } };
  });

  addRoute(app, routes.createAutomation, async (call) => {
    const { principal, params, body } = call;
    const outcome = await once<AutomationRow, AutomationFailure>(db, call.once, async (tx) => {
      const made = await createAutomation(deps, tx, principal, params.factoryUid, body);
      return made.kind === 'stored' ? { kind: 'done', response: made.automation } : { kind: 'failed', failure: made };
    });
    const row = answerOnce(outcome, (failure) => refuseFailure(failure, body.name));
    return row instanceof Refusal ? row : await itemOf(row);
  });

  addRoute(app, routes.getAutomation, async ({ principal: { teamId }, params }) => {
    const row = await readAutomation(db, { teamId, ...params });
    return row ? await itemOf(row) : noAutomation();
  });

  addRoute(app, routes.updateAutomation, async ({ principal, params, body }) => {
    const outcome = await db.transaction(async (tx) => {
      const made = await updateAutomation(deps, tx, principal, params.factoryUid, params.automationUid, body);
      if (made.kind === 'no_factory') return noAutomation();
      return made.kind === 'stored' ? made.automation : refuseFailure(made, body.name);
    });
    return outcome instanceof Refusal ? outcome : await itemOf(outcome);
  });

  addRoute(app, routes.listAutomationFires, async ({ principal: { teamId }, params, query }) => {
    const row = await readAutomation(db, { teamId, ...params });
    if (!row) return noAutomation();
    const page = await listFiresOfAutomation(db, deps.signing, row, query);
    return (
      page ?? invalid([{ path: 'cursor', message: 'is not a cursor of this list; send the query of the page before' }])
    );
  });

  addRoute(app, routes.testFilter, async ({ principal: { teamId }, params: { factoryUid }, body }) => {
    if (!(await readFactory(db, teamId, factoryUid))) return notFound('factory');
    const parsed = parsePayloadFilter(body.filter);
    if (!parsed.ok)
      return invalid(
        parsed.faults.map(({ path, reason }) => ({ path: path ? `filter.${path}` : 'filter', message: reason })),
      );
    if (body.delivery_id === undefined) return explained(parsed.filter, body.payload);
    const stored = await readPayloadOfDelivery(db, teamId, factoryUid, body.delivery_id);
    const payload = stored && parsePayload(stored.bytes);
    return payload?.ok ? explained(parsed.filter, payload.value) : notFound('delivery with a stored payload');
  });

  addRoute(app, routes.deleteAutomation, async ({ principal, params }) => {
    const wasThere = await db.transaction((tx) =>
      deleteAutomation(tx, principal, params.factoryUid, params.automationUid),
    );
    return wasThere ? { success: true as const } : noAutomation();
  });
}
