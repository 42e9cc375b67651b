/** Members of a task from which the agent creates its workspace and conversation. */
import { z } from 'zod';
import { EnvironmentRepository } from '../environments/repositories.ts';

/** Conversation of earlier executions, whose sandboxes are gone. */
export const TaskConversation = z
  .discriminatedUnion('kind', [
    z
      .object({
        kind: z.literal('memory').describe("The harness's own memory"),
        path: z.string().describe('Path below the server root of the bytes that were PUT to `/harness-support/memory`'),
      })
      .meta({ id: 'ConversationMemory', description: "The conversation in the harness's own form" }),
    z
      .object({
        kind: z.literal('text').describe('The record of the conversation as text'),
        text: z.string().describe('The text. If it is long, its oldest part is cut'),
      })
      .meta({ id: 'ConversationText', description: 'The conversation as text' }),
  ])
  .meta({ id: 'TaskConversation', description: 'Conversation of earlier executions, whose sandboxes are gone' });

const MissingWorkspaceKind = z.enum(['empty', 'missing']).meta({
  id: 'MissingWorkspaceKind',
  description: '`empty`: workspace and home were empty. `missing`: they were not kept',
});

/** Workspace and home of an earlier execution. */
export const TaskWorkspace = z
  .discriminatedUnion('kind', [
    z
      .object({
        kind: z.literal('archive').describe('An archive of them'),
        path: z.string().describe('Path below the server root'),
        size_bytes: z.int().describe('Size in bytes'),
        sha256: z.string().describe('Hash of the whole archive, in hexadecimal digits'),
        execution_number: z.int().describe('Number of the execution that saved it: 1, 2, …'),
        turn: z.int().describe('Number of the turn in that execution'),
        run_id: z
          .string()
          .optional()
          .describe('Run of that execution; absent: the run itself. Another run of the conversation left its files'),
        session_id: z
          .string()
          .optional()
          .describe(
            "The harness's own session, whose state is in the archive; absent if the harness cannot load a session, or if there were later turns",
          ),
      })
      .meta({ id: 'WorkspaceArchive', description: 'Workspace and home as an archive' }),
    z
      .object({
        kind: z.literal('changes').describe('New clones, with the stored changes of an earlier sandbox'),
        patches: z
          .array(
            z
              .object({
                folder: z.string().describe('Folder of the clone in the workspace'),
                path: z.string().describe('Path below the server root of a patch for `git apply`'),
                size_bytes: z.int().describe('Size in bytes'),
              })
              .meta({ id: 'WorkspacePatch', description: 'The stored changes of one repository' }),
          )
          .readonly()
          .describe('Patches to apply; a repository without changes has none'),
      })
      .meta({ id: 'WorkspaceChanges', description: 'A new workspace with the stored changes of its repositories' }),
    z
      .object({
        kind: MissingWorkspaceKind,
        reason: z
          .string()
          .optional()
          .describe('Why the run does not get the files of its conversation; absent: no files were stored'),
      })
      .meta({ id: 'MissingWorkspace', description: 'There is no archive of workspace and home' }),
  ])
  .meta({
    id: 'TaskWorkspace',
    description:
      'Workspace and home of an earlier execution of the run or of its conversation; they replace cloning and setup. `changes` comes after cloning and setup. Absent: the execution starts from scratch',
  });

export const TaskRepository = EnvironmentRepository.extend({
  url: z
    .url()
    .optional()
    .describe('Address of the repository on the code host, without a credential. Absent: on github.com'),
  gateway_path: z.string().describe('Path of the gateway below the server root, to clone from'),
  head: z
    .object({
      commit: z.string().describe('Commit to check out, as the code host named it when it was asked, 40 hex digits'),
      branch: z.string().describe('Name of the default branch; if the repository has a `ref`: this ref'),
    })
    .meta({ id: 'TaskRepositoryHead', description: 'Commit to check out' })
    .optional(),
  mirror: z
    .string()
    .optional()
    .describe(
      "Name of the repository's mirror in the worker's cache. It is present only if the code host has just let this run read the repository",
    ),
}).meta({ id: 'TaskRepository', description: 'A repository to clone' });

/** A workspace that an earlier run with the same setup may have stored on the worker. */
export const TaskPreparedWorkspace = z
  .object({
    name: z.string().describe("Name of the prepared workspace in the worker's cache"),
  })
  .meta({
    id: 'TaskPreparedWorkspace',
    description: "Key of the setup; an earlier run may have left the setup's result on the worker",
  });
