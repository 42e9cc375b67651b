/** Lets somebody outside of a factory work on a task: suggests the commands for a worktree, and notifies the foreman. */
import { createHash } from 'node:crypto';
import type { FactoryTask } from '@runyard/contract/factories/factory-tasks';
import { apiPrefix } from '@runyard/contract/wire/route';
import type { CallOperation } from './operations.ts';
import type { Json } from './tool.ts';

const maxNote = 20_000;
const maxAnswerBytes = 1024 * 1024;

/** Arguments of the tool `get_task`, as members of a JSON Schema. */
export const startArguments: Readonly<Record<string, Json>> = {
  start_working: {
    type: 'boolean',
    description:
      'True: the answer also has `start_working`, with a branch and the git commands of a worktree for this task',
  },
  workspace_dir: { type: 'string', description: 'Folder of your clone of the repository. Default: the present folder' },
  branch: {
    type: 'string',
    description: 'Branch to work on. Default: the branch of the newest pull request of the task, or a new one',
  },
  notify_foreman: { type: 'boolean', description: 'With `start_working`: also sends the run of the task a message' },
  note: { type: 'string', description: `Text of this message, at most ${maxNote} characters` },
};

interface Start {
  readonly folder: string;
  readonly branch: string | undefined;
  /** Absent: the foreman is not notified. Empty: with the usual text. */
  readonly note: string | undefined;
}

/** Only names that git accepts and that no shell interprets. Agents report names of branches, and people execute the commands. */
const isBranch = (name: string): boolean =>
  /^[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}$/.test(name) && !/\.\.|\/\/|\/\.|\.lock(\/|$)|[./]$/.test(name);

const isFolder = (name: string): boolean => name !== '' && name.length <= 1_000 && !/\p{Cc}/u.test(name);

/** Reads the arguments. Undefined: the caller only reads the task. A string: the fault in the arguments. */
export function readStart(given: Json): Start | string | undefined {
  const { start_working = false, notify_foreman = false, workspace_dir = '.', branch, note } = given;
  for (const [name, value] of Object.entries({ start_working, notify_foreman }))
    if (typeof value !== 'boolean') return `${name}: must be true or false`;
  if (!start_working) {
    const other = Object.keys(startArguments).find((name) => name !== 'start_working' && given[name] !== undefined);
    return other === undefined ? undefined : `${other}: has an effect only with start_working`;
  }
  if (typeof workspace_dir !== 'string' || !isFolder(workspace_dir))
    return 'workspace_dir: must be a path of at most 1,000 characters';
  if (branch !== undefined && (typeof branch !== 'string' || !isBranch(branch)))
    return 'branch: must be a name of letters, digits and . _ / -, at most 200 characters';
  if (note !== undefined && (typeof note !== 'string' || note.length > maxNote))
    return `note: must be a text of at most ${maxNote} characters`;
  if (note !== undefined && !notify_foreman) return 'note: has an effect only with notify_foreman';
  return { folder: workspace_dir, branch, note: notify_foreman ? (note ?? '').trim() : undefined };
}

/** Returns the branches of the pull requests of a task, newest first, without those whose names are not safe. */
const branchesOf = ({ outputs = [] }: FactoryTask): string[] =>
  outputs.flatMap((each) =>
    each.artifact_type === 'PULL_REQUEST' && isBranch(each.data.branch) ? [each.data.branch] : [],
  );

/** Returns the name of a new branch: the words of the title, and the beginning of the task's UID. */
function newBranch({ title, uid }: FactoryTask): string {
  const words = title.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return ['task/', ...words.slice(0, 6).map((word) => `${word.slice(0, 20)}-`), uid.slice(0, 8)].join('');
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Returns the git commands that make a worktree for a branch beside the clone. */
function worktreeCommands(folder: string, branch: string, exists: boolean): string[] {
  const git = `git -C ${quoted(folder)}`;
  const place = quoted(`../${branch.replaceAll('/', '-')}`);
  return [
    `${git} fetch origin`,
    exists
      ? `${git} worktree add ${place} ${quoted(branch)}`
      : `${git} worktree add -b ${quoted(branch)} ${place} origin/HEAD`,
  ];
}

/**
 * Returns what the answer of `get_task` has as `start_working`; a string: the refusal of the message to the foreman. The message is sent with
 * the rights of the caller, and once in 24 h for the same text.
 */
export async function startWorking(call: CallOperation, task: FactoryTask, start: Start): Promise<Json | string> {
  const existing = branchesOf(task);
  const branch = start.branch ?? existing[0] ?? newBranch(task);
  const runId = task.current_run?.run_id ?? task.run_id;
  if (start.note !== undefined) {
    const note = start.note === '' ? 'Somebody outside of the factory begins to work on this task.' : start.note;
    const message = `${note}\nBranch: ${branch}`;
    const sent = await call(
      {
        method: 'POST',
        url: `${apiPrefix}/agent/runs/${runId}/followups`,
        body: { message },
        idempotencyKey: `start-working-${createHash('sha256').update(`${runId} ${message}`).digest('hex')}`,
      },
      maxAnswerBytes,
    );
    if (sent.kind === 'refused') return `The foreman was not notified: ${sent.message}`;
  }
  return {
    branch,
    commands: worktreeCommands(start.folder, branch, existing.includes(branch)),
    hand_back: 'send_task with factory_task_uid, note, branch and pr_url',
    ...(start.note === undefined ? {} : { notified_run_id: runId }),
  };
}
