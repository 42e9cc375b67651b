/**
 * Recognises repetitions of an earlier session, which a harness sends while it loads the session. The service already has these messages.
 */
export interface ReplayFilter {
  /** Called when the harness begins to load this session. */
  begin(sessionId: string): void;
  /** Called when the harness has loaded the session. Later messages are not repetitions. */
  end(): void;
  /** Returns true if a line of the transcript is a repetition. */
  hidesLine(line: string): boolean;
  /** Returns true if an update of this session is a repetition. */
  hidesUpdate(sessionId: unknown): boolean;
}

export function replayFilter(): ReplayFilter {
  let loading: string | undefined;
  return {
    begin(sessionId) {
      loading = sessionId;
    },
    end() {
      loading = undefined;
    },
    hidesLine: (line) =>
      loading !== undefined && line.includes('"session/update"') && line.includes(JSON.stringify(loading)),
    hidesUpdate: (sessionId) => loading !== undefined && sessionId === loading,
  };
}
