/** Compares runs: makes the requests that repeat past runs with other models, prompts, skills or harnesses, and reads what each run came to. */

import type { RerunRequest } from '@runyard/contract/runs/run-request';
import { isSettled } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { checksOf } from '@runyard/contract/runs/shown-checks';
import { delay } from '@runyard/system/backoff';
import type { Client } from './index.ts';

/** Maximum number of runs in one comparison, with the originals. */
export const maxComparedRuns = 100;

/** The differences from the run that is repeated. */
export interface Variant {
  readonly model?: string;
  readonly harness?: string;
  readonly skill?: string;
  readonly prompt?: string;
}

/** Returns all combinations of the values; a member without values does not differ. */
export function variantsOf(values: { readonly [Name in keyof Variant]?: readonly string[] | undefined }): Variant[] {
  let variants: Variant[] = [{}];
  for (const [name, list = []] of Object.entries(values))
    if (list.length > 0) variants = variants.flatMap((each) => list.map((value) => ({ ...each, [name]: value })));
  return variants;
}

/** Returns the request that repeats a run in a variant, as a run for a comparison. */
export function comparisonRequest(run: RunItem, { model, harness, skill, prompt }: Variant): RerunRequest {
  const { harness: present, skill_spec, skills, ...others } = run.agent_config ?? {};
  const { model_id: _, ...withoutModel } = present ?? {};
  const kept = model === undefined ? present : withoutModel;
  const chosen = harness === undefined ? kept : { type: harness };
  // In an answer, `skill_spec` repeats the first of the skills. A request must not have both.
  const ofSkills = skills === undefined ? { ...(skill_spec === undefined ? {} : { skill_spec }) } : { skills };
  const config = {
    ...others,
    ...(skill === undefined ? ofSkills : { skill_spec: skill }),
    ...(chosen === undefined || Object.keys(chosen).length === 0 ? {} : { harness: chosen }),
    ...(model === undefined ? {} : { model_id: model }),
  };
  const isSame = model === undefined && harness === undefined && skill === undefined;
  return { comparison: true, ...(isSame ? {} : { config }), ...(prompt === undefined ? {} : { prompt }) };
}

/** The outcome of a run, as a comparison shows it. */
export interface ComparedRun {
  readonly run: RunItem;
  readonly checks: readonly { readonly name: string; readonly passed: boolean | null }[];
  /** Numbers of changed files and lines; null: the sandbox has reported no changes. */
  readonly diff: { readonly files: number; readonly additions: number; readonly deletions: number } | null;
}

type Reader = Pick<Client, 'getRun' | 'getRunTimeline' | 'getRunChanges'>;

/** Reads what a run came to. */
export async function readComparedRun(client: Reader, runId: string, signal?: AbortSignal): Promise<ComparedRun> {
  const request = { params: { runId }, ...(signal ? { signal } : {}) };
  const [run, { events }, changes] = await Promise.all([
    client.getRun(request),
    client.getRunTimeline(request),
    client.getRunChanges(request),
  ]);
  const files = changes.repositories.flatMap((repository) => repository.files);
  const leftOut = changes.repositories.reduce((sum, { files_left_out: count = 0 }) => sum + count, 0);
  const sum = (member: 'additions' | 'deletions') => files.reduce((total, file) => total + (file[member] ?? 0), 0);
  return {
    run,
    checks: checksOf(events).map(({ name, passed = null }) => ({ name, passed })),
    diff:
      changes.as_of === undefined
        ? null
        : { files: files.length + leftOut, additions: sum('additions'), deletions: sum('deletions') },
  };
}

/** Returns whether the sandbox of a run that has ended may still report its changes. */
export const reportsLater = (run: RunItem): boolean => run.state !== 'BLOCKED' && run.is_sandbox_running === true;

/**
 * The sandbox reports the changes of the last turn after the run has ended. The sandbox of a failed setup stays for minutes, so nobody waits
 * longer than this for its end, in milliseconds.
 */
const longestReportMs = 30_000;

/** Waits until each run waits for a person, or has ended with its sandbox. Throws the reason of `signal` when it is aborted. */
export async function waitForRuns(
  client: Pick<Client, 'getRun'>,
  runIds: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const settled = new Map<string, number>();
  let waiting = [...runIds];
  for (;;) {
    const before = waiting;
    waiting = [];
    for (const runId of before) {
      const run = await client.getRun({ params: { runId }, signal });
      if (isSettled(run.state) && !settled.has(runId)) settled.set(runId, performance.now());
      const isLate = performance.now() - (settled.get(runId) ?? Number.POSITIVE_INFINITY) > longestReportMs;
      if (!isSettled(run.state) || (reportsLater(run) && !isLate)) waiting.push(runId);
    }
    if (waiting.length === 0) return;
    // With many runs, the pause is longer, so that the requests stay few.
    await delay(Math.max(1_000, waiting.length * 200), signal);
  }
}

/** The members of runs that tell how much their repetition may cost and change. */
export interface Outlook {
  /** Cost of the originals together, in US dollars; repeated `times` times each. */
  readonly costUsd: number;
  /** Names of secrets and of MCP servers that the new runs get. */
  readonly reach: readonly string[];
}

/** Returns what to tell a person before the runs are repeated, each `times` times. */
export function outlookOf(runs: readonly RunItem[], times: number): Outlook {
  const cost = ({ request_usage: usage = {} }: RunItem) =>
    (usage.inference_cost_usd ?? 0) + (usage.compute_cost_usd ?? 0) + (usage.platform_cost_usd ?? 0);
  const reach = runs.flatMap(({ agent_config: config = {} }) => [
    ...(config.secrets ?? []).map(({ name }) => `secret ${name}`),
    ...Object.keys(config.mcp_servers ?? {}).map((name) => `MCP server ${name}`),
  ]);
  return { costUsd: runs.reduce((sum, run) => sum + cost(run), 0) * times, reach: [...new Set(reach)] };
}
