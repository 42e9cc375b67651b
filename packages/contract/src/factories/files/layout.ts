/** Finds the agent, automation, webhook, runner or environment that a file of a definition folder defines, from the path of the file. */
import { makeSpelling } from '../../wire/spelling.ts';
import { resourceNamePattern, resourceNameRule } from './execution.ts';

/** The kinds of resources for which each resource has its own file. */
export type ResourceKind = 'agent' | 'automation' | 'webhook' | 'runner' | 'environment';

export type Placed =
  | { readonly kind: 'factory' | 'variables' }
  | { readonly kind: ResourceKind; readonly name: string }
  | { readonly kind: 'skill' /** Folder with the SKILL.md. */; readonly folder: string; readonly agent?: string }
  /** A file that belongs to the published format but has no effect in this service. */
  | { readonly kind: 'not_available'; readonly reason: string }
  /** A file that is not part of the definition. */
  | { readonly kind: 'other' }
  | { readonly kind: 'fault'; readonly message: string; readonly suggestion?: string };

/** For each kind of resource: returns the path of the file that defines the resource with this name. */
export const pathOf: Readonly<Record<ResourceKind, (name: string) => string>> = {
  agent: (name) => `agents/${name}/agent.md`,
  automation: (name) => `automations/${name}/automation.md`,
  webhook: (name) => `webhooks/${name}.yaml`,
  runner: (name) => `runners/${name}.yaml`,
  environment: (name) => `environments/${name}.yaml`,
};

const folders = ['agents', 'automations', 'webhooks', 'runners', 'environments', 'skills'];
const folderSpelling = makeSpelling(folders);
const notAvailable: Readonly<Record<string, string>> = {
  scorers: 'scorers are not available on this service; the file has no effect',
  benchmarks: 'benchmarks are not available on this service; the file has no effect',
};
/** Names of files that file managers and git leave behind. */
const ignored = new Set(['.gitkeep', '.keep', '.DS_Store', 'Thumbs.db']);
const maxPathLength = 400;

const fault = (message: string, suggestion?: string): Placed => ({
  kind: 'fault',
  message,
  ...(suggestion === undefined ? {} : { suggestion }),
});

/** Returns the reason why a path is refused in every definition; `undefined` if the path is a plain relative path. */
export function pathFault(path: string): string | undefined {
  if (path.length > maxPathLength) return `the path has more than ${maxPathLength} characters`;
  if (/\p{Cc}/u.test(path) || !path.isWellFormed()) return 'the path has control characters';
  if (path.includes('\\')) return 'the path has a backslash; folders are separated by /';
  if (path.startsWith('/') || /^[A-Za-z]:/.test(path))
    return 'the path is absolute; it must be relative to factory.yaml';
  if (path.split('/').some((part) => part === '' || part === '.' || part === '..'))
    return 'the path has an empty part, . or ..';
  if (path.split('/').some(isGitFolder)) return 'the path has a part .git, whose files git obeys';
  return undefined;
}

/** Returns true for `.git` and for spellings that the file systems of macOS and Windows treat as `.git`. */
const isGitFolder = (part: string): boolean =>
  /^(?:\.git|git~1)$/i.test(part.replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '').replace(/[. ]+$/, ''));

/** Files that some programs read by themselves when they work in a folder, although their names look plain. */
const obeyed =
  /^(?:(?:agents|claude|gemini|qwen)(?:\..*)?\.md|opencode\.json|package\.json|mise(?:\..*)?\.toml|(?:site|user)customize\.py)$/i;
const plainFolder = /^[A-Za-z0-9_][\w -]*$/;
const plainFile =
  /^(?:(?:LICENSE|NOTICE|README|CHANGELOG)|[A-Za-z0-9_][\w. +@()-]*\.(?:bash|c|cc|cjs|cpp|cs|css|csv|go|graphql|h|hpp|html|ini|ipynb|j2|java|jinja|js|json|jsonl|jsx|kt|lua|md|mjs|php|pl|proto|ps1|py|r|rb|rs|rst|scala|scss|sh|sql|svg|swift|tex|tmpl|toml|ts|tsv|tsx|txt|vue|xml|xsd|yaml|yml))$/;

/**
 * Returns whether a file of a definition can be written into a folder without that another program obeys it by itself. Only names of
 * ordinary documents and sources are plain: a shell, an editor or git obeys files such as `.envrc`, `.vscode/tasks.json`, or `HEAD` beside
 * `objects` and `refs`, which make a folder a repository with its own `config`.
 */
export function isPlainPath(path: string): boolean {
  const folders = path.split('/');
  const file = folders.pop() ?? '';
  return (
    folders.every((part) => plainFolder.test(part) && part !== 'node_modules') &&
    plainFile.test(file) &&
    !obeyed.test(file)
  );
}

/** Returns a path as the list of faults shows it, without characters that would break the lines and columns of the list. */
export const shownPath = (path: string): string =>
  JSON.stringify(path.slice(0, 200))
    .slice(1, -1)
    .replace(/\p{Cc}|\p{Cf}/gu, (each) => `\\u{${each.codePointAt(0)?.toString(16)}}`);

/** Returns true if this is the name of a folder next to factory.yaml whose files belong, or seem to belong, to a definition. */
export function isDefinitionFolder(name: string): boolean {
  return folders.includes(name) || Object.hasOwn(notAvailable, name) || folderSpelling.suggest(name) !== undefined;
}

/** Returns true if a file of this name next to factory.yaml belongs, or seems to belong, to a definition. */
export const isDefinitionFile = (name: string): boolean => placeAtRoot(name).kind !== 'other';

/** Returns the resource that the file at this path defines. */
export function placeOf(path: string): Placed {
  const [folder = '', ...rest] = path.split('/');
  const name = rest.at(-1) ?? folder;
  if (rest.length === 0) return placeAtRoot(folder);
  if (ignored.has(name)) return { kind: 'other' };
  const reason = Object.hasOwn(notAvailable, folder) ? notAvailable[folder] : undefined;
  if (reason !== undefined) return { kind: 'not_available', reason };
  switch (folder) {
    case 'agents':
      return placeAgent(rest);
    case 'automations':
      return placeAutomation(rest);
    case 'webhooks':
      return placeYaml('webhook', rest);
    case 'runners':
      return placeYaml('runner', rest);
    case 'environments':
      return placeEnvironment(rest);
    case 'skills':
      return placeSkill(rest, 'skills');
    default:
      return placeElsewhere(folder, rest);
  }
}

function placeAtRoot(name: string): Placed {
  if (name === 'factory.yaml') return { kind: 'factory' };
  if (name === 'variables.yaml') return { kind: 'variables' };
  return /^factory\.ya?ml$/i.test(name) ? fault('must be named factory.yaml', 'factory.yaml') : { kind: 'other' };
}

function named(kind: ResourceKind, name: string): Placed {
  return resourceNamePattern.test(name) ? { kind, name } : fault(`the name of the ${kind} ${resourceNameRule}`);
}

function placeAgent([name = '', ...rest]: readonly string[]): Placed {
  if (rest.length === 1 && rest[0] === 'agent.md') return named('agent', name);
  if (rest[0] === 'skills' && rest.length > 1) {
    const agent = named('agent', name);
    if (agent.kind === 'fault') return agent;
    const skill = placeSkill(rest.slice(1), `agents/${name}/skills`);
    return skill.kind === 'skill' ? { ...skill, agent: name } : skill;
  }
  const wanted = pathOf.agent(name.replace(/\.md$/i, ''));
  return fault(
    'is no file of a definition: an agent is agents/<name>/agent.md, its skills are in agents/<name>/skills/',
    wanted,
  );
}

function placeAutomation([name = '', ...rest]: readonly string[]): Placed {
  if (rest.length === 1 && rest[0] === 'automation.md') return named('automation', name);
  const wanted = pathOf.automation(name.replace(/\.md$/i, ''));
  return fault('is no file of a definition: an automation is automations/<name>/automation.md', wanted);
}

/** Repositories also have other files in folders of this name, so only YAML files directly in the folder belong to the definition. */
const placeEnvironment = (rest: readonly string[]): Placed =>
  rest.length === 1 && /\.ya?ml$/i.test(rest[0] ?? '') ? placeYaml('environment', rest) : { kind: 'other' };

function placeYaml(kind: 'webhook' | 'runner' | 'environment', rest: readonly string[]): Placed {
  const [name = ''] = rest;
  if (rest.length === 1 && name.endsWith('.yaml')) return named(kind, name.slice(0, -'.yaml'.length));
  const wanted = rest.length === 1 ? pathOf[kind](name.replace(/\.[^.]*$/, '')) : undefined;
  return fault(`is no file of a definition: a ${kind} is ${kind}s/<name>.yaml`, wanted);
}

function placeSkill([name = '', ...rest]: readonly string[], parent: string): Placed {
  if (rest.length === 0) return fault(`is no file of a skill: a skill is a folder in ${parent}/ with a SKILL.md`);
  return resourceNamePattern.test(name)
    ? { kind: 'skill', folder: `${parent}/${name}` }
    : fault(`the name of the skill ${resourceNameRule}`);
}

/** Finds folders with a wrong name whose files look like parts of a definition. */
function placeElsewhere(folder: string, rest: readonly string[]): Placed {
  const suggestion = folderSpelling.suggest(folder);
  if (suggestion === undefined) return { kind: 'other' };
  const moved = placeOf([suggestion, ...rest].join('/'));
  const isOurs = moved.kind !== 'fault' && (moved.kind !== 'skill' || rest.at(-1) === 'SKILL.md');
  return isOurs ? fault(`is in the folder ${folder}; did you mean ${suggestion}?`, suggestion) : { kind: 'other' };
}
