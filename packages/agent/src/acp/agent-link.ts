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

/** Version 1 of the Agent Client Protocol: what the driver speaks with every harness. */
export const protocolVersion = 1;

/** The driver's end of a connection to an ACP agent, in a child process or in this one. */
export interface AgentLink {
  initialize(params: InitializeRequest): Promise<InitializeResponse>;
  newSession(params: NewSessionRequest): Promise<NewSessionResponse>;
  loadSession(params: LoadSessionRequest): Promise<LoadSessionResponse>;
  prompt(params: PromptRequest): Promise<PromptResponse>;
  cancel(params: CancelNotification): void;
  /** Aborts when the connection has closed: no answer will come any more. */
  readonly closed: AbortSignal;
  /** False as soon as its process has ended, also before `exited` has its last words. */
  isAlive(): boolean;
  /** Resolves when the harness is gone; never rejects. */
  readonly exited: Promise<HarnessExit>;
  /** Ends the harness and everything it started; resolves when its process is gone. */
  kill(): Promise<void>;
}

export interface HarnessExit {
  /** For a message: `exited with code 1`, `was ended by SIGKILL`, `could not be started: …`. */
  description: string;
  /** End of its standard error, at most 8 KB. */
  stderrTail: string;
}

/** What a link tells the driver. */
export interface LinkEvents {
  /** A raw line of either direction, without its newline, for the transcript. */
  line(line: string): void;
  /** The `update` of a `session/update`, in the order of arrival; both of any shape. */
  update(update: unknown, sessionId?: unknown): void;
  /** A permission request, of any shape; resolves with the option to select, undefined to cancel. Never rejects. */
  permission(params: Record<string, unknown>): Promise<string | undefined>;
  /** Resolves when there is room for more: a link reads no further before. */
  ready(): Promise<void>;
}
