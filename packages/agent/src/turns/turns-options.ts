import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import type { Approvals } from '../approvals/approvals.ts';
import type { RunChecks } from '../checks/run-checks.ts';
import type { NetworkAccess } from '../egress/forwarder.ts';
import type { GrantedSecrets } from '../granted-secrets/granted-secrets.ts';
import type { ChangesReporter } from '../handoff/changes-reporter.ts';
import type { ConversationRecord } from '../harness/conversation-record.ts';
import type { ExecutionHarness } from '../harness/execution-harness.ts';
import type { RunMcp } from '../mcp/servers.ts';
import type { Reporter } from '../reporting/reporter.ts';
import type { RunResult } from '../results/run-result.ts';
import type { OrchestratingRunTree } from '../run-tree/tree.ts';
import type { ServiceClient } from '../service/client.ts';
import type { RunServices } from '../services/services.ts';
import type { Stopping } from '../stopping.ts';
import type { DeferredSaver } from '../workspace-archive/deferred-saver.ts';

/** The latest turn of an execution. */
export interface TurnPosition {
  /** Number of the turn in this execution, from 1. */
  turn: number;
  /** Id of the conversation step of the last turn that began; empty if no turn has begun. */
  stepId: string;
  /** Mode of this turn. */
  mode?: RunMode | undefined;
}

/** The sandbox of an execution: its folders, variables and network. */
export interface TurnsSandbox {
  readonly workspace: string;
  /** True: the working folder and the home were created for this run. */
  readonly ownFolders: boolean;
  /** True: processes, network and writable file systems of the sandbox belong to this run alone. */
  readonly isSeparate: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `NAME=value` of `env` that marks every process of the run. */
  readonly marker: string;
  readonly network: NetworkAccess;
  /**
   * The variables of `env` that contain the address of the proxy through which programs reach the allowed hosts. Empty if there is no
   * proxy.
   */
  readonly proxyVariables: Readonly<Record<string, string>>;
  /** Adds variables to `env`, for all processes that start later. */
  readonly addToEnv: (variables: Readonly<Record<string, string>>) => void;
}

/** The connection to the service, and the reports about the turns. */
export interface TurnsReports {
  readonly client: ServiceClient;
  readonly reporter: Reporter;
  /** Aborts when the agent must not send reports any more. */
  readonly reporting: AbortSignal;
  readonly record: ConversationRecord;
  readonly notice: (name: string, data: unknown) => void;
  readonly changes: Pick<ChangesReporter, 'ask'>;
  readonly saver: DeferredSaver;
  /** Begins to take checkpoints if the task asks for them. */
  readonly beginCheckpoints: (task: AgentTask) => Promise<void>;
  /** Resolves when all reports of a turn except events are sent, for example the artifacts for pull requests. */
  readonly sideReports: () => Promise<void>;
}

/** The parts that work on prompts: the harness, and the parts of the agent that it uses. */
export interface TurnsWork {
  readonly task: Promise<AgentTask>;
  readonly secrets: GrantedSecrets;
  readonly harness: ExecutionHarness;
  readonly approvals: Approvals;
  readonly mcp: Pick<RunMcp, 'start' | 'leftOut'>;
  readonly services: RunServices;
  /** Returns the other runs in the tree of this task's run. */
  readonly treeOf: (task: AgentTask) => OrchestratingRunTree;
  /** Returns the result that the task's run must return; undefined if it returns none. */
  readonly openResult: (task: AgentTask) => Promise<RunResult | undefined>;
  /** Returns the checks of the task's run; undefined if it has none. */
  readonly openChecks: (task: AgentTask) => Promise<RunChecks | undefined>;
}

/** How an execution ends, and how long its parts may take to end. */
export interface TurnsEnd {
  readonly stop: Stopping;
  readonly onSuperseded: () => void;
  /** Time in which a harness must end its turn when the sandbox must end. */
  readonly harnessGraceMs: number;
  /** Time in which a harness must end an interrupted turn. After this time, the harness is killed. */
  readonly interruptGraceMs: number;
  readonly inboxWaitMs: number;
}

/** Dependencies and settings of an execution's turns. */
export interface TurnsOptions extends TurnsSandbox, TurnsReports, TurnsWork, TurnsEnd {
  /** The turns of the execution update this position. */
  readonly position: TurnPosition;
}
