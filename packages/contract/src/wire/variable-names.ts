/** Names of the variables that an environment may set. This file imports nothing, because the agent loads it at every start. */

/** Variables that an environment cannot set, because the agent or git's connection to the gateway needs them. */
const reserved = /^(?:RUNYARD_|WARP_|OZ_|GIT_CONFIG)|^(?:HOME|TASK_ID|GIT_TERMINAL_PROMPT)$/;

/** Returns true for variables that describe the machine to the programs of public workers, which ignore upper and lower case. */
export const describesMachine = (name: string): boolean => /^WARP_METADATA_/i.test(name);

export const variableNamePattern = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/** Returns true if an environment may set a variable with this name. */
export const isVariableName = (name: string): boolean =>
  variableNamePattern.test(name) && !reserved.test(name) && !describesMachine(name);
