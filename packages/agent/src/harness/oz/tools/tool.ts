import { resolve } from 'node:path';
import type { ToolKind } from '@agentclientprotocol/sdk';
import type { ActionCategory } from '@runyard/contract/runs/conversations';
import type { z } from 'zod';
import type { ApprovalRequest } from '../../../approvals/approval-request.ts';
import type { Approvals } from '../../../approvals/approvals.ts';
import type { ArtifactRequest, ArtifactResult } from '../../../artifacts/report.ts';
import type { CommandOptions, CommandResult } from '../../../commands/run-command.ts';
import type { HandoffResult } from '../../../handoff/handoff-files.ts';
import type { McpImage } from '../../../mcp/tool-result.ts';
import type { RunTree } from '../../../run-tree/tree.ts';

/** The objects and functions that a tool may use. */
export interface ToolContext {
  workspace: string;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  /** Reports output of a running command. */
  onOutput: (text: string) => void;
  backpressure: () => Promise<void> | undefined;
  /** Runs a command of the call, and keeps its whole output as an artifact if it is long. */
  runKept: (options: CommandOptions) => Promise<CommandResult>;
  reportArtifact: (request: ArtifactRequest) => Promise<ArtifactResult>;
  /** Marks files of the workspace that a person or an agent needs to continue the work outside of this sandbox. */
  handoff: (paths: readonly string[]) => Promise<HandoffResult>;
  /** Starts, reads and messages the other runs in the tree of this run. */
  tree?: RunTree | undefined;
  /** Tools of MCP servers by name. */
  mcpTools?: ReadonlyMap<string, BuiltinTool> | undefined;
  approvals: Pick<Approvals, 'policy' | 'ask'>;
  /** True: the turn has the mode `plan`. */
  isPlanning?: boolean;
  /**
   * Runs a function that may wait for a person. A tool call may use `waiting` only once. The function must pass `beforeAsked` to its
   * approval request. If the tool call is aborted during the wait, it has had no effect yet.
   */
  waiting: <T>(work: (beforeAsked: NonNullable<ApprovalRequest['beforeAsked']>) => Promise<T>) => Promise<T>;
}

/** The result of a tool: `text` for the model, and `command` if a process ran. */
export interface ToolOutcome {
  text: string;
  failed: boolean;
  /** Images for the model. */
  images?: readonly McpImage[];
  command?: CommandResult;
}

interface ToolDefinition<I> {
  name: string;
  description: string;
  kind: ToolKind;
  /** Present if the tool runs a command or changes something. The policy of the run may then require that a person approves the call. */
  acts?: { category: ActionCategory };
  /** True: the tool changes nothing, although it acts, such as a tool of an MCP server that the server marks as read-only. */
  onlyReads?: boolean;
  schema: z.ZodType<I>;
  /** Returns one line about the call for a person. */
  title: (input: I) => string;
  run: (input: I, context: ToolContext) => Promise<ToolOutcome>;
}

/** A tool whose input may have any type. `run` throws if the input does not match the schema of the tool. */
export interface BuiltinTool extends ToolDefinition<unknown> {
  /** JSON schema of the input for the model, in place of `schema`. */
  readonly inputSchema?: Readonly<Record<string, unknown>>;
}

export function defineTool<I>(definition: ToolDefinition<I>): BuiltinTool {
  const { schema } = definition;
  return {
    ...definition,
    title: (input) => definition.title(schema.parse(input)),
    run: (input, context) => definition.run(schema.parse(input), context),
  };
}

/** Maximum size of the text of one tool result in the model's context. */
export const maxResultBytes = 32 * 1024;

/**
 * Returns the absolute path for a path that a model gave. The given path may be relative to the workspace. The path is not checked,
 * because the sandbox limits which files a tool can reach.
 */
export function toolPath(context: ToolContext, path: string): string {
  return resolve(context.workspace, path);
}

export const succeeded = (text: string): ToolOutcome => ({ text, failed: false });
export const failedWith = (text: string): ToolOutcome => ({ text, failed: true });

/** Runs the function of a tool. Returns an error as a failed result, because the model can react to an error such as a missing file. */
export async function errorsToModel(work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  try {
    return await work();
  } catch (error) {
    return failedWith(error instanceof Error ? error.message : String(error));
  }
}
