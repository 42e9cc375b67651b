/** Creates the request that the form for a new run sends, and writes the same request as shell commands. */

import type { RunAgentRequest } from '@runyard/contract/runs/run-request';

/** The fields of the form. The request leaves out fields whose text is empty. */
export interface Draft {
  readonly prompt: string;
  readonly title: string;
  readonly model: string;
  readonly harness: string;
  readonly environment: string;
  readonly identity: string;
  readonly approval: string;
  readonly mode: string;
  readonly cost: string;
  readonly minutes: string;
  readonly turns: string;
}

export const emptyDraft: Draft = {
  prompt: '',
  title: '',
  model: '',
  harness: '',
  environment: '',
  identity: '',
  approval: '',
  mode: '',
  cost: '',
  minutes: '',
  turns: '',
};

const numberOf = (text: string): number | undefined => (text.trim() === '' ? undefined : Number(text));

/** Returns an object without the members that have no value. */
function present<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined | ''> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined && value !== '')) as {
    [K in keyof T]?: Exclude<T[K], undefined | ''>;
  };
}

/** Returns the body of `POST /agent/runs`. The service checks the values and names the faults. */
export function requestOf(draft: Draft): RunAgentRequest {
  const config = present({
    model_id: draft.model,
    environment_id: draft.environment,
    approval_policy: draft.approval,
    harness: draft.harness === '' ? undefined : { type: draft.harness },
    max_cost_usd: numberOf(draft.cost),
    max_duration_minutes: numberOf(draft.minutes),
    max_turns: numberOf(draft.turns),
  });
  return present({
    prompt: draft.prompt,
    title: draft.title,
    agent_identity_uid: draft.identity,
    mode: draft.mode,
    config: Object.keys(config).length === 0 ? undefined : config,
  }) as RunAgentRequest;
}

/** Returns a text in single quotes for a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Returns the request as a curl command. */
export const asCurl = (draft: Draft, origin: string): string =>
  `curl -sS ${origin}/api/v1/agent/runs \\
  -H "Authorization: Bearer $RUNYARD_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${quoted(JSON.stringify(requestOf(draft)))}`;

/** Returns the request as a command line of the program `runyard`. */
export function asCommand(draft: Draft): string {
  const options: readonly (readonly [string, string])[] = [
    ['--title', draft.title],
    ['--model', draft.model],
    ['--environment', draft.environment],
    ['--harness', draft.harness],
    ['--approval', draft.approval],
    ['--max-cost', draft.cost],
    ['--max-minutes', draft.minutes],
    ['--max-turns', draft.turns],
  ];
  const words = options.flatMap(([name, value]) => (value === '' ? [] : [`${name} ${quoted(value)}`]));
  return ['bin/runyard run', ...words, quoted(draft.prompt)].join(' ');
}
