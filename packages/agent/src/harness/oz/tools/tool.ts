import { resolve } from 'node:path';
import type { ToolKind } from '@agentclientprotocol/sdk';
import type { ActionCategory } from '@runyard/contract/conversations';
import type { z } from 'zod';
import type { ApprovalRequest } from '../../../approvals/approval-request.ts';
import type { Approvals } from '../../../approvals/approvals.ts';
import type { ArtifactRequest, ArtifactResult } from '../../../artifacts/report.ts';
import type { CommandResult } from '../../../commands/run-command.ts';
import type { HandoffResult } from '../../../handoff/handoff-files.ts';
import type { RunTree } from '../../../run-tree/tree.ts';

/** What a tool may use. */
export interface ToolContext {
  workspace: string;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  /** Live output of a command. */
  onOutput: (text: string) => void;
  backpressure: () => Promise<void> | undefined;
  reportArtifact: (request: ArtifactRequest) => Promise<ArtifactResult>;
  /** Marks files of the workspace for whoever goes on elsewhere. */
  handoff: (paths: readonly string[]) => Promise<HandoffResult>;
  /** The runs around this one. */
  tree?: RunTree | undefined;
  approvals: Pick<Approvals, 'policy' | 'ask'>;
  /** Does what may wait for a person, once in a call: what is asked takes `beforeAsked` along. A call that is cut short meanwhile has done nothing. */
  waiting: <T>(work: (beforeAsked: NonNullable<ApprovalRequest['beforeAsked']>) => Promise<T>) => Promise<T>;
}

/** What came out: `text` goes to the model, bounded; `command` where a process ran. */
export interface ToolOutcome {
  text: string;
  failed: boolean;
  command?: CommandResult;
}

interface ToolDefinition<I> {
  name: string;
  description: string;
  kind: ToolKind;
  /** Set where it runs or changes something: the run's policy may want a person to allow it. */
  acts?: { category: ActionCategory };
  schema: z.ZodType<I>;
  /** One line for a person. */
  title: (input: I) => string;
  run: (input: I, context: ToolContext) => Promise<ToolOutcome>;
}

/** A tool whatever its input; it throws where the input is not of its schema. */
export type BuiltinTool = ToolDefinition<unknown>;

export function defineTool<I>(definition: ToolDefinition<I>): BuiltinTool {
  const { schema } = definition;
  return {
    ...definition,
    title: (input) => definition.title(schema.parse(input)),
    run: (input, context) => definition.run(schema.parse(input), context),
  };
}

/** Text that one tool result may put into the model's context. */
export const maxResultBytes = 32 * 1024;

/** Paths of tools start from the workspace. The sandbox, not this, is what keeps them in. */
export function toolPath(context: ToolContext, path: string): string {
  return resolve(context.workspace, path);
}

export const succeeded = (text: string): ToolOutcome => ({ text, failed: false });
export const failedWith = (text: string): ToolOutcome => ({ text, failed: true });

/** Errors of the file system are told to the model, which can do something about them. */
export async function toldToModel(work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  try {
    return await work();
  } catch (error) {
    return failedWith(error instanceof Error ? error.message : String(error));
  }
}
