/** The MCP resources of a run: its messages as a conversation and as a transcript, and its plans. */
import type { ReadResourceResult, Resource, ResourceTemplateType } from '@modelcontextprotocol/server';
import type { ListRunsResponse } from '@runyard/contract/runs/runs';
import { type CallOperation, type OperationAnswer, readSigned } from './operations.ts';
import { untrustedMark, untrustedNotice } from './texts.ts';
import { type OperationRequest, requestMaker, type Tool } from './tool.ts';

/** Maximum bytes of a resource. Clients read larger texts with the API. */
const maxResourceBytes = 4 * 1024 * 1024;
const maxListBytes = 16 * 1024 * 1024;
const listedRuns = 20;

interface Kind {
  readonly template: ResourceTemplateType;
  readonly pattern: RegExp;
  readonly operation: Tool['operation'];
  readonly argument: string;
}

const kinds: readonly Kind[] = [
  {
    template: {
      uriTemplate: 'runyard://runs/{run_id}/conversation',
      name: 'conversation',
      title: 'Conversation of a run',
      description: 'Messages and tool calls of a run as JSON',
      mimeType: 'application/json',
    },
    pattern: /^runyard:\/\/runs\/([\w-]{1,64})\/conversation$/,
    operation: 'getRunConversation',
    argument: 'run_id',
  },
  {
    template: {
      uriTemplate: 'runyard://runs/{run_id}/transcript',
      name: 'transcript',
      title: 'Transcript of a run',
      description: 'Newline-delimited JSON as the harness of the run wrote it',
      mimeType: 'application/x-ndjson',
    },
    pattern: /^runyard:\/\/runs\/([\w-]{1,64})\/transcript$/,
    operation: 'getRunTranscript',
    argument: 'run_id',
  },
  {
    template: {
      uriTemplate: 'runyard://plans/{artifact_uid}',
      name: 'plan',
      title: 'Plan of a run',
      description: 'A plan as Markdown',
      mimeType: 'text/markdown',
    },
    pattern: /^runyard:\/\/plans\/([\w-]{1,64})$/,
    operation: 'getArtifact',
    argument: 'artifact_uid',
  },
];

export const resourceTemplates: ResourceTemplateType[] = kinds.map(({ template }) => template);

/** Thrown if a resource cannot be read or listed. The error's message is for the client. */
export class ResourceProblem extends Error {}

/** Makes a request to an operation with only these parameters. */
function requestFor(operation: Tool['operation'], given: Readonly<Record<string, unknown>>): OperationRequest {
  const made = requestMaker({ name: operation, title: '', description: '', operation, effect: 'reads' })(given);
  if (!('url' in made)) throw new ResourceProblem(made.map(({ path, message }) => `${path}: ${message}`).join('\n'));
  return made;
}

function bytesOf(answer: OperationAnswer): Buffer {
  switch (answer.kind) {
    case 'answer':
      return answer.bytes;
    case 'refused':
      throw new ResourceProblem(answer.message);
    case 'too_large':
      throw new ResourceProblem('The resource has more than 4 MB. Read it with the API.');
    case 'redirect':
      throw new ResourceProblem('The resource has no text.');
  }
}

/**
 * Lists conversation, transcript and plans of the runs that changed last. The names contain ids and not titles, because runs write their
 * titles themselves.
 */
export async function listResources(call: CallOperation, cursor: string | undefined) {
  const request = requestFor('listRuns', { limit: listedRuns, ...(cursor === undefined ? {} : { cursor }) });
  const page = JSON.parse(bytesOf(await call(request, maxListBytes)).toString('utf8')) as ListRunsResponse;
  const resources = page.runs.flatMap(({ run_id: id, state, created_at, artifacts = [] }): Resource[] => {
    const ofRun = (kind: Kind | undefined, uid: string): Resource[] => {
      if (!kind) return [];
      const { uriTemplate, name, title, mimeType } = kind.template;
      return [
        {
          uri: uriTemplate.replace(/\{\w+\}/, uid),
          name: `${name} ${uid}`,
          title: `${title ?? name} (${id}, ${state}, ${created_at})`,
          ...(mimeType === undefined ? {} : { mimeType }),
        },
      ];
    };
    const plans = artifacts.flatMap((each) =>
      each.artifact_type === 'PLAN' && each.data.artifact_uid !== undefined ? [each.data.artifact_uid] : [],
    );
    return [...ofRun(kinds[0], id), ...ofRun(kinds[1], id), ...plans.flatMap((uid) => ofRun(kinds[2], uid))];
  });
  const { next_cursor: nextCursor } = page.page_info;
  return { resources, ...(nextCursor ? { nextCursor } : {}) };
}

/** Reads a resource. The first part of the answer states that runs wrote the second part. Returns null if no resource has such a URI. */
export async function readResource(call: CallOperation, uri: string): Promise<ReadResourceResult | null> {
  for (const { pattern, operation, argument, template } of kinds) {
    const id = pattern.exec(uri)?.[1];
    if (id === undefined) continue;
    const answer = await call(requestFor(operation, { [argument]: id }), maxResourceBytes);
    const isLink = answer.kind === 'redirect';
    const bytes = bytesOf(isLink ? await readSigned(call, answer.location, maxResourceBytes) : answer);
    const { mimeType = 'text/plain' } = template;
    const text = operation === 'getArtifact' ? planOf(bytes) : bytes.toString('utf8');
    return {
      contents: [
        { uri, mimeType: 'text/plain', text: untrustedNotice },
        { uri, mimeType, text, _meta: { [untrustedMark]: true } },
      ],
    };
  }
  return null;
}

function planOf(bytes: Buffer): string {
  const { artifact_type, data } = JSON.parse(bytes.toString('utf8')) as {
    artifact_type: string;
    data: { content?: string };
  };
  if (artifact_type !== 'PLAN' || data.content === undefined)
    throw new ResourceProblem('The artifact is not a plan. Read it with the tool get_artifact.');
  return data.content;
}
