import type { Repository } from '@runyard/contract/environments/repositories';
import { maxListedRepositories } from '@runyard/contract/limits';
import type { AgentItem, AgentSortField, AgentVariant } from '@runyard/contract/team/agents';
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Queryable } from '../../platform/store/database/database.ts';
import type { Principal } from '../access/keys/principal.ts';
import type { CodeHosts } from '../code-hosts/code-hosts.ts';
import { listConfigs } from '../environments/environments.ts';
import type { SkillLibrary, SkillList } from './library.ts';
import type { ListedSkill } from './read-repository.ts';

/**
 * Returns, for each of these skills, the time at which the team created the last run with the skill. The result has no entry for skills
 * without a run. The folder `runs` passes this function, because this folder may not import `runs`.
 */
export type ReadLastRuns = (
  db: Queryable,
  teamId: string,
  specs: readonly string[],
) => Promise<ReadonlyMap<string, string>>;

export interface ListDeps {
  readonly db: Queryable;
  readonly codeHosts: Pick<CodeHosts, 'credentialFor'>;
  readonly skills: SkillLibrary;
  readonly lastRuns: { readonly ofSkills: ReadLastRuns };
  /** Maximum time for one answer. Default: 40 s. */
  readonly answerMs?: number;
}

export interface ListWanted {
  /** The repository to read; absent: the repositories of all environments of the caller. */
  readonly repository?: Repository;
  readonly refresh: boolean;
  readonly sortBy: AgentSortField;
  readonly includeMalformed: boolean;
}

/**
 * `not_of_environment` 403: a viewer named a repository that no environment has; `unreadable` 400: the named repository cannot be read.
 */
export type ListOutcome =
  | { readonly kind: 'agents'; readonly agents: AgentItem[] }
  | { readonly kind: 'not_of_environment' }
  | { readonly kind: 'unreadable'; readonly message: string };

/** A repository, and those environments of the caller that contain it. */
interface Place {
  readonly repository: Repository;
  readonly environments: AgentVariant['environments'];
}

const defaultAnswerMs = 40_000;
/** Maximum number of bytes of the texts in one answer. */
const maxTextsLength = 8 * 1024 * 1024;

/** Lists the skills with which the caller can start runs. Reads them with the credentials that a run of the caller would have. */
export async function listAgents(deps: ListDeps, caller: Principal, wanted: ListWanted): Promise<ListOutcome> {
  const places = await placesOf(deps.db, caller);
  const nameOfWanted = wanted.repository && nameOf(wanted.repository);
  const ofEnvironments = places.filter(({ repository }) => nameOf(repository) === nameOfWanted);
  if (wanted.repository && ofEnvironments.length === 0 && !isAtLeast(caller.role, 'member'))
    return { kind: 'not_of_environment' };
  const [alone] = wanted.repository ? [...ofEnvironments, { repository: wanted.repository, environments: [] }] : [];
  const chosen = alone ? [alone] : places.slice(0, maxListedRepositories);
  const lists = await readAll(deps, caller, chosen, wanted.refresh);
  const [only] = lists;
  if (alone && only?.kind === 'unreadable') return { kind: 'unreadable', message: only.message };
  const agents = chosen.flatMap((place, index) => entriesOf(place, lists[index]));
  const leftOut = places.slice(chosen.length);
  if (!alone && leftOut.length > 0)
    agents.push(
      ...leftOut.map((place) =>
        faultOf(
          place,
          `is not searched: one answer searches ${maxListedRepositories} repositories. Name this one in repo`,
        ),
      ),
    );
  const visibleAgents = agents.filter(({ variant }) => wanted.includeMalformed || variant.error === undefined);
  const dated = await withLastRuns(deps, caller.teamId, withinBytes(visibleAgents));
  return { kind: 'agents', agents: sorted(grouped(dated), wanted.sortBy) };
}

const nameOf = ({ owner, repo }: Repository): string => `${owner}/${repo}`;

async function placesOf(db: Queryable, caller: Principal): Promise<Place[]> {
  const places = new Map<string, { repository: Repository; environments: { uid: string; name: string }[] }>();
  for (const { uid, config } of await listConfigs(db, caller))
    for (const repository of config.github_repos ?? []) {
      const place = places.get(nameOf(repository)) ?? { repository, environments: [] };
      place.environments.push({ uid, name: config.name ?? '' });
      places.set(nameOf(repository), place);
    }
  return [...places.values()];
}

/** Reads as many of the repositories as the time allows. The remaining repositories are read for the next answer. */
async function readAll(
  { codeHosts, skills, answerMs = defaultAnswerMs }: ListDeps,
  { teamId, creator }: Principal,
  places: readonly Place[],
  refresh: boolean,
): Promise<SkillList[]> {
  let timer: NodeJS.Timeout | undefined;
  const message = 'is still being read. Ask again in a minute.';
  const late = new Promise<SkillList>((resolve) => {
    timer = setTimeout(() => resolve({ kind: 'unreadable', why: 'unavailable', message }), answerMs);
  });
  try {
    return await Promise.all(
      places.map(async ({ repository }) => {
        const chosen = await codeHosts.credentialFor({ teamId, actor: creator }, repository);
        return await Promise.race([skills.list({ teamId, repository, chosen }, refresh), late]);
      }),
    );
  } finally {
    clearTimeout(timer);
  }
}

interface Entry {
  readonly name: string;
  readonly variant: AgentVariant;
}

function entriesOf(place: Place, list: SkillList | undefined): Entry[] {
  if (list === undefined) return [];
  if (list.kind === 'unreadable') return [faultOf(place, list.message)];
  return list.skills.map((skill) => entryOf(place, skill));
}

const sourceOf = ({ owner, repo }: Repository, path: string) => ({ owner, name: repo, skill_path: path });

function entryOf({ repository, environments }: Place, { path, folder, text: said }: ListedSkill): Entry {
  const id = `${nameOf(repository)}:${path}`;
  const place = { id, source: sourceOf(repository, path), environments: [...environments] };
  if (typeof said === 'string')
    return { name: folder, variant: { ...place, description: '', base_prompt: '', error: `${path} ${said}.` } };
  return { name: said.name, variant: { ...place, description: said.description, base_prompt: said.body } };
}

function faultOf({ repository, environments }: Place, error: string): Entry {
  const name = nameOf(repository);
  const source = sourceOf(repository, '');
  return {
    name,
    variant: { id: name, description: '', base_prompt: '', source, environments: [...environments], error },
  };
}

/** Leaves out texts when the limit of all texts is reached. */
function withinBytes(entries: readonly Entry[]): Entry[] {
  let left = maxTextsLength;
  return entries.map((entry) => {
    left -= entry.variant.base_prompt.length;
    if (left >= 0) return entry;
    const error = 'The text is left out, because the answer is too large. Ask for this repository alone with repo.';
    return { ...entry, variant: { ...entry.variant, base_prompt: '', error } };
  });
}

async function withLastRuns({ db, lastRuns }: ListDeps, teamId: string, entries: readonly Entry[]): Promise<Entry[]> {
  const times = await lastRuns.ofSkills(
    db,
    teamId,
    entries.map(({ variant }) => variant.id),
  );
  return entries.map(({ name, variant }) => {
    const last = times.get(variant.id);
    return { name, variant: last === undefined ? variant : { ...variant, last_run_timestamp: last } };
  });
}

function grouped(entries: readonly Entry[]): AgentItem[] {
  const agents = new Map<string, AgentItem>();
  for (const { name, variant } of entries) {
    const agent = agents.get(name) ?? { name, variants: [] };
    agent.variants.push(variant);
    agents.set(name, agent);
  }
  return [...agents.values()];
}

function sorted(agents: AgentItem[], sortBy: AgentSortField): AgentItem[] {
  const byName = agents.sort((a, b) => (a.name < b.name ? -1 : 1));
  if (sortBy === 'name') return byName;
  const lastOf = ({ variants }: AgentItem) =>
    variants
      .map((each) => each.last_run_timestamp ?? '')
      .sort()
      .at(-1) ?? '';
  return byName.sort((a, b) => (lastOf(a) === lastOf(b) ? 0 : lastOf(a) < lastOf(b) ? 1 : -1));
}
