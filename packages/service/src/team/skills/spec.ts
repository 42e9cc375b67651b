import { Repository } from '@runyard/contract/environments/repositories';

/** A skill as a request names it. */
export interface SkillSpec {
  readonly repository: Repository;
  /** `path`: path of the skill's SKILL.md in the repository; or `name`: name of the folder that contains SKILL.md. */
  readonly place: { readonly path: string } | { readonly name: string };
}

/** Maximum number of characters of a spec. It is limited because the index of runs by spec accepts rows of at most 2,704 bytes. */
export const maxSpecLength = 500;

/** Name in the Agent Skills format: https://agentskills.io/specification#name-field */
export const isSkillName = (name: string): boolean => name.length <= 64 && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name);

/** Folders of a repository that are searched for skills. A name means the skill in the first folder that has it. */
export const skillFolders = ['skills', '.agents/skills', '.claude/skills', '.warp/skills', '.codex/skills'] as const;

const form = 'must be owner/repo:skill-name or owner/repo:path/to/SKILL.md';

/** Returns true if the path does not lead out of its folder, and every operating system can store the names in it. */
export const isPlainPath = (path: string): boolean =>
  path.split('/').every((part) => !['', '.', '..'].includes(part) && !/[\\\p{Cc}\ufffd]/u.test(part));

/**
 * Reads a spec. `repositories`: the repositories of the run's environment, in which a name without an owner is looked up. Returns the fault
 * as a string.
 */
export function parseSkillSpec(text: string, repositories: readonly Repository[]): SkillSpec | string {
  if (text.length > maxSpecLength) return `must be at most ${maxSpecLength} characters`;
  const [, named = '', place = ''] = /^([^:]*):(.+)$/s.exec(text) ?? [];
  const parts = named.split('/');
  const [owner, repo] = parts.length === 1 ? [undefined, parts[0]] : parts;
  if (parts.length > 2 || !repo || place === '') return form;
  const found = owner === undefined ? findByName(repo, repositories) : { owner, repo };
  if (typeof found === 'string') return found;
  const repository = Repository.safeParse(found);
  if (!repository.success) return form;
  if (place === 'SKILL.md' || place.endsWith('/SKILL.md')) {
    return isPlainPath(place) ? { repository: repository.data, place: { path: place } } : form;
  }
  if (isSkillName(place)) return { repository: repository.data, place: { name: place } };
  return `${form}; a name has at most 64 characters of [a-z0-9-] and neither begins nor ends with a hyphen`;
}

function findByName(repo: string, repositories: readonly Repository[]): Repository | string {
  const [first, second] = repositories.filter((each) => each.repo === repo);
  if (first === undefined) return `must name the owner as owner/${repo}: the environment has no repository ${repo}`;
  if (second !== undefined)
    return `must name the owner as owner/${repo}: the environment has several repositories ${repo}`;
  return first;
}

export const specText = ({ repository: { owner, repo }, place }: SkillSpec): string =>
  `${owner}/${repo}:${'path' in place ? place.path : place.name}`;

/** Returns all specs, as text, that the skill of the spec `text` may get when the skill is found in a repository. */
export function specsToFind(text: string): string[] {
  const spec = parseSkillSpec(text, []);
  if (typeof spec === 'string' || 'path' in spec.place) return [text];
  const { name } = spec.place;
  return [text, ...skillFolders.map((folder) => specText({ ...spec, place: { path: `${folder}/${name}/SKILL.md` } }))];
}
