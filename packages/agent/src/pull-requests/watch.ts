import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { detectPullRequests, type NoticedPullRequest } from './detect.ts';

export interface PullRequestWatch {
  /** Handles an event of the harness. */
  observe(event: AgentEventBody): void;
  /** Marks a pull request that the run itself has reported. */
  markReported(url: string): void;
  /** Resolves when all pull requests that were found so far are reported. */
  reported(): Promise<void>;
}

type Command = string | readonly string[];

interface WatchedAction {
  command: Command;
  output: string;
}

/** Maximum number of characters of an action's output that are searched. No action reports more output than that. */
const maxOutputLength = 256 * 1024;

/** Observes the commands of a run and reports the pull requests that they open. If a report fails, the run does not fail. */
export function watchPullRequests(report: (noticed: NoticedPullRequest) => Promise<unknown>): PullRequestWatch {
  const detector = detectPullRequests();
  const actions = new Map<string, WatchedAction>();
  const reports = new Set<Promise<void>>();

  const send = (noticed: NoticedPullRequest) => {
    const sent = report(noticed)
      .then(
        () => undefined,
        (error: unknown) => {
          process.stderr.write(`agent: pull request ${noticed.url} was not reported: ${String(error)}\n`);
        },
      )
      .finally(() => reports.delete(sent));
    reports.add(sent);
  };

  return {
    observe: (event) => {
      switch (event.type) {
        case 'action': {
          if (event.category !== 'command') return;
          const command = commandOf(event.input);
          if (command !== undefined)
            actions.set(event.action_id, { output: '', ...actions.get(event.action_id), command });
          return;
        }
        case 'action_output': {
          const action = actions.get(event.action_id);
          if (action && action.output.length < maxOutputLength) action.output += event.text;
          return;
        }
        case 'action_result': {
          const action = actions.get(event.action_id);
          if (!action) return;
          actions.delete(event.action_id);
          const output = typeof event.output === 'string' ? event.output : action.output;
          for (const noticed of detector.inCommand(action.command, output)) send(noticed);
          return;
        }
        default:
      }
    },
    markReported: (url) => detector.markKnown(url),
    reported: async () => {
      await Promise.all(reports);
    },
  };
}

/** Returns the command from the input of an action. Harnesses use different names for this member. */
function commandOf(input: unknown): Command | undefined {
  if (typeof input === 'string') return input;
  if (typeof input !== 'object' || input === null) return undefined;
  const { command, cmd, script, title } = input as Record<string, unknown>;
  for (const value of [command, cmd, script, title]) {
    if (typeof value === 'string') return value;
    if (Array.isArray(value) && value.every((word) => typeof word === 'string')) return value;
  }
  return undefined;
}
