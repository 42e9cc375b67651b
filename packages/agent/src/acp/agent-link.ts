import type {
  CancelNotification,
  InitializeRequest,
  InitializeResponse,
  LoadSessionRequest,
  LoadSessionResponse,
  NewSessionRequest,
  NewSessionResponse,
  PromptRequest,
  PromptResponse,
  SetSessionModeRequest,
} from '@agentclientprotocol/sdk';

/** The version of the Agent Client Protocol that the driver speaks. */
export const protocolVersion = 1;

/** The driver's side of a connection to an ACP agent. The ACP agent runs in a child process or in this process. */
export interface AgentLink {
  initialize(params: InitializeRequest): Promise<InitializeResponse>;
  newSession(params: NewSessionRequest): Promise<NewSessionResponse>;
  loadSession(params: LoadSessionRequest): Promise<LoadSessionResponse>;
  /** Sets a mode of the session. Absent: the harness has no modes. */
  setMode?(params: SetSessionModeRequest): Promise<unknown>;
  prompt(params: PromptRequest): Promise<PromptResponse>;
  cancel(params: CancelNotification): void;
  /** Aborts when the connection has closed. After that, no answer can arrive. */
  readonly closed: AbortSignal;
  /** False as soon as the process of the harness has ended, even if the driver has not read all output of the process yet. */
  isAlive(): boolean;
  /** The first lines of the harness's output that were not messages. Absent if the harness does not run in a separate process. */
  readonly strayLines?: readonly string[];
  /** Resolves when the harness has exited; never rejects. */
  readonly exited: Promise<HarnessExit>;
  /**
   * Records which processes run before a turn, so that `endStrays` spares them. Absent if the harness does not run in a separate process.
   */
  beginTurn?(): void;
  /** Kills the processes that have started since `beginTurn`, because some harnesses leave the commands of an interrupted turn running. */
  endStrays?(): void;
  /** Kills the harness and every process that it started. Resolves when the process of the harness has exited. */
  kill(): Promise<void>;
}

export interface HarnessExit {
  /** How the harness ended, in words for a message: `exited with code 1`, `was ended by SIGKILL`, `could not be started: …`. */
  description: string;
  /** The last bytes of the harness's standard error, at most 8 KB. */
  stderrTail: string;
}

/** The functions of the driver that a link calls. */
export interface LinkEvents {
  /** Called with each line that the driver or the harness sends, without the newline. The driver stores the line in the transcript. */
  line(line: string): void;
  /** Called with the `update` of each `session/update`, in the order of arrival. Both parameters are untrusted JSON of any shape. */
  update(update: unknown, sessionId?: unknown): void;
  /**
   * Called with each permission request, which is untrusted JSON. Resolves with the option to select; undefined cancels the request. Never
   * rejects.
   */
  permission(params: Record<string, unknown>): Promise<string | undefined>;
  /** Resolves when the driver can take more messages. Until then, the link does not read further messages. */
  ready(): Promise<void>;
}
