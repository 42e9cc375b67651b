import { randomUUIDv7 } from 'node:crypto';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import { firstPart } from '@runyard/contract/wire/shorten';
import { createByteMask } from '@runyard/system/redaction/mask-bytes';
import { createRedactor } from '@runyard/system/redaction/redactor';
import type { ContentRevision } from '../../../team/access/contents/content.ts';
import type { DecodedAttachment } from '../../files/attachments/decode.ts';
import type { Lineage } from './lineage.ts';
import type { NewRun } from './new-run.ts';
import { workerHostOf } from './request-config.ts';

/** The parts of a request that were checked. */
interface CheckedParts
  extends Pick<NewRun, 'teamId' | 'creator' | 'executor' | 'config' | 'harness' | 'source' | 'contents' | 'rights'> {
  readonly skillSpec: string | undefined;
  readonly models: { readonly modelId: string; readonly unpricedId?: string | undefined };
  /** UID and revision of the environment; absent: the request names none. */
  readonly environment?: ContentRevision | undefined;
  readonly mode: RunAgentRequest['mode'];
}

/** Returns the run of a checked request. */
export function composeRun(request: RunAgentRequest, lineage: Lineage, parts: CheckedParts): NewRun {
  const { skillSpec, models, environment, mode, ...checked } = parts;
  const { config } = checked;
  const prompt = request.prompt ?? '';
  const name = config.name ?? nameOfSkill(skillSpec);
  const workerHost = workerHostOf(config);
  return {
    ...checked,
    id: randomUUIDv7(),
    title: request.title?.trim() || titleOf(prompt) || name || 'Continued conversation',
    prompt,
    config: name === undefined ? config : { ...config, name },
    ...(name === undefined ? {} : { name }),
    modelId: models.modelId,
    ...(models.unpricedId === undefined ? {} : { unpricedId: models.unpricedId }),
    ...(config.environment_id === undefined ? {} : { environmentId: config.environment_id }),
    ...(environment ? { environmentRevision: environment.revision } : {}),
    ...(skillSpec === undefined ? {} : { skillSpec }),
    ...(workerHost === undefined ? {} : { workerHost }),
    ...(mode === undefined ? {} : { mode }),
    ...(lineage.parentRunId === undefined ? {} : { parentRunId: lineage.parentRunId }),
    ancestorIds: lineage.ancestorIds,
    ...(lineage.comparisonCommits === undefined ? {} : { comparisonCommits: lineage.comparisonCommits }),
    metadata: lineage.metadata,
    ...(request.conversation_id === undefined ? {} : { conversationId: request.conversation_id }),
    attachments: [],
  };
}

/** Returns the name of a skill, which is the name of its folder; undefined if the skill is at the top of its repository. */
const nameOfSkill = (spec: string | undefined): string | undefined =>
  spec
    ?.slice(spec.indexOf(':') + 1)
    .split('/')
    .filter((part) => part !== 'SKILL.md')
    .at(-1);

/** Maximum number of characters (UTF-16 units) of a title that is taken from a prompt. */
const maxTitleLength = 80;

/**
 * Returns the first line of the prompt that has text, without the signs of a Markdown heading or code block. It has at most 80 characters,
 * and the cut is never inside a surrogate pair.
 */
export function titleOf(prompt: string): string {
  // Read only the beginning of the prompt, because it may be one line of a megabyte.
  const line =
    prompt
      .trimStart()
      .replace(/^(?:`{3,}|~{3,})[^\r\n`]{0,80}[\r\n]\s*/, '')
      .replace(/^#{1,6}[ \t]+(?=\S)/, '')
      .slice(0, maxTitleLength + 1)
      .split(/[\r\n\u2028\u2029]/, 1)[0] ?? '';
  return firstPart(line, maxTitleLength).trimEnd();
}

/**
 * Removes the values of the run's secrets from all stored members of the request, because a person who names a secret may also paste its
 * value.
 */
export function withoutValues(
  values: readonly string[],
  run: NewRun,
  files: readonly DecodedAttachment[],
): { readonly run: NewRun; readonly files: readonly DecodedAttachment[] } {
  if (values.length === 0) return { run, files };
  const redactor = createRedactor(values);
  const mask = createByteMask(values);
  const { title, prompt, config, name, metadata } = run;
  const stored = { title, prompt, config, ...(name === undefined ? {} : { name }), metadata };
  return {
    run: { ...run, ...(redactor.value(stored) as typeof stored) },
    files: files.map((file) => ({ ...file, fileName: redactor.whole(file.fileName), bytes: mask.whole(file.bytes) })),
  };
}
