import type { RunItem } from '@runyard/contract/runs/runs';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { visibleText } from '@runyard/contract/wire/visible';
import { type ReactNode, useId } from 'react';
import { Hint, P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { Button, ButtonLink } from '../../parts/controls.tsx';
import { durationText } from '../../parts/format.ts';
import { Icon, StateBadge } from '../../parts/icon.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { Ago } from '../../parts/time.tsx';
import { PodFailure, podFailureOf } from './pod-failure.tsx';
import runStyles from './run.module.css';
import styles from './why.module.css';

/** Shows why a run failed, who can fix it, and the next step. */
export function Why({
  run,
  events,
  rerun,
  write,
}: {
  run: RunItem;
  events: readonly TimelineEvent[];
  rerun: () => void;
  /** Puts the focus into the field for messages. */
  write: () => void;
}) {
  const heading = useId();
  const reason = run.status_message;
  const code = reason?.error_code;
  const isPlatform = run.state === 'ERROR';
  const until = reason?.session_debug_until;
  const environment = run.agent_config?.environment_id;
  const steps = setupSteps(events);
  const pod = podFailureOf(events);
  const hasFailedSetup = steps.some(({ error }) => error !== undefined);
  return (
    <section className={styles.card} data-part="why" aria-labelledby={heading}>
      <div className={styles.head}>
        <StateBadge state={run.state} />
        <Text as="div" grow>
          <h2 id={heading}>{visibleText(reason?.message ?? 'The run ended without a reason')}</h2>
          <P tone="muted">
            {isPlatform
              ? 'The platform failed, not the agent. '
              : run.started_at === null
                ? 'The agent did not begin. '
                : ''}
            {reason?.retryable === true && 'The same run may succeed when it is started again.'}
            {reason?.retryable === false && 'The same run fails again until its cause changes.'}
          </P>
        </Text>
        {code && (
          <Text as="a" tone="muted" small mono href={`/errors/${code.replaceAll('_', '-')}`} title="Explains this code">
            {code}
          </Text>
        )}
      </div>
      <div className={styles.body}>
        <div>
          <h2>What you can do</h2>
          <ol className={styles.advice}>
            {until && (
              <WayOut
                title="Look around in the failed sandbox"
                action={
                  <Button kind="primary" onClick={write}>
                    Ask the agent <kbd>M</kbd>
                  </Button>
                }
              >
                It ends <Ago time={until} />. A message goes to an agent in it; the run stays failed.
              </WayOut>
            )}
            {hasFailedSetup && environment && (
              <WayOut
                title="Change the environment"
                action={
                  <ButtonLink to="/environments/$uid" params={{ uid: environment }}>
                    Edit setup
                  </ButtonLink>
                }
              >
                A step of its setup failed, so every run of it does until the step changes.
              </WayOut>
            )}
            {(code === 'budget_exceeded' || code === 'insufficient_credits') && (
              <WayOut
                title="Raise the limit"
                action={
                  <ButtonLink to="/settings/$tab" params={{ tab: 'budget' }}>
                    Open the budget
                  </ButtonLink>
                }
              >
                The run, or its team, has spent what it may.
              </WayOut>
            )}
            {run.conversation_id && !until && (
              <WayOut
                title="Continue the conversation"
                action={
                  <Button onClick={write}>
                    Write a message <kbd>M</kbd>
                  </Button>
                }
              >
                A new execution starts with the files and the conversation of this one.
              </WayOut>
            )}
            <WayOut
              title={reason?.retryable === true ? 'Run again' : 'Run again after the cause has gone'}
              action={
                <Button onClick={rerun}>
                  Rerun… <kbd>R</kbd>
                </Button>
              }
            >
              A new run with the same prompt and configuration. Its prompt, model, environment and limits can be changed
              first.{environment && ' With ⇧R, it sets the environment up from the beginning.'}
            </WayOut>
          </ol>
        </div>
        {steps.length > 0 && <Setup steps={steps} />}
        {pod && <PodFailure failure={pod} />}
      </div>
    </section>
  );
}

function WayOut({ title, action, children }: { title: string; action: ReactNode; children: ReactNode }) {
  return (
    <li>
      <div>
        <Text medium>{title}</Text>
        <br />
        <Text tone="muted">{children}</Text>
      </div>
      {action}
    </li>
  );
}

export interface SetupStep {
  readonly id: string;
  readonly name: string;
  readonly durationMs: number | undefined;
  readonly error: string | undefined;
  readonly output: string | undefined;
  readonly isOver: boolean;
}

/** Returns the setup steps of the run's last execution, from the events of the timeline. */
export function setupSteps(events: readonly TimelineEvent[]): SetupStep[] {
  const steps = new Map<string, SetupStep>();
  for (const { event_type: type, payload = {}, event_uuid: uuid } of events) {
    if (type === 'oz_run_claimed') steps.clear();
    if (type !== 'setup_step_started' && type !== 'setup_step_finished') continue;
    const id = typeof payload.step_id === 'string' ? payload.step_id : uuid;
    const text = (name: string): string | undefined =>
      typeof payload[name] === 'string' ? (payload[name] as string) : undefined;
    steps.set(id, {
      id,
      name: [text('kind')?.replaceAll('_', ' '), text('name')].filter(Boolean).join(': '),
      durationMs: typeof payload.duration_ms === 'number' ? payload.duration_ms : undefined,
      error: text('error'),
      output: text('output_tail'),
      isOver: type === 'setup_step_finished',
    });
  }
  return [...steps.values()];
}

/** Shows the setup steps, and how many of them are done. */
export function Setup({ steps }: { steps: readonly SetupStep[] }) {
  const done = steps.filter(({ isOver, error }) => isOver && error === undefined).length;
  return (
    <Stack gap={2}>
      <Row as="h2">
        Setup <Text tone="dim">{`${done} of ${steps.length} steps done`}</Text>
      </Row>
      <SetupSteps steps={steps} />
    </Stack>
  );
}

/** Lists the setup steps, each with its output, which is folded unless the step failed. */
export const SetupSteps = ({ steps }: { steps: readonly SetupStep[] }) => (
  <ol className={`${runStyles.act} ${styles.steps}`}>
    {steps.map(({ id, name, durationMs, error, output, isOver }) => {
      const text = [output, error].filter(Boolean).join('\n');
      const line = (
        <>
          <Icon name={error !== undefined ? 'x' : isOver ? 'check' : 'more'} small tone={error ? 'bad' : 'good'} />
          <Text cut bold={error !== undefined}>
            {visibleText(name)}
          </Text>
          <Hint number>{durationMs === undefined ? '' : durationText(durationMs)}</Hint>
        </>
      );
      return (
        <li key={id}>
          {text === '' ? (
            <div>{line}</div>
          ) : (
            <details open={error !== undefined}>
              <summary>{line}</summary>
              <Terminal text={text} />
            </details>
          )}
        </li>
      );
    })}
  </ol>
);
