/**
 * Attaches what GitHub shows about the place of a run: the conversation, and for a pull request its diff and its failing checks. Strangers wrote
 * these texts, so they are files beside the payload, and never a part of the prompt. GitHub is read when the agent begins, once for each run, and
 * only in part: each file has a limit, and says what was left out.
 */
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import type { RunIdentity } from '../../runs/executions/run-tokens/sessions.ts';
import { insertAttachments } from '../../runs/files/attachments/insert.ts';
import type { AttachmentRow } from '../../runs/files/attachments/read.ts';
import { storeAttachments } from '../../runs/files/attachments/store.ts';
import { takeRoomForRequest } from '../../runs/files/stored-bytes.ts';
import type { GithubAnswer, GithubRequest } from '../../team/code-hosts/github-api.ts';
import { type AskDeps, askForPlace } from './ask-place.ts';
import { type PlaceRow, readPlace, readPlaceOfRun } from './places.ts';
import { at, headOf, textOf } from './read-event.ts';

export interface PlaceFileDeps extends AskDeps {
  readonly blobs: BlobStore;
  readonly executionDeps: ExecutionDeps;
}

/** Limits of the files, in bytes. */
export const maxDiffBytes = 512 * 1024;
export const maxConversationBytes = 256 * 1024;
const maxChecksBytes = 128 * 1024;
/** Characters of one text in a file. */
const maxText = 8 * 1024;
/** Only the newest comments are read. */
const maxPages = 3;
const perPage = 100;
/** The agent waits for its task meanwhile. */
const limitMs = 12_000;

interface PlaceFile {
  readonly fileName: string;
  readonly mimeType: string;
  readonly bytes: Buffer;
}
type Ask = (path: string, more?: Partial<GithubRequest>, permission?: string) => Promise<GithubAnswer>;

/** Returns the attachments of a run, with those of its place. `known`: those that the run has. */
export async function filesOfPlace(
  deps: PlaceFileDeps,
  { runId, teamId }: Pick<RunIdentity, 'runId' | 'teamId'>,
  known: readonly AttachmentRow[],
): Promise<readonly AttachmentRow[]> {
  const { db, blobs, executionDeps } = deps;
  if (known.some(({ file_name: name }) => name === conversationFile)) return known;
  const of = await readPlaceOfRun(db, runId, null);
  const place = of && (await readPlace(db, of.placeId));
  if (!place || place.team_id !== teamId || place.is_suspended) return known;
  const files = await readFiles(deps, place);
  const fileBytes = files.map(({ bytes }) => bytes.length);
  if (await takeRoomForRequest(executionDeps, undefined, teamId, { texts: [], fileBytes })) return known;
  const attachments = await storeAttachments(blobs, files);
  await insertAttachments(db, { runId, attachments, from: known.length });
  const rows = attachments.map(({ id, fileName, mimeType, sizeBytes }) => ({
    id,
    file_name: fileName,
    mime_type: mimeType,
    size_bytes: sizeBytes,
  }));
  return [...known, ...rows];
}

async function readFiles(deps: AskDeps, place: PlaceRow): Promise<PlaceFile[]> {
  const repository = `/repos/${place.repository}`;
  const ask: Ask = (path, more = {}, permission = place.kind === 'issue' ? 'issues' : 'pull_requests') =>
    askForPlace(deps, place, { [permission]: 'read' }, { method: 'GET', path: `${repository}${path}`, ...more });
  const late = new Promise<string>((resolve) => setTimeout(resolve, limitMs, 'GitHub did not answer in time').unref());
  const parts =
    place.kind === 'issue'
      ? [conversation(ask, place)]
      : [conversation(ask, place), diff(ask, place), checks(ask, place)];
  const names = [conversationFile, 'pull-request.diff', 'failing-checks.json'];
  return await Promise.all(
    parts.map(async (part, index) => {
      const found = await Promise.race([part.catch(() => 'GitHub could not be asked'), late]);
      const value = typeof found === 'string' ? { not_read: found } : found;
      const fileName = names[index] ?? '';
      if (Buffer.isBuffer(value)) return { fileName, mimeType: 'text/x-diff', bytes: value };
      const bytes = Buffer.from(`${JSON.stringify(value, null, 1)}\n`);
      // A file that was not read has no content of its type.
      const isJson = fileName.endsWith('.json');
      return { fileName: isJson ? fileName : `${fileName}.json`, mimeType: 'application/json', bytes };
    }),
  );
}

const conversationFile = 'conversation.json';

/** Returns why an answer has no content. */
const whyNot = (answer: Exclude<GithubAnswer, { kind: 'ok' }>): string =>
  answer.kind === 'refused' ? `GitHub answered ${answer.status}` : 'GitHub did not answer';

/** Returns the last values whose JSON fits into the limit. */
function newestWithin<T>(values: readonly T[], maxBytes: number): T[] {
  let bytes = 0;
  const first = values.findLastIndex((value) => {
    bytes += Buffer.byteLength(JSON.stringify(value, null, 1)) + 64;
    return bytes > maxBytes;
  });
  return values.slice(first + 1);
}

const shortened = (text: string): string =>
  text.length <= maxText
    ? text
    : `${text.slice(0, maxText).toWellFormed()} [cut: the text has ${text.length} characters]`;

function commentOf(value: unknown) {
  return {
    author: textOf(at(value, 'user', 'login')),
    association: textOf(at(value, 'author_association')),
    at: textOf(at(value, 'created_at')),
    ...(typeof at(value, 'path') === 'string' ? { path: at(value, 'path'), line: at(value, 'line') ?? null } : {}),
    body: shortened(textOf(at(value, 'body'))),
  };
}

/** Reads the newest comments, and of a pull request also the newest comments on its lines. Resolves to a text if GitHub does not show them. */
async function conversation(ask: Ask, { kind, number }: PlaceRow): Promise<object | string> {
  const list = `/issues/${number}/comments?per_page=${perPage}`;
  const first = await ask(list, {}, 'issues');
  if (first.kind !== 'ok') return whyNot(first);
  const last = Number(URL.parse(first.last ?? '')?.searchParams.get('page') ?? 1);
  const pages = [first.body];
  for (let page = Math.max(2, last - maxPages + 2); page <= last; page += 1) {
    const answer = await ask(`${list}&page=${page}`, {}, 'issues');
    if (answer.kind !== 'ok') return whyNot(answer);
    pages.push(answer.body);
  }
  const isWhole = last <= maxPages;
  const read = (isWhole ? pages : pages.slice(1)).flat().map(commentOf);
  const onLines =
    kind === 'issue' ? undefined : await ask(`/pulls/${number}/comments?direction=desc&per_page=${perPage}`);
  const lines = onLines?.kind === 'ok' && Array.isArray(onLines.body) ? onLines.body.toReversed().map(commentOf) : [];
  const comments = newestWithin(read, maxConversationBytes / 2);
  const reviewComments = newestWithin(lines, maxConversationBytes / 2);
  const isCut = !isWhole || comments.length < read.length || reviewComments.length < lines.length;
  return {
    ...(isCut || (onLines?.kind === 'ok' && onLines.next !== undefined)
      ? { cut: `only the newest comments are here: ${comments.length}, and ${reviewComments.length} on lines` }
      : {}),
    comments,
    ...(kind === 'issue' ? {} : { review_comments: reviewComments }),
  };
}

async function diff(ask: Ask, { number }: PlaceRow): Promise<Buffer | string> {
  const answer = await ask(`/pulls/${number}`, { accept: 'diff', maxBytes: maxDiffBytes });
  if (answer.kind !== 'ok') return whyNot(answer);
  const note = `\n[cut: the diff has more than ${maxDiffBytes} bytes. Read the rest with git.]\n`;
  return Buffer.from(`${textOf(answer.body)}${answer.isCut ? note : ''}`);
}

const failed = new Set(['failure', 'timed_out', 'action_required', 'startup_failure']);

async function checks(ask: Ask, { number, repository_id: repositoryId }: PlaceRow): Promise<object | string> {
  const pull = await ask(`/pulls/${number}`);
  if (pull.kind !== 'ok') return whyNot(pull);
  const head = headOf(pull.body, repositoryId);
  if (head === null) return { failing: [] };
  const answer = await ask(`/commits/${head.commit}/check-runs?per_page=${perPage}`, {}, 'checks');
  if (answer.kind !== 'ok') return whyNot(answer);
  const runs = at(answer.body, 'check_runs');
  const failing = (Array.isArray(runs) ? runs : [])
    .filter((run) => failed.has(textOf(at(run, 'conclusion'))))
    .map((run) => ({
      name: textOf(at(run, 'name')),
      conclusion: textOf(at(run, 'conclusion')),
      details_url: textOf(at(run, 'details_url')),
      title: shortened(textOf(at(run, 'output', 'title'))),
      summary: shortened(textOf(at(run, 'output', 'summary'))),
      text: shortened(textOf(at(run, 'output', 'text'))),
    }));
  const kept = newestWithin(failing, maxChecksBytes);
  const isCut = kept.length < failing.length || answer.next !== undefined;
  return {
    commit: head.commit,
    ...(isCut ? { cut: `${kept.length} failing checks are here, others are not` } : {}),
    failing: kept,
  };
}
