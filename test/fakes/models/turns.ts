/** Types of a fake model's answers, independent of the format of a provider. */

/** Tokens of one answer. `input` counts neither `cacheRead` nor `cacheWrite`; `output` includes `reasoning`. */
export interface FakeUsage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
}

export interface FakeToolCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /**
   * Text to stream instead of `input`, for example text that is not JSON. Anthropic: the arguments of the tool. OpenAI Responses: the call of a
   * custom tool, whose argument is a text. The other protocols of the fake ignore this text.
   */
  readonly inputText?: string;
  /** Default: an id made from the position in the conversation. */
  readonly id?: string;
}

/** One answer of the model. Thinking comes first, then the text pieces, then the tool calls. */
export interface FakeTurn {
  readonly thinking?: string;
  /** Each piece is one event on the wire. */
  readonly text?: readonly string[];
  readonly toolCalls?: readonly FakeToolCall[];
  /** Default: 100 input tokens, 20 output tokens, no cached tokens. */
  readonly usage?: Partial<FakeUsage>;
  readonly misbehaviour?: FakeMisbehaviour;
}

/**
 * Faults of a provider. Real providers have shown each of them. `afterPieces`: number of sent events before the fault.
 * - `status`: an error answer in the provider's format (429 with `retryAfterSeconds`, 500, 529 …)
 * - `cut`: the connection is closed in the middle of the stream
 * - `slow`: a pause before every event
 * - `hold`: the stream pauses until `release()` is called
 * - `garbage`: bytes that are no events, between valid events
 * - `error_event`: a stream that began with the status 200 sends the provider's error event and ends
 * - `silent`: the request is read and never answered
 * - `redirect`: 307 to another address
 * - `flood`: `bytes` of text events
 * - `gzip`: the answer is compressed although the request did not ask for it
 */
export type FakeMisbehaviour =
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly retryAfterSeconds?: number;
      readonly message?: string;
      /** The answer does not end. */
      readonly stalls?: true;
    }
  | { readonly kind: 'cut' | 'hold' | 'error_event' | 'garbage'; readonly afterPieces: number }
  | { readonly kind: 'slow'; readonly delayMs: number }
  | { readonly kind: 'silent' }
  | { readonly kind: 'redirect'; readonly location: string }
  | { readonly kind: 'flood'; readonly bytes: number }
  | { readonly kind: 'gzip' };

/** The conversation so far, as the request contains it. */
export interface FakeConversation {
  readonly model: string;
  /** Number of answers that the model has already given in this conversation. */
  readonly turn: number;
  /** Number of answers since the last prompt of the user. */
  readonly turnOfPrompt: number;
  /** The last prompt of the user. */
  readonly prompt: string;
  readonly toolNames: readonly string[];
  /** Results of the tools since the last answer, as text. */
  readonly toolResults: readonly string[];
}

/** An answer in which all defaults are filled in, for a `FakeDialect` to format. */
export interface FakeReply {
  readonly id: string;
  readonly model: string;
  readonly thinking: string;
  readonly text: readonly string[];
  readonly toolCalls: readonly (FakeToolCall & { readonly id: string })[];
  readonly usage: FakeUsage;
  /** Only for chat completions: whether the request asks for token counts in the stream. */
  readonly includeUsage: boolean;
}

/** The protocol of a provider. */
export interface FakeDialect {
  /** Reads a request. Throws an error with a message if the real provider would answer 400. */
  read(body: Readonly<Record<string, unknown>>, pathModel: string | undefined): FakeConversation;
  /** The events of a streamed answer, each with its line ends. */
  stream(reply: FakeReply): string[];
  /** The body of an answer that is not streamed. */
  whole(reply: FakeReply): unknown;
  /** The body of an error answer. */
  error(status: number, message: string): unknown;
  /** The event that reports an error within a stream. */
  errorEvent(message: string): string;
  /** Headers that the real provider also sends. The gateway must not pass them on to the sandbox. */
  readonly headers: Readonly<Record<string, string>>;
}

export const defaultUsage: FakeUsage = { input: 100, output: 20, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Returns the first fenced `sh` block of a prompt, else the text in backticks after "run", else a fixed command. */
function commandOf(prompt: string): string {
  const fenced = /```(?:sh|bash|shell)\n([\s\S]*?)```/.exec(prompt)?.[1]?.trim();
  return fenced ?? /\brun `([^`]+)`/i.exec(prompt)?.[1] ?? 'echo hello from the fake model';
}

/**
 * Default answers: first calls the tool `shell` with the command of the prompt, if the request offers this tool; then repeats the
 * result of the tool.
 */
export function defaultScript(conversation: FakeConversation): FakeTurn {
  if (conversation.turnOfPrompt === 0 && conversation.toolNames.includes('shell')) {
    return {
      text: ['I will ', 'run the command.'],
      toolCalls: [{ name: 'shell', input: { command: commandOf(conversation.prompt) } }],
    };
  }
  const seen = conversation.toolResults.join('\n').slice(0, 500);
  return { text: ['The command ', 'gave: ', seen || '(nothing)'], usage: { input: 140, output: 10 } };
}
