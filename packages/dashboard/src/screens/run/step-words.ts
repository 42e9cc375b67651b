/** Describes the actions of an agent as short sentences. Harnesses give the same action different names and inputs. */

import type { IconName } from '../../parts/icons.ts';
import { type ActionEntry, textOf } from './entry.ts';

/** The kinds of actions that the page describes in words. */
type StepKind =
  | 'command'
  | 'read'
  | 'search'
  | 'edit'
  | 'write'
  | 'delete'
  | 'move'
  | 'fetch'
  | 'question'
  | 'plan'
  | 'report'
  | 'pull request'
  | 'start run'
  | 'await runs'
  | 'list runs'
  | 'cancel run'
  | 'message'
  | 'skill'
  | 'computer'
  | 'call';

/** A sentence about an action: verb and object, for example "Edited" and "src/tax.ts". */
export interface StepWords {
  readonly kind: StepKind;
  readonly icon: IconName;
  readonly verb: string;
  /** A command, a path, a pattern or a title; undefined if the input of the action names none. */
  readonly object: string | undefined;
  /** True: `object` is code, not words. */
  readonly isCode: boolean;
  /** Working directory of a command, or the place of a search. */
  readonly place: string | undefined;
}

/** For each kind its icon, and its verb as an infinitive, in the present and in the past. */
const verbs: Readonly<Record<StepKind, readonly [icon: IconName, base: string, now: string, past: string]>> = {
  command: ['term', 'run', 'Running', 'Ran'],
  read: ['file', 'read', 'Reading', 'Read'],
  search: ['search', 'search for', 'Searching for', 'Searched for'],
  edit: ['diff', 'edit', 'Editing', 'Edited'],
  write: ['diff', 'write', 'Writing', 'Wrote'],
  delete: ['diff', 'delete', 'Deleting', 'Deleted'],
  move: ['diff', 'move', 'Moving', 'Moved'],
  fetch: ['link', 'fetch', 'Fetching', 'Fetched'],
  question: ['ask', 'ask', 'Asking', 'Asked'],
  plan: ['plan', 'change the plan', 'Changing the plan', 'Changed the plan'],
  report: ['file', 'report', 'Reporting', 'Reported'],
  'pull request': ['pr', 'report the pull request', 'Reporting the pull request', 'Reported the pull request'],
  'start run': ['child', 'start a child run', 'Starting a child run', 'Started a child run'],
  'await runs': ['clock', 'wait for child runs', 'Waiting for child runs', 'Waited for child runs'],
  'list runs': ['child', 'list child runs', 'Listing child runs', 'Listed child runs'],
  'cancel run': ['child', 'cancel the child run', 'Cancelling the child run', 'Cancelled the child run'],
  message: ['child', 'write to the run', 'Writing to the run', 'Wrote to the run'],
  skill: ['book', 'use the skill', 'Using the skill', 'Used the skill'],
  computer: ['env', 'use the computer', 'Using the computer', 'Used the computer'],
  call: ['bolt', 'call', 'Calling', 'Called'],
};

/** Kinds of actions by the name of a tool. The first match counts. */
const kindOfName: readonly (readonly [RegExp, StepKind])[] = [
  [/(^|[._])ask_?user/, 'question'],
  [/(^|[._])start_run$/, 'start run'],
  [/(^|[._])await_runs$/, 'await runs'],
  [/(^|[._])list_runs$/, 'list runs'],
  [/(^|[._])cancel_run$/, 'cancel run'],
  [/(^|[._])send_message$/, 'message'],
  [/(^|[._])report_artifact$|(^|[._])handoff$/, 'report'],
  [/^(todo_?write|write_?todos|update_?plan|todowrite)$/, 'plan'],
];

/** Returns the members of an action's input; none if the input is not an object. */
export const membersOf = (input: unknown): Readonly<Record<string, unknown>> =>
  typeof input === 'object' && input !== null && !Array.isArray(input)
    ? (input as Readonly<Record<string, unknown>>)
    : {};

/** Returns the first of these members that is a text or a list of texts. */
function wordIn(members: Readonly<Record<string, unknown>>, ...names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = members[name];
    if (typeof value === 'string' && value !== '') return value;
    if (Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'string'))
      return value.join(' ');
  }
  return undefined;
}

function kindOfFiles(name: string, members: Readonly<Record<string, unknown>>): StepKind {
  if (/delete|remove|^rm$/.test(name)) return 'delete';
  if (/move|rename/.test(name)) return 'move';
  if (/read|view|list|^ls$|^cat$|^open/.test(name)) return 'read';
  if (/write|create/.test(name) || typeof members.content === 'string') return 'write';
  return 'edit';
}

/** Returns the kind of an action, from the name of its tool and from its category. */
function kindOf({ name, category, input }: Pick<ActionEntry, 'name' | 'category' | 'input'>): StepKind {
  const members = membersOf(input);
  const tool = name.toLowerCase();
  const known = kindOfName.find(([pattern]) => pattern.test(tool))?.[1];
  if (known === 'report' && members.type === 'PULL_REQUEST') return 'pull request';
  if (known !== undefined) return known;
  if (category === 'command') return 'command';
  if (category === 'files') return kindOfFiles(tool, members);
  if (category === 'search') return wordIn(members, 'url') === undefined ? 'search' : 'fetch';
  if (category === 'skill') return 'skill';
  return category === 'computer' ? 'computer' : 'call';
}

const pathNames = ['file_path', 'path', 'filePath', 'absolute_path', 'notebook_path', 'dir_path'] as const;

/** Members that name the object of an action, by the kind of the action. */
const objectNames: Readonly<Partial<Record<StepKind, readonly string[]>>> = {
  command: ['command', 'cmd', 'script', 'title'],
  search: ['pattern', 'query', 'q', 'glob', 'regex', 'title', ...pathNames],
  fetch: ['url'],
  question: ['question', 'title'],
  report: ['title', 'path', 'url'],
  'pull request': ['url'],
  'start run': ['title', 'prompt'],
  'cancel run': ['run_id'],
  message: ['run_id'],
  skill: ['skill', 'name', 'command'],
  computer: ['action', 'url', 'title'],
};
const fileNames: readonly string[] = [...pathNames, 'title'];
/** Members of an input that name the working directory. */
export const places: readonly string[] = ['cwd', 'workdir', 'directory', 'dir_path'];
const codeKinds: readonly StepKind[] = ['command', 'read', 'search', 'edit', 'write', 'delete', 'move', 'fetch'];

/** Returns the path in the head of a patch (`+++ b/src/tax.ts`). */
const pathOfPatch = (output: string): string | undefined => /^\+\+\+ (?:b\/)?([^\t\n]+)/m.exec(output)?.[1];

function objectOf(kind: StepKind, { name, input, output }: Pick<ActionEntry, 'name' | 'input' | 'output'>) {
  const members = membersOf(input);
  if (kind === 'call') return name;
  if (kind === 'plan' || kind === 'await runs' || kind === 'list runs') return undefined;
  const isChange = kind === 'edit' || kind === 'write' || kind === 'delete' || kind === 'move';
  // Some harnesses give only a sentence, such as "Writing to a.txt", and name the file in the patch.
  const path = isChange && wordIn(members, ...pathNames) === undefined ? pathOfPatch(output) : undefined;
  return (
    path ??
    wordIn(members, ...(objectNames[kind] ?? fileNames)) ??
    (textOf(input).startsWith('{') ? name : textOf(input) || name)
  );
}

/** Returns the sentence about an action. Its texts come from the agent and may have any content. */
export function stepWords(entry: Pick<ActionEntry, 'name' | 'category' | 'input' | 'output' | 'state'>): StepWords {
  const kind = kindOf(entry);
  const members = membersOf(entry.input);
  const [icon, base, now, past] = verbs[kind];
  const verb =
    entry.state === 'waiting' && kind !== 'question'
      ? `Asks to ${base}`
      : entry.state === 'denied'
        ? `Was not allowed to ${base}`
        : entry.state === 'running'
          ? now
          : past;
  const object = objectOf(kind, entry);
  const inside = kind === 'search' && object !== members.path ? wordIn(members, ...pathNames) : undefined;
  return { kind, icon, verb, object, isCode: codeKinds.includes(kind), place: inside ?? wordIn(members, ...places) };
}

/** Returns the words for some actions that only read: "Read 14 files and searched 2 times". */
export function readingWords(kinds: readonly StepKind[]): string {
  const times = (count: number) => (count === 1 ? 'once' : `${count} times`);
  const count = (...wanted: readonly StepKind[]) => kinds.filter((kind) => wanted.includes(kind)).length;
  const [files, searches, pages] = [count('read'), count('search'), count('fetch')];
  const parts = [
    files > 0 ? `read ${files} ${files === 1 ? 'file' : 'files'}` : '',
    searches > 0 ? `searched ${times(searches)}` : '',
    pages > 0 ? `fetched ${pages} ${pages === 1 ? 'page' : 'pages'}` : '',
  ].filter((part) => part !== '');
  const words = parts.length > 1 ? `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}` : (parts[0] ?? '');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Returns true if an action only reads and has succeeded, so that the page may fold it with its neighbours. */
export const onlyReads = (entry: ActionEntry): boolean =>
  entry.state === 'completed' &&
  (entry.exitCode ?? 0) === 0 &&
  entry.shortened === undefined &&
  ['read', 'search', 'fetch'].includes(kindOf(entry));

/** A step of a plan. */
export interface PlanItem {
  readonly content: string;
  readonly status: string | undefined;
}

/**
 * Returns the steps of a plan: of a notice (ACP: `entries`), or of the tools with which Claude Code and qwen (`todos`) and codex (`plan`)
 * write one. Returns undefined if `data` has none.
 */
export function planIn(data: unknown): readonly PlanItem[] | undefined {
  const members = membersOf(data);
  const items = members.entries ?? members.todos ?? members.plan;
  if (!Array.isArray(items) || items.length === 0) return undefined;
  return items.flatMap((item: unknown) => {
    const { content, step, description, status } = membersOf(item);
    const text = content ?? step ?? description;
    return typeof text === 'string' ? [{ content: text, status: typeof status === 'string' ? status : undefined }] : [];
  });
}
