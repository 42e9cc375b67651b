import type { AgentTask } from '@runyard/contract/agent/agent-protocol';

/** Returns the names of the tools with which the run may write on GitHub. An older service names only those of the environment. */
export const githubToolsOf = ({ github_tools: tools, environment }: AgentTask): string[] =>
  Object.keys(tools ?? environment?.config.github_tools ?? {});
