/** Answers `tools/call`. */
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/server';
import type { FactoryTask } from '@runyard/contract/factories/factory-tasks';
import { ArtifactResponse } from '@runyard/contract/runs/artifacts';
import type { ConversationResponse } from '@runyard/contract/runs/conversations';
import { isSettled } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { Notices } from '../../runs/executions/notices.ts';
import { waitForRuns } from '../../runs/executions/wait-for-runs.ts';
import { findTask, handBack, withTask } from './find-task.ts';
import { type CallOperation, type OperationAnswer, readSigned } from './operations.ts';
import { conversationCharacters, maxWaitSeconds } from './service-tools.ts';
import { readStart, startWorking } from './start-working.ts';
import { failure, maxAnswerCharacters, newestMessages, toText, trusted, untrusted, untrustedMark } from './texts.ts';
import { type Json, pathArguments, requestMaker, type Tool } from './tool.ts';

/** Maximum bytes of an operation's answer that is given to a model as text. */
const maxAnswerBytes = 4 * 1024 * 1024;
const maxConversationBytes = 16 * 1024 * 1024;
/** Maximum bytes of a picture in an answer. */
const maxPictureBytes = 1024 * 1024;
/** Minimum time between two reads of a run that changes constantly. */
const restMs = 1_000;

export interface CallContext {
  readonly call: CallOperation;
  readonly notices: Pick<Notices, 'onRun'>;
  /** Aborts when the client has disconnected or the service stops. */
  readonly signal: AbortSignal;
}

export type RunTool = (given: Json, context: CallContext) => Promise<CallToolResult>;

export function toolRunner(tool: Tool): RunTool {
  const requestOf = requestMaker(tool);
  return async (sent, context) => {
    if (tool.handling === 'hand_back' && sent.factory_task_uid !== undefined) return await handBack(context.call, sent);
    const found = tool.findsTask && needsTask(tool, sent) ? await findTask(context.call, sent) : undefined;
    if (found && 'message' in found) return failure(found.message);
    const given = found ? withTask(sent, found.task, pathArguments(tool)) : sent;
    const request = requestOf(given);
    if (!('url' in request)) return failure(request.map(({ path, message }) => `${path}: ${message}`).join('\n'));
    const maxBytes = tool.handling === 'newest_messages' ? maxConversationBytes : maxAnswerBytes;
    const look = () => context.call(request, maxBytes);
    const bounds = numbersOf(tool, given);
    if (typeof bounds === 'string') return failure(bounds);
    const start = tool.handling === 'start_working' ? readStart(sent) : undefined;
    if (typeof start === 'string') return failure(start);
    const answer = tool.handling === 'wait' ? await wait(look, given, bounds, context) : await look();
    if (start === undefined || answer.kind !== 'answer') return await resultOf(tool, answer, bounds, context);
    const task = jsonOf(answer.bytes) as FactoryTask;
    const started = await startWorking(context.call, task, start);
    if (typeof started === 'string') return failure(started);
    const bytes = Buffer.from(JSON.stringify({ ...task, start_working: started }));
    return await resultOf(tool, { kind: 'answer', bytes }, bounds, context);
  };
}

/** Returns whether the arguments lack a path parameter of the operation. */
function needsTask(tool: Tool, given: Json): boolean {
  return pathArguments(tool).some((name) => given[name] === undefined) || given.factory_task_uid !== undefined;
}

/** Arguments that are whole numbers and that the service handles itself, without passing them to the operation. */
interface Bounds {
  readonly waitSeconds: number;
  readonly characters: number;
}

function numbersOf(tool: Tool, given: Json): Bounds | string {
  for (const [name, schema] of Object.entries(tool.own ?? {})) {
    if (schema.type !== 'integer') continue;
    const { minimum, maximum } = schema as { readonly minimum: number; readonly maximum: number };
    const value = given[name];
    if (value !== undefined && !(Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum))
      return `${name}: must be a whole number from ${minimum} to ${maximum}`;
  }
  return {
    waitSeconds: Number(given.timeout_seconds ?? maxWaitSeconds),
    characters: Number(given.max_characters ?? conversationCharacters.usual),
  };
}

const jsonOf = (bytes: Buffer): unknown => JSON.parse(bytes.toString('utf8'));

/** Reads the run again after each notice about it, until the run has ended or asks something. Each read checks the key again. */
async function wait(
  look: () => Promise<OperationAnswer>,
  given: Json,
  { waitSeconds }: Bounds,
  { notices, signal }: CallContext,
): Promise<OperationAnswer> {
  const runId = String(given.run_id).toLowerCase();
  let last: OperationAnswer | undefined;
  const settled = await waitForRuns(
    notices,
    { runIds: () => [runId], waitMs: waitSeconds * 1_000, signal, restMs },
    async () => {
      last = await look();
      if (last.kind !== 'answer') return last;
      return isSettled((jsonOf(last.bytes) as RunItem).state) ? last : undefined;
    },
  );
  return settled ?? last ?? (await look());
}

async function resultOf(
  tool: Tool,
  answer: OperationAnswer,
  { characters }: Bounds,
  { call }: CallContext,
): Promise<CallToolResult> {
  if (answer.kind === 'refused') return failure(answer.message);
  const tooLarge = `The answer of ${tool.name} is too large. Ask for less, or read it with the API.`;
  if (answer.kind !== 'answer') return failure(tooLarge);
  const mark = tool.untrusted ? untrusted : trusted;
  const { maxText = maxAnswerCharacters } = tool;
  const body = jsonOf(answer.bytes);
  const isNewest = tool.handling === 'newest_messages';
  const text = isNewest ? newestMessages(body as ConversationResponse, characters, maxText) : toText(body, maxText);
  if (!isNewest && text.length > maxAnswerCharacters) return failure(tooLarge);
  const content: ContentBlock[] = mark(text);
  return {
    content: tool.handling === 'read_file' ? [...content, ...(await contentOf(call, body))] : content,
    // The same members as in the text, for clients that read no text. The mark says the same as the notice before the text.
    structuredContent: structured(JSON.parse(text)),
    ...(tool.untrusted ? { _meta: { [untrustedMark]: true } } : {}),
  };
}

/** Returns an answer as an object, as the protocol wants it. */
const structured = (answer: unknown): Record<string, unknown> =>
  typeof answer === 'object' && answer !== null && !Array.isArray(answer) ? { ...answer } : { result: answer };

/** Returns the text or picture of an artifact, if it is small. */
async function contentOf(call: CallOperation, body: unknown): Promise<readonly ContentBlock[]> {
  const artifact = ArtifactResponse.safeParse(body);
  if (!artifact.success || !('download_url' in artifact.data.data)) return [];
  const { content_type: type, download_url: url } = artifact.data.data;
  const isPicture = /^image\/(png|jpeg|gif|webp)$/.test(type);
  if (!isPicture && !/^(text\/|application\/(json|yaml|xml|x-ndjson)\b)/.test(type)) return [];
  const file = await readSigned(call, url, isPicture ? maxPictureBytes : maxAnswerCharacters);
  if (file.kind !== 'answer') return [];
  if (isPicture) return [{ type: 'image', mimeType: type, data: file.bytes.toString('base64') }];
  return untrusted(file.bytes.toString('utf8'));
}
