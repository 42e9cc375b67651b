import type { RunContentItem } from '@runyard/contract/runs/acceptances';
import type { z } from 'zod';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunActor } from '../actor.ts';
import { readProfiles } from '../profiles.ts';
import { nameOfPool } from '../worker-pools/pools.ts';
import type { RunContent } from './content.ts';
import type { Withheld } from './run-rights.ts';

type Kind = z.infer<typeof RunContentItem>['kind'];

const nameOfKind: Readonly<Record<Kind, string>> = {
  environment: 'environment',
  agent_identity: 'agent identity',
  schedule: 'schedule',
  automation: 'automation',
  definition: 'definition of the factory',
  mcp_server: 'MCP server',
  worker_pool: 'worker pool',
  prompt: 'prompt of the request',
  run: 'request of the run',
  conversation: 'conversation of the run',
};

/** Returns the name of a principal for people. */
export type NameOf = (actor: RunActor) => string;

/** Returns the name of the content, with its revision if it has any. */
const subjectOf = ({ kind, uid, revision }: RunContent): string =>
  [
    revision === undefined ? 'the' : `revision ${revision} of the`,
    nameOfKind[kind],
    kind === 'worker_pool' ? nameOfPool(uid ?? '') : (uid ?? ''),
  ]
    .join(' ')
    .trim();

/** Returns a sentence that says how the executor can accept the content. */
function adviceOf({ kind, uid, author }: RunContent, executor: RunActor): string {
  if (executor.kind !== 'user' && kind === 'worker_pool')
    return 'Use a pool of an owner who may use it, or ask an administrator to add the pool\'s owner to the "agents" of the secret.';
  if (executor.kind !== 'user') return 'Have a person of the team who may use it save this content.';
  if (kind === 'prompt' && author?.kind === 'service_account')
    return `Read the agent identity, and accept it with: bin/runyard accept agent_identity ${author.uid}`;
  if (kind === 'conversation' && uid !== undefined)
    return `Texts of others ran in the sandbox of this conversation. Read them and accept them with: bin/runyard accept conversation ${uid}. Or begin anew: rerun the run, or send a message with bin/runyard send --anew ("workspace": "changes").`;
  if (kind === 'prompt' || kind === 'run' || kind === 'conversation')
    return 'Create a run with a prompt of your own instead.';
  return `Read the difference and accept it with: bin/runyard accept ${kind} ${uid}`;
}

/** Returns a text that says why a right is withheld from a run, and how to change that. */
export function describeWithheld(
  { right, name, content, isLackedByParent }: Withheld,
  executor: RunActor,
  nameOf: NameOf,
): string {
  const what = {
    secret: `The secret ${name}`,
    environment: `The environment ${name} of another team`,
    code_host_credentials: 'Personal credentials of code hosts',
    team_credentials: "The team's credentials of code hosts and MCP servers",
  }[right];
  const isMany = right === 'code_host_credentials' || right === 'team_credentials';
  const [is, it] = isMany ? ['are', 'them'] : ['is', 'it'];
  if (isLackedByParent)
    return `${what} ${is} not given to this run, because the run that started it does not have ${it}. Create a run of your own instead.`;
  if (!content) {
    const how =
      right === 'secret'
        ? 'An administrator can name the service account in its "agents", or the secret in the agent identity.'
        : 'Create a run as a member of the team.';
    return `${what} ${is} not given to this run, because its executor may not use ${it}. ${how}`;
  }
  const more =
    right === 'team_credentials'
      ? 'Until then, the run also has the usual model and the usual protection of branches, hosts and limits. '
      : '';
  const verb =
    content.kind === 'worker_pool'
      ? 'has machines of'
      : content.revision === undefined
        ? 'was written by'
        : 'has texts of';
  const text = content.excerpt ? ` It begins: ${JSON.stringify(content.excerpt)}.` : '';
  const by = content.author ? `${verb} ${nameOf(content.author)} (${content.author.uid})` : 'has no known author';
  return `${what} ${is} withheld from this run: ${subjectOf(content)} ${by}, who may not use ${it}, and the executor has not accepted this content.${text} ${more}${adviceOf(content, executor)}`;
}

/** Returns a text that says why a right is withheld from a run of the executor, which author lacks the right, and how to change that. */
export async function explainWithheld(
  db: Queryable,
  teamId: string,
  executor: RunActor,
  withheld: Withheld,
): Promise<string> {
  const author = withheld.content?.author;
  const profileOf = await readProfiles(db, teamId, author ? [author] : []);
  return describeWithheld(withheld, executor, (actor) => profileOf(actor).display_name ?? actor.kind);
}
