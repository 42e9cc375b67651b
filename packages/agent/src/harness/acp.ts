import type { AnyMessage } from '@agentclientprotocol/sdk';

/** ACP messages to and from a harness, whatever carries them. */
export interface HarnessTransport {
  /** What the harness says. Reading slowly slows the harness down. */
  readable: ReadableStream<AnyMessage>;
  writable: WritableStream<AnyMessage>;
  /** Resolves when the harness is gone; never rejects. */
  exited: Promise<HarnessExit>;
  /** Ends the harness and everything it started; resolves when its process is gone. */
  kill(): Promise<void>;
}

export interface HarnessExit {
  /** For a message: `exited with code 1`, `was ended by SIGKILL`, `could not be started: …`. */
  description: string;
  /** End of its standard error, at most 8 KB. */
  stderrTail: string;
}

/** Sees each message before the other side does. Lines are what the transcript keeps. */
export interface MessageTap {
  /** A raw line of either direction, without its newline. */
  line(line: string): void;
  /**
   * A message of the harness, in the order of arrival. True: it is dealt with and goes no further.
   * `session/update` is handled here and not by the SDK's dispatch: that is asynchronous for notifications, so the
   * answer to `session/prompt` could overtake the last words of the turn, and it validates with closed unions, which
   * would drop what harnesses newer than the SDK add.
   */
  fromHarness(message: AnyMessage): boolean;
  /** Resolves when there is room for more. */
  ready(): Promise<void>;
}
