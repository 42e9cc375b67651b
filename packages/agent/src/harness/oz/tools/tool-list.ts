import { jsonSchema, type ToolSet, tool } from 'ai';
import type { RunTree } from '../../../run-tree/tree.ts';
import { askUserTool } from './ask-user.ts';
import { editTool, readTool, writeTool } from './files.ts';
import { handoffTool } from './handoff.ts';
import { reportArtifactTool } from './report-artifact.ts';
import { isOffered, treeTools } from './run-tree.ts';
import { searchTool } from './search.ts';
import { shellTool } from './shell.ts';
import type { BuiltinTool } from './tool.ts';

const tools = [
  shellTool,
  readTool,
  writeTool,
  editTool,
  searchTool,
  reportArtifactTool,
  handoffTool,
  askUserTool,
  ...treeTools,
];

/** The tools of the model loop by name. */
export const builtinTools: ReadonlyMap<string, BuiltinTool> = new Map(tools.map((each) => [each.name, each]));

/**
 * Returns whether a turn with the mode `plan` has the tool: it only reads, or it is the tool for commands, whose changes stop the turn.
 */
export const mayPlan = (tool: BuiltinTool): boolean =>
  tool.acts === undefined || tool.onlyReads === true || tool === shellTool;

/**
 * Returns the tools for the model. The tools have no `execute`, so the SDK ends a step at its tool calls. The loop then runs these calls.
 */
export const toolSetOf = (
  tree: RunTree | undefined,
  mcpTools: ReadonlyMap<string, BuiltinTool>,
  isPlanning: boolean,
): ToolSet =>
  Object.fromEntries(
    [...mcpTools.values(), ...tools.filter((each) => isOffered(each, tree))]
      .filter((each) => !isPlanning || mayPlan(each))
      .map((each) => [
        each.name,
        tool({
          description: each.description,
          inputSchema: each.inputSchema === undefined ? each.schema : jsonSchema(each.inputSchema),
        }),
      ]),
  );
