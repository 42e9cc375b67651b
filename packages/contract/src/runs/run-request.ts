import { z } from 'zod';
import { maxAttachments, maxFailedReruns, maxMetadataKeys, maxPreparedOfFollowup, maxPromptBytes } from '../limits.ts';
import { NonBlank, Text, Uuid } from '../wire/primitives.ts';
import { AllowFor, Decision } from './approvals.ts';
import { RequestedAgentConfig, SkillSpec } from './config.ts';
import { RunMode } from './message-origin.ts';
import { RunState } from './states.ts';

const utf8Bytes = (text: string): number => new TextEncoder().encode(text).length;
/**
 * Returns a check of a text's size in UTF-8. A string of n UTF-16 units has n to 3n bytes in UTF-8. So the check encodes a text only
 * if n is larger than a third of `max` and not larger than `max`.
 */
export const atMostBytes = (max: number) => (text: string) =>
  text.length <= max && (text.length * 3 <= max || utf8Bytes(text) <= max);

const AttachmentData = z.string().meta({ contentEncoding: 'base64', description: 'At most 10 MB decoded' });

/** A file of the prompt. */
export const AttachmentInput = z
  .object({
    file_name: NonBlank.max(255).describe('Name of the file, without a path; at most 255 characters'),
    mime_type: Text.regex(/^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}( ?;[\x20-\x7e]{0,200})?$/, {
      error: 'must be a media type such as image/png, in printable ASCII',
    }).describe('Media type, such as image/png'),
    data: AttachmentData,
  })
  .meta({
    id: 'AttachmentInput',
    description:
      'A file that comes with the prompt. It is written into the workspace; models with vision receive images',
  });
export type AttachmentInput = z.infer<typeof AttachmentInput>;

/** A file without a name. Older clients send files in this form. */
const ImageInput = z
  .object({
    data: AttachmentData,
    mime_type: AttachmentInput.shape.mime_type,
  })
  .meta({ id: 'ImageInput', description: 'A file without a name, as older clients send it' });

/** Key/value pairs of a run. They never change, and child runs inherit them. */
export const RunMetadata = z
  .record(
    z.string().regex(/^[a-zA-Z0-9._-]{1,64}$/, { error: 'must be 1 to 64 characters of [a-zA-Z0-9._-]' }),
    Text.refine(atMostBytes(256), { error: 'must be at most 256 bytes of UTF-8' }).meta({
      maxLength: 256,
      description: 'At most 256 bytes of UTF-8',
    }),
  )
  .refine((metadata) => Object.keys(metadata).length <= maxMetadataKeys, {
    error: `must have at most ${maxMetadataKeys} keys`,
  })
  .meta({
    id: 'RunMetadata',
    description: 'Key/value pairs of a run, at most 20. They cannot be changed, and child runs inherit them',
    maxProperties: maxMetadataKeys,
  });

/** A person's prompt. */
const Prompt = Text.refine(atMostBytes(maxPromptBytes), { error: 'must be at most 1 MB of UTF-8' }).meta({
  maxLength: maxPromptBytes,
});

/** `POST /agent/runs`. */
export const RunAgentRequest = z
  .object({
    prompt: Prompt.optional().meta({
      description: 'Required unless a skill or a conversation to continue is given; at most 1 MB',
    }),
    skill: SkillSpec.optional().meta({
      description: 'Skill to follow, named as in config.skill_spec, which it replaces',
    }),
    config: RequestedAgentConfig.optional(),
    title: Text.max(500).optional().meta({ description: 'Default: first line of the prompt, cut at 80 characters' }),
    team: z
      .boolean()
      .optional()
      .describe('Whether the run belongs to the team or to its creator; runs of this service belong to the team'),
    agent_identity_uid: Text.optional().describe(
      'UID of the agent identity to run as. Its model, environment, skills and secrets apply where the request names none',
    ),
    conversation_id: Text.optional().meta({
      description:
        'Conversation to continue. The run begins with the files of its last run if it has the same executor, environment and runner and all secrets of that run; else a notice in the conversation says why not',
    }),
    attachments: z
      .array(AttachmentInput)
      .max(maxAttachments)
      .optional()
      .describe('Files that come with the prompt, at most 5'),
    images: z
      .array(ImageInput)
      .max(maxAttachments)
      .optional()
      .meta({ deprecated: true, description: 'Older clients: attachments without a file name' }),
    parent_run_id: Text.optional().meta({ description: 'Run that this one works for' }),
    interactive: z
      .boolean()
      .optional()
      .describe('Whether a person follows the run; kept for clients that send it, without effect on this service'),
    metadata: RunMetadata.optional(),
    mode: RunMode.optional(),
    on_behalf_of: Text.optional().describe(
      'UID of the person of the team to run for. For agent keys whose identity has on_behalf_of_enabled; others get 403. The run uses what is personal only after the person has accepted the identity (`POST /acceptances`)',
    ),
  })
  .superRefine((run, context) => {
    const hasSkill = run.skill ?? run.config?.skill_spec ?? run.config?.skills?.[0];
    if (!run.prompt?.trim() && hasSkill === undefined && run.conversation_id === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['prompt'],
        message: 'is required unless skill, config.skill_spec, config.skills or conversation_id is given',
      });
    }
  })
  .meta({
    id: 'RunAgentRequest',
    description: 'A run to create',
    allOf: [
      {
        anyOf: [
          { required: ['prompt'], properties: { prompt: { pattern: '\\S' } } },
          { required: ['skill'] },
          { required: ['conversation_id'] },
          {
            required: ['config'],
            properties: {
              config: {
                anyOf: [
                  { required: ['skill_spec'] },
                  { required: ['skills'], properties: { skills: { minItems: 1 } } },
                ],
              },
            },
          },
        ],
      },
    ],
  });
export type RunAgentRequest = z.infer<typeof RunAgentRequest>;

/** Body of `POST /agent/runs/{runId}/rerun`. Its members replace those of the original run. */
export const RerunRequest = z
  .object({
    prompt: NonBlank.refine(atMostBytes(maxPromptBytes), { error: 'must be at most 1 MB of UTF-8' })
      .meta({ maxLength: maxPromptBytes })
      .optional()
      .describe('Replaces the prompt; at most 1 MB of UTF-8'),
    config: RequestedAgentConfig.optional(),
    title: Text.max(500).optional().describe('Title of the new run, at most 500 characters'),
    metadata: RunMetadata.optional(),
    comparison: z
      .boolean()
      .optional()
      .describe(
        'True: the new run is for a comparison. It begins at the commits that the original run has cloned, has no parent, no metadata of the original run and no `retry`, and can neither push nor open pull requests; neither can runs that it starts',
      ),
  })
  .meta({ id: 'RerunRequest', description: "Each member replaces the original run's member. Absent members are kept" });
export type RerunRequest = z.infer<typeof RerunRequest>;

export const RunAgentResponse = z
  .object({
    run_id: Uuid.describe('Id of the run'),
    task_id: z.string().meta({ deprecated: true, description: 'The same as run_id' }),
    state: RunState,
    at_capacity: z.boolean().optional().meta({ description: 'True if the team is at its limit and the run waits' }),
  })
  .meta({ id: 'RunAgentResponse', description: 'The new run' });
export type RunAgentResponse = z.infer<typeof RunAgentResponse>;

/** Answer to `POST /agent/runs/{runId}/rerun-failed`. */
export const RerunFailedResponse = z
  .object({
    reruns: z
      .array(
        z
          .object({
            run_id: Uuid.describe('Failed run'),
            rerun_run_id: Uuid.describe('New run that repeats it, below the same parent'),
          })
          .meta({ id: 'RerunOfFailed', description: 'A failed run with the run that repeats it' }),
      )
      .describe('Failed runs that this request has repeated'),
    refused: z
      .array(
        z
          .object({ run_id: Uuid.describe('Failed run'), reason: z.string().describe('Why it was not repeated') })
          .meta({ id: 'RefusedRerun', description: 'A failed run that was not repeated' }),
      )
      .describe('Failed runs that cannot be repeated now'),
    has_more: z.boolean().describe(`True: there are more than ${maxFailedReruns} failed runs; send the request again`),
  })
  .meta({ id: 'RerunFailedResponse', description: 'The failed runs of a tree that were repeated' });
export type RerunFailedResponse = z.infer<typeof RerunFailedResponse>;

/** A file of a follow-up: its bytes, or the id of a file that was uploaded earlier. */
export const FollowupAttachment = z
  .object({
    file_name: AttachmentInput.shape.file_name
      .optional()
      .describe(
        'Name of the file, without a path; at most 255 characters. With attachment_id: replaces the value of the prepared attachment',
      ),
    mime_type: AttachmentInput.shape.mime_type.optional(),
    data: AttachmentData.optional(),
    attachment_id: Text.max(100)
      .optional()
      .describe('Id of a file that was prepared for this run by the same caller, and uploaded'),
  })
  .superRefine((file, context) => {
    for (const member of ['file_name', 'mime_type', 'data'] as const) {
      const isWrong =
        file.attachment_id === undefined
          ? file[member] === undefined
          : member !== 'file_name' && file[member] !== undefined;
      const message =
        file.attachment_id === undefined
          ? 'is required unless attachment_id is given'
          : 'must be absent: attachment_id is given';
      if (isWrong) context.addIssue({ code: 'custom', path: [member], message });
    }
  })
  .meta({
    id: 'FollowupAttachment',
    description: 'A file of a follow-up: its bytes, or the id of one that was uploaded before',
    allOf: [
      {
        oneOf: [
          { required: ['attachment_id'], not: { anyOf: [{ required: ['data'] }, { required: ['mime_type'] }] } },
          { required: ['file_name', 'mime_type', 'data'], not: { required: ['attachment_id'] } },
        ],
      },
    ],
  });
export type FollowupAttachment = z.infer<typeof FollowupAttachment>;

/** `POST /agent/runs/{runId}/followups`. */
export const RunFollowupRequest = z
  .object({
    message: Prompt.optional().meta({
      description: 'At most 1 MB. May be empty only if the run continues from its saved conversation',
    }),
    mode: RunMode.optional().meta({
      description:
        'Mode of this message. Absent: a run that orchestrates continues to; a run that planned does not plan again',
    }),
    attachments: z.array(FollowupAttachment).max(maxPreparedOfFollowup).optional().meta({
      description:
        'At most 25, of which 5 with their bytes in the request. Written into the workspace before the turn. Models with vision receive images',
    }),
    decision: Decision.optional().meta({
      description:
        'Answers what the run asks (`blocked_on`); a message may come with it. Without a decision, the message is the answer',
    }),
    allow_for: AllowFor.optional(),
    request_id: Text.max(200).optional().meta({
      description: 'blocked_on.request_id that this answers. 400 if the run now asks another question, or none',
    }),
    workspace: z.enum(['changes']).optional().meta({
      description:
        'changes: the run begins anew, in a new sandbox without the earlier conversation, files and processes. Only the stored changes of its repositories are copied into new clones. So texts of others that ran in the sandbox before withhold no rights. 400 while a turn is in progress',
    }),
  })
  .meta({ id: 'RunFollowupRequest', description: 'Message to a run, or answer to its question' });
export type RunFollowupRequest = z.infer<typeof RunFollowupRequest>;

/** `PATCH /agent/runs/{runId}/followups/{followupId}`. */
export const EditFollowupRequest = z
  .object({ message: Prompt.min(1).regex(/\S/).describe('The new message, at most 1 MB. Mode and files stay') })
  .meta({ id: 'EditFollowupRequest', description: 'The new text of a follow-up that waits' });

/** How a follow-up reaches the agent. */
export const FollowupRouting = z.enum(['live_session', 'queued_prompt', 'handoff_execution', 'queue_pending']).meta({
  id: 'FollowupRouting',
  description:
    '`live_session`: the sandbox of the run has it, as its next turn or as the answer to a question. `queued_prompt`: the run has not begun; it joins the first prompt. `handoff_execution`: a new execution of the run begins with it. `queue_pending`: it waits until the sandbox is ready or the next execution begins',
});
export type FollowupRouting = z.infer<typeof FollowupRouting>;

/** Answer to a follow-up. */
export const RunFollowupResponse = z
  .object({
    followup_id: Uuid.nullable().describe('Id of the follow-up, as in the timeline'),
    outcome: FollowupRouting,
    run_id: Uuid.describe('Run that got it'),
  })
  .meta({ id: 'RunFollowupResponse', description: 'The follow-up was accepted' });
export type RunFollowupResponse = z.infer<typeof RunFollowupResponse>;
