import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { RunSourceType } from '@runyard/contract/runs/states';
import { parseExpression } from '@runyard/contract/schedules/cron-expression';
import type { CreateScheduledAgentRequest, OverlapPolicy } from '@runyard/contract/schedules/schedules';
import { findTimeZone } from '@runyard/contract/wire/time-zone';
import { createRedactor } from '@runyard/system/redaction/redactor';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { checkRunRequest, type RequestOutcome } from '../../runs/runs/submit/request.ts';
import { workerHostOf } from '../../runs/runs/submit/request-config.ts';
import type { RunActor } from '../../team/access/actor.ts';
import { isSameActor } from '../../team/access/contents/content.ts';
import type { Models } from '../../team/models/models.ts';
import { detailOf, faultOfSchedule, type RequestMembers, requestOf } from './run-of-schedule.ts';
import type { Times } from './times/next-time.ts';

/** All members of a schedule that a request can set. Members that the request leaves out have their defaults. */
export interface WantedSchedule extends RequestMembers {
  readonly name: string;
  readonly cron_schedule: string;
  /** Canonical IANA name */
  readonly timezone: string;
  readonly overlap: OverlapPolicy;
  readonly max_live_runs: number | null;
}

/** Outcome of the check. The failures are those of creating a run. */
export type CheckOutcome =
  | { readonly kind: 'ok'; readonly wanted: WantedSchedule }
  | Exclude<RequestOutcome, { kind: 'ok' }>;

export interface CheckDeps {
  readonly db: Queryable;
  readonly models: Models;
  readonly vault: Vault;
}

type Requested = Omit<CreateScheduledAgentRequest, 'enabled' | 'team' | 'executor_uid'>;

/** Returns why runs with this configuration cannot have this overlap policy; null if they can. */
export function faultOfOverlap(overlap: OverlapPolicy, config: AmbientAgentConfig): Fault | null {
  if (overlap !== 'cancel_previous' || workerHostOf(config) === undefined) return null;
  const message = 'runs on self-hosted workers cannot be cancelled for another; use skip or queue';
  return { path: 'overlap', message };
}

/** Parses the expression and the time zone of a schedule. The default zone is UTC. Intervals (`@every`) begin at the time of this call. */
export function checkTimes(
  cronSchedule: string,
  requestedZone = 'UTC',
): { readonly kind: 'ok'; readonly times: Times } | { readonly kind: 'invalid'; readonly faults: readonly Fault[] } {
  const parsed = parseExpression(cronSchedule);
  const timezone = findTimeZone(requestedZone);
  if (parsed.ok && timezone !== null)
    return { kind: 'ok', times: { expression: parsed.expression, timezone, anchorMs: Date.now() } };
  return {
    kind: 'invalid',
    faults: [
      ...(parsed.ok ? [] : [{ path: 'cron_schedule', message: parsed.problem }]),
      ...(timezone !== null
        ? []
        : [{ path: 'timezone', message: 'is not the name of an IANA time zone, such as Europe/Berlin or UTC' }]),
    ],
  };
}

/** The sender of a schedule or an automation, and the executor of its runs; absent: the sender. */
export interface CheckedActors {
  readonly teamId: string;
  readonly creator: RunActor;
  readonly executor?: RunActor;
}

/**
 * Checks that a run of a schedule or an automation could be created for its executor now. If another person sends the change, texts that
 * the executor has not accepted yet do not count as a failure. `values`: the values of the sender's secrets, which are removed from the
 * stored texts. Values of the executor's secrets are not used, so that the answer reveals nothing about them.
 */
export async function checkRunOf(
  deps: CheckDeps,
  { teamId, creator, executor = creator }: CheckedActors,
  request: RunAgentRequest,
  origin: RunSourceType,
  options: { readonly keepsLacking?: boolean | undefined } = {},
): Promise<{ readonly kind: 'ok'; readonly values: readonly string[] } | Exclude<RequestOutcome, { kind: 'ok' }>> {
  const checked = await checkRunRequest(deps, { teamId, creator: executor }, request, origin, options);
  if (isSameActor(executor, creator) || (checked.kind !== 'ok' && checked.kind !== 'withheld')) return checked;
  const own = await checkRunRequest(deps, { teamId, creator }, request, origin, options);
  return { kind: 'ok', values: own.kind === 'ok' ? own.values : [] };
}

/** Takes missing members of a request from the stored schedule or the defaults, and checks that a run of the schedule could be created now. */
export async function checkSchedule(
  deps: CheckDeps,
  actors: CheckedActors,
  requested: Requested,
  stored?: WantedSchedule,
): Promise<CheckOutcome> {
  const checked = checkTimes(requested.cron_schedule, requested.timezone ?? stored?.timezone);
  const faults: Fault[] = checked.kind === 'invalid' ? [...checked.faults] : [];
  const wanted: WantedSchedule = {
    name: requested.name,
    cron_schedule: requested.cron_schedule.trim(),
    timezone: checked.kind === 'ok' ? checked.times.timezone : 'UTC',
    prompt: requested.prompt ?? '',
    agent_config: requested.agent_config ?? stored?.agent_config ?? null,
    agent_uid: requested.agent_uid ?? stored?.agent_uid ?? null,
    mode: requested.mode ?? stored?.mode ?? null,
    metadata: requested.metadata ?? stored?.metadata ?? {},
    overlap: requested.overlap ?? stored?.overlap ?? 'allow',
    max_live_runs: requested.max_live_runs === undefined ? (stored?.max_live_runs ?? null) : requested.max_live_runs,
  };
  const overlap = faultOfOverlap(wanted.overlap, wanted.agent_config ?? {});
  if (overlap) faults.push(overlap);
  const run = await checkRunOf(deps, actors, requestOf(wanted), 'SCHEDULED_AGENT');
  if (run.kind === 'forbidden') return { ...run, detail: detailOf(run) };
  if (run.kind !== 'ok' && run.kind !== 'invalid') return run;
  if (run.kind === 'invalid') faults.push(...run.faults.map(faultOfSchedule));
  if (faults.length > 0 || run.kind === 'invalid') return { kind: 'invalid', faults };
  // Redact the values of the secrets that the schedule names, because a person may have pasted such a value.
  const { name, prompt, agent_config, metadata } = wanted;
  const redacted = createRedactor(run.values).value({
    name,
    prompt,
    agent_config,
    metadata,
  }) as Partial<WantedSchedule>;
  return { kind: 'ok', wanted: { ...wanted, ...redacted } };
}
