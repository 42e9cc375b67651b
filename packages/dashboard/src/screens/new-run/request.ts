/** Creates the request that the form for a new run sends, and writes the same request as shell commands. */

import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { AttachmentInput, RerunRequest, RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { McpServer } from '@runyard/contract/team/mcp-servers';

/** The fields of the form. The request leaves out fields whose text is empty. */
export interface Draft {
  readonly prompt: string;
  readonly title: string;
  readonly model: string;
  readonly harness: string;
  readonly environment: string;
  readonly identity: string;
  /** Skill to follow: owner/repo:name. */
  readonly skill: string;
  /** Stored MCP servers of the team. */
  readonly servers: readonly Pick<McpServer, 'id' | 'name'>[];
  readonly approval: string;
  readonly mode: string;
  readonly cost: string;
  readonly minutes: string;
  readonly turns: string;
  /** True: the environment is set up from the beginning. */
  readonly isFresh: boolean;
}

export const emptyDraft: Draft = {
  prompt: '',
  title: '',
  model: '',
  harness: '',
  environment: '',
  identity: '',
  skill: '',
  servers: [],
  approval: '',
  mode: '',
  cost: '',
  minutes: '',
  turns: '',
  isFresh: false,
};

const numberOf = (text: string): number | undefined => (text.trim() === '' ? undefined : Number(text));

/** Returns an object without the members that have no value. */
function present<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined | ''> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== '')) as {
    [K in keyof T]?: Exclude<T[K], undefined | ''>;
  };
}

/** Returns a configuration with the values of the form. Other members are those of `base`. */
function configOf(draft: Draft, base: AmbientAgentConfig = {}): AmbientAgentConfig {
  const { model_id, environment_id, approval_policy, approval_rules, harness, refresh_environment, ...unlimited } =
    base;
  const { max_cost_usd, max_duration_minutes, max_turns, skill_spec, ...others } = unlimited;
  return {
    ...others,
    // In an answer, `skill_spec` repeats the first of the skills. A request must not have both.
    ...(skill_spec === undefined || others.skills !== undefined ? {} : { skill_spec }),
    ...(present({
      model_id: draft.model,
      environment_id: draft.environment,
      approval_policy: draft.approval,
      // The policy auto-approve takes no rules.
      approval_rules: draft.approval === 'ask' || draft.approval === 'auto-deny' ? approval_rules : undefined,
      harness: draft.harness === (harness?.type ?? '') ? harness : { type: draft.harness },
      refresh_environment: draft.isFresh || undefined,
      max_cost_usd: numberOf(draft.cost),
      max_duration_minutes: numberOf(draft.minutes),
      max_turns: numberOf(draft.turns),
    }) as AmbientAgentConfig),
  };
}

/** Returns the servers by their names; by their ids if two have the same name. */
function serversOf(servers: Draft['servers']): AmbientAgentConfig['mcp_servers'] {
  const isUnique = (name: string) => servers.filter((each) => each.name === name).length === 1;
  return Object.fromEntries(servers.map(({ id, name }) => [isUnique(name) ? name : id, { warp_id: id }]));
}

/** Returns the body of `POST /agent/runs`. The service checks the values and names the faults. */
export function requestOf(draft: Draft, attachments: readonly AttachmentInput[] = []): RunAgentRequest {
  const config = {
    ...configOf(draft),
    ...(draft.servers.length === 0 ? {} : { mcp_servers: serversOf(draft.servers) }),
  };
  return present({
    prompt: draft.prompt,
    title: draft.title,
    agent_identity_uid: draft.identity,
    skill: draft.skill,
    mode: draft.mode,
    config: Object.keys(config).length === 0 ? undefined : config,
    attachments: attachments.length === 0 ? undefined : attachments,
  }) as RunAgentRequest;
}

/** Returns the fields of the form for a rerun of this run. A rerun keeps identity and mode, so their fields are empty. */
export function draftOfRun({ submitted_prompt, prompt, agent_config: config = {} }: RunItem): Draft {
  const text = (value: number | undefined): string => (value === undefined ? '' : String(value));
  return {
    ...emptyDraft,
    prompt: submitted_prompt ?? prompt ?? '',
    model: config.model_id ?? '',
    harness: config.harness?.type ?? '',
    environment: config.environment_id ?? '',
    approval: config.approval_policy === 'auto-approve' ? '' : (config.approval_policy ?? ''),
    cost: text(config.max_cost_usd),
    minutes: text(config.max_duration_minutes),
    turns: text(config.max_turns),
    isFresh: config.refresh_environment ?? false,
  };
}

/** Returns the fields that the address sets. */
export const changesIn = (prompt: string | undefined, fresh: string | undefined): Partial<Draft> => ({
  ...(prompt === undefined ? {} : { prompt }),
  ...(fresh === undefined ? {} : { isFresh: fresh === 'true' }),
});

/** Returns the body of the request that reruns a run. It has only what differs from the run; the service replaces a configuration as a whole. */
export function rerunOf(draft: Draft, run: RunItem): RerunRequest {
  const before = draftOfRun(run);
  const { prompt, title } = draft;
  const isSameConfig =
    JSON.stringify({ ...draft, prompt: '', title: '' }) === JSON.stringify({ ...before, prompt: '', title: '' });
  return {
    ...(prompt === before.prompt ? {} : { prompt }),
    ...(title === '' ? {} : { title }),
    ...(isSameConfig ? {} : { config: configOf(draft, run.agent_config) }),
  };
}

/** A request of the form: the path of its route, and its body. */
export interface Sent {
  readonly path: string;
  readonly body: RunAgentRequest | RerunRequest;
}

/** Returns a text in single quotes for a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Returns the request as a curl command. */
export const asCurl = ({ path, body }: Sent, origin: string): string =>
  `curl -sS ${origin}/api/v1${path} \\
  -H "Authorization: Bearer $RUNYARD_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${quoted(JSON.stringify(body))}`;

/**
 * Returns the request as a command line of the program `runyard`. The command `run` has no option for the identity, reads a prompt that
 * begins with `-` as an option, and names files by their paths, which a page does not know. Such a request, and every rerun, is written
 * with the command `api`.
 */
export function asCommand(draft: Draft, { path, body }: Sent, isRerun: boolean): string {
  const hasMore = draft.identity !== '' || draft.servers.length > 0 || ('attachments' in body && body.attachments);
  if (isRerun || hasMore || draft.prompt.startsWith('-'))
    return `bin/runyard api POST ${path} --data ${quoted(JSON.stringify(body))}`;
  const options: readonly (readonly [string, string])[] = [
    ['--title', draft.title],
    ['--model', draft.model],
    ['--environment', draft.environment],
    ['--harness', draft.harness],
    ['--approval', draft.approval],
    ['--mode', draft.mode],
    ['--skill', draft.skill],
    ['--max-cost', draft.cost],
    ['--max-minutes', draft.minutes],
    ['--max-turns', draft.turns],
  ];
  const words = options.flatMap(([name, value]) => (value === '' ? [] : [`${name} ${quoted(value)}`]));
  return ['bin/runyard run', ...words, ...(draft.isFresh ? ['--refresh'] : []), quoted(draft.prompt)].join(' ');
}
