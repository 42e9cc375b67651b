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
} from '@agentclientprotocol/sdk';

/** The version of the Agent Client Protocol that the driver speaks. */
export const protocolVersion = 1;

/** The driver's side of a connection to an ACP agent, in a child process or in this process. */
export interface AgentLink {
  initialize(params: InitializeRequest): Promise<InitializeResponse>;
  newSession(params: NewSessionRequest): Promise<NewSessionResponse>;
  loadSession(params: LoadSessionRequest): Promise<LoadSessionResponse>;
  prompt(params: PromptRequest): Promise<PromptResponse>;
  cancel(params: CancelNotification): void;
  /** Aborts when the connection has closed. No answer can arrive after that. */
  readonly closed: AbortSignal;
  /** False as soon as the process has ended, even before the rest of its output was read. */
  isAlive(): boolean;
  /** The first lines of the harness's output that were not messages. Absent if the harness does not run in a separate process. */
  readonly strayLines?: readonly string[];
  /** Resolves when the harness has exited; never rejects. */
  readonly exited: Promise<HarnessExit>;
  /** Records the processes that run before a turn. Absent if the harness does not run in a separate process. */
  beginTurn?(): void;
  /** Kills the processes that have started since `beginTurn`, because some harnesses leave the commands of an interrupted turn running. */
  endStrays?(): void;
  /** Kills the harness and everything that it started; resolves when its process has exited. */
  kill(): Promise<void>;
}

export interface HarnessExit {
  /** A text for messages: `exited with code 1`, `was ended by SIGKILL`, `could not be started: …`. */
  description: string;
  /** The last bytes of the harness's standard error, at most 8 KB. */
  stderrTail: string;
}

/** The callbacks of a link to the driver. */
export interface LinkEvents {
  /** A raw line of either direction, without its newline, for the transcript. */
  line(line: string): void;
  /** The `update` of a `session/update`, in the order of arrival. Both parameters have any shape. */
  update(update: unknown, sessionId?: unknown): void;
  /** Answers a permission request of any shape with the option to select; undefined cancels the request. Never rejects. */
  permission(params: Record<string, unknown>): Promise<string | undefined>;
  /** Resolves when the driver can take more messages. Until then, the link does not read further messages. */
  ready(): Promise<void>;
}
