/** Computes the rights of a run that a request creates (docs/decisions/rights.md). */
import { isDeepStrictEqual } from 'node:util';
import { FileChecks, toRunChecks } from '@runyard/contract/factories/files/checks';
import { maxChecks } from '@runyard/contract/limits';
import { RunCheck } from '@runyard/contract/runs/checks';
import { strictestApprovals } from '@runyard/contract/runs/compare-approvals';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { Fault } from '../../../platform/fault.ts';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { limitNames, type RunContent, readStrictest, storedRevisionOf } from '../../../team/access/contents/content.ts';
import { explainWithheld } from '../../../team/access/contents/describe-withheld.ts';
import { decideGatewayRights, type GatewayRights } from '../../../team/access/contents/gateway-rights.ts';
import {
  configuringKinds,
  decideRight,
  type ExplainedWithheld,
  principalsOf,
  type RunRights,
  type Withheld,
} from '../../../team/access/contents/run-rights.ts';
import { readStoredKinds } from '../../../team/code-hosts/code-hosts.ts';
import { findAdmitted } from '../../../team/environments/named.ts';
import { storedId } from '../../../team/mcp/of-run.ts';
import { faultsOfSecrets, secretsByForm } from '../../../team/mcp/secret-references.ts';
import { describeUnusable, findUsableSecrets, type SecretNames } from '../../../team/stored-secrets/find-usable.ts';

/** Outcome of the computation. `values`: the values of the run's secrets. */
export type RightsOutcome =
  | { readonly kind: 'ok'; readonly rights: RunRights; readonly values: readonly string[] }
  /** 400 */
  | { readonly kind: 'invalid'; readonly fault: Fault }
  /** 403 */
  | { readonly kind: 'forbidden'; readonly detail: string }
  /** 403: the author of a content lacks a right that the request names. */
  | { readonly kind: 'withheld'; readonly detail: string };

interface RunOfRights {
  readonly teamId: string;
  readonly executor: RunActor;
  readonly contents: readonly RunContent[];
  /** The run's environment if another team owns it and the executor may use it as a guest; absent: the run has no such environment. */
  readonly guestOf?: string | undefined;
  /** MCP servers in the configuration of the run. */
  readonly servers: NonNullable<AmbientAgentConfig['mcp_servers']>;
  /** Rights of the run whose agent starts this run; absent: no agent starts it. A child has only rights of its parent. */
  readonly within?: RunRights | undefined;
}

/**
 * Decides whether the run may use the environment of another team. Authors of contents need permission for this, but the authors of the
 * environment itself do not.
 */
async function decideGuest(db: Queryable, { executor, contents, guestOf }: RunOfRights) {
  const others = contents.filter(({ kind, uid }) => kind !== 'environment' || uid !== guestOf);
  if (guestOf === undefined || others.every(({ accepted }) => accepted)) return undefined;
  const people = principalsOf(executor, others).flatMap(({ kind, uid }) => (kind === 'user' ? [uid] : []));
  const admitted = await findAdmitted(db, guestOf, people);
  return decideRight(executor, others, ({ kind, uid }) => kind === 'user' && admitted.has(uid));
}

/** Decides about the rights behind the gateway. `withheld`: the rights that the run loses because of its texts. */
export async function decideRightsBehindGateway(
  db: Queryable,
  run: { readonly teamId: string; readonly executor: RunActor; readonly contents: readonly RunContent[] },
): Promise<GatewayRights & { readonly withheld: readonly Withheld[] }> {
  const rights = await decideGatewayRights(db, run);
  const { personal, team } = rights;
  const hasPersonal =
    personal.kind === 'withheld' && (await readStoredKinds(db, { teamId: run.teamId, actor: run.executor })).personal;
  const withheld: Withheld[] = [
    ...(hasPersonal ? [{ right: 'code_host_credentials' as const, content: personal.content }] : []),
    // The run also loses the exceptions from protections that its texts make, so show this even if the team has stored no credential.
    ...(team.kind === 'withheld' ? [{ right: 'team_credentials' as const, content: team.content }] : []),
  ];
  return { ...rights, withheld };
}

/**
 * Returns the configuration with the strictest approvals and limits, the checks and the output schema that the stored revisions of the
 * contents have had, except members that the request itself sets. Somebody outside of the team may have removed them or made them looser.
 */
async function withStrictest(
  db: Queryable,
  contents: readonly RunContent[],
  config: AmbientAgentConfig,
  own: RunAgentRequest['config'],
): Promise<AmbientAgentConfig> {
  const strictest = await readStrictest(db, contents.flatMap(storedRevisionOf));
  const { approval_policy, approval_rules, ...others } = config;
  const chosen = { approval_policy, approval_rules };
  const approvals =
    own?.approval_policy === undefined ? strictest.approvals.reduce(strictestApprovals, chosen) : chosen;
  const strict: AmbientAgentConfig = {
    ...others,
    ...(approvals.approval_policy ? { approval_policy: approvals.approval_policy } : {}),
    ...(approvals.approval_rules ? { approval_rules: [...approvals.approval_rules] } : {}),
  };
  if (own?.checks === undefined) {
    const checks = withStoredChecks(strictest.checks, config.checks ?? []);
    if (checks.length > 0) strict.checks = checks;
  }
  if (own?.output_schema === undefined && config.output_schema === undefined && strictest.output_schema !== null)
    strict.output_schema = strictest.output_schema;
  for (const name of limitNames) {
    const known = [config[name] ?? Number.POSITIVE_INFINITY, strictest[name] ?? Number.POSITIVE_INFINITY];
    const least = Math.min(...known);
    if (Number.isFinite(least)) strict[name] = least;
  }
  for (const name of limitNames) if (own?.[name] !== undefined) Object.assign(strict, { [name]: own[name] });
  return strict;
}

/**
 * Adds the checks of stored revisions, so that a removed or changed check still counts. A definition has checks in the spelling of its files.
 * If two checks have one name, the later one gets another.
 */
function withStoredChecks(stored: readonly object[], present: readonly RunCheck[]): RunCheck[] {
  const known = stored.flatMap((check): RunCheck[] => {
    const ofFile = FileChecks.safeParse([check]);
    if (ofFile.success) return toRunChecks(ofFile.data);
    const ofConfig = RunCheck.safeParse(check);
    return ofConfig.success ? [ofConfig.data] : [];
  });
  const all = [...known, ...present];
  const different = all.filter((check, index) => all.findIndex((each) => isDeepStrictEqual(each, check)) === index);
  return different.slice(0, maxChecks).map((check, index, kept) => {
    const same = kept.slice(0, index).filter(({ name }) => name === check.name).length;
    return same === 0 ? check : { ...check, name: `${check.name.slice(0, 90)} (${same + 1})` };
  });
}

/** Members of a configuration that choose a model, raise a limit or loosen a protection. */
const loosening = ['model_id', 'model_fallbacks', 'approvals_from', 'followups_from', 'child_runs'] as const;

/**
 * Removes members that only people of the team may set, if an author outside of the team may have set them in stored contents that no
 * member has accepted. Keeps the members that the request itself sets. `own`: the configuration in the request of a member; undefined: the
 * configuration comes from stored contents. Returns `config` unchanged if all such contents come from the team.
 */
export async function withoutLoosening(
  db: Queryable,
  run: Pick<RunOfRights, 'teamId' | 'executor' | 'contents'>,
  config: AmbientAgentConfig,
  own: RunAgentRequest['config'],
): Promise<AmbientAgentConfig> {
  const contents = run.contents.filter(({ kind, accepted }) => !accepted && configuringKinds.includes(kind));
  if (contents.length === 0 || (await decideGatewayRights(db, { ...run, contents })).team.kind !== 'withheld')
    return config;
  const { harness, ...kept } = await withStrictest(db, contents, config, own);
  for (const name of loosening) if (own?.[name] === undefined) delete kept[name];
  if (harness === undefined || own?.harness?.model_id !== undefined) return harness ? { ...kept, harness } : kept;
  const { model_id: _, ...withoutModel } = harness;
  return { ...kept, harness: withoutModel };
}

/** Computes the rights of the run before it is written. */
export async function rightsOfRequest(
  { db, vault }: { readonly db: Queryable; readonly vault: Vault },
  run: RunOfRights,
  names: SecretNames,
): Promise<RightsOutcome> {
  const { teamId, executor, contents } = run;
  const guest = await decideGuest(db, run);
  if (guest?.kind === 'withheld') {
    const withheld = { right: 'environment' as const, name: run.guestOf ?? '', content: guest.content };
    return {
      kind: 'withheld',
      detail: `config.environment_id: ${await explainWithheld(db, teamId, executor, withheld)}`,
    };
  }
  const usable = await findUsableSecrets(db, vault, { teamId, actor: executor, contents, within: run.within }, names);
  if (usable.kind === 'withheld')
    return {
      kind: 'withheld',
      detail: `${usable.path}: ${await explainWithheld(db, teamId, executor, usable.withheld)}`,
    };
  if (usable.kind === 'forbidden' || usable.kind === 'setup_only')
    return { kind: 'forbidden', detail: `${usable.path}: ${describeUnusable(usable)}.` };
  if (usable.kind !== 'ok') return { kind: 'invalid', fault: { path: usable.path, message: describeUnusable(usable) } };
  const [unfit] = faultsOfSecrets(run.servers, secretsByForm(usable.secrets));
  if (unfit) return { kind: 'invalid', fault: unfit };
  const { personal, team, withheld: loses } = await decideRightsBehindGateway(db, run);
  // The conversation that the run continues may be accepted later, so it is decided about at each use (`run-tokens/present-rights.ts`).
  const others = contents.filter(({ kind }) => kind !== 'conversation');
  const lasting =
    others.length === contents.length
      ? { personal, team }
      : await decideGatewayRights(db, { ...run, contents: others });
  const [named] = Object.entries(run.servers).find(([, server]) => storedId(server) !== undefined) ?? [];
  if (named !== undefined && team.kind === 'withheld') {
    const lost = { right: 'team_credentials' as const, content: team.content };
    const detail = `config.mcp_servers.${named}: ${await explainWithheld(db, teamId, executor, lost)}`;
    return { kind: 'withheld', detail };
  }
  const withheld: ExplainedWithheld[] = [];
  for (const each of [...usable.withheld, ...loses])
    withheld.push({ ...each, reason: await explainWithheld(db, teamId, executor, each) });
  return {
    kind: 'ok',
    rights: {
      secrets: usable.secrets.map(({ value: _, ...right }) => right),
      personal_credentials: lasting.personal.kind === 'held' && run.within?.personal_credentials !== false,
      team_credentials: lasting.team.kind === 'held' && run.within?.team_credentials !== false,
      withheld,
    },
    values: usable.secrets.map(({ value }) => value),
  };
}
