import type { ArtifactItem, PullRequestActivity } from '@runyard/contract/runs/artifacts';
import { visibleText } from '@runyard/contract/wire/visible';
import type { ComponentProps } from 'react';
import { Fact, Facts, Hint, Text } from '../../parts/blocks.tsx';
import { countText } from '../../parts/format.ts';
import { Ago } from '../../parts/time.tsx';
import styles from './facts.module.css';

type Tone = ComponentProps<typeof Text>['tone'];

const good = new Set(['success', 'neutral', 'skipped']);
const toneOfCheck = (conclusion: string): Tone => (good.has(conclusion) ? 'good' : 'bad');

/** Shows what became of a pull request of the run. Shows nothing if no App has seen an event of it. */
export function PullRequest({ artifact }: { artifact: ArtifactItem }) {
  if (artifact.artifact_type !== 'PULL_REQUEST' || artifact.data.activity === undefined) return null;
  const { status, url, activity } = artifact.data;
  const { merged_by: mergedBy, merged_at: mergedAt, reviews, checks, human_interactions: people } = activity;
  return (
    <div className={styles.section} data-part="pull-request">
      <h2>Pull request {/\/(\d+)(?:[/?#]|$)/.exec(url)?.[1] ?? ''}</h2>
      <Facts>
        <Fact name="Status">{status}</Fact>
        <Fact name="Opened">
          {visibleText(activity.author_login)} <Ago time={activity.opened_at} />
        </Fact>
        <Fact name="Reviews">
          {reviews.length === 0
            ? 'none'
            : reviews.map(({ login, decision, is_person: isPerson }) => (
                <div key={login}>
                  <Text tone={decision === 'approved' ? 'good' : 'bad'}>
                    {decision === 'approved' ? 'approved' : 'asks for changes'}
                  </Text>{' '}
                  {visibleText(login)} {!isPerson && <Hint>a program</Hint>}
                </div>
              ))}
        </Fact>
        <Fact name="Checks">
          {checks.length === 0
            ? 'none completed'
            : checks.map(({ app, conclusion }, index) => (
                <div key={index}>
                  <Text tone={toneOfCheck(conclusion)}>{conclusion.replaceAll('_', ' ')}</Text> {visibleText(app)}
                </div>
              ))}
        </Fact>
        <Fact name="Merged by">
          {mergedBy && (
            <>
              {visibleText(mergedBy.login)} {!mergedBy.is_person && <Hint>a program</Hint>}{' '}
              {mergedAt !== undefined && <Ago time={mergedAt} />}
            </>
          )}
        </Fact>
        <Fact name="People">
          {people.total === 0 ? 'did nothing' : `did ${countText(people.total, 'thing')}`}
          {', '}
          {codeText(activity)}
          {!activity.history_complete && <Hint as="div">The App has not seen the events from the beginning.</Hint>}
        </Fact>
      </Facts>
    </div>
  );
}

const codeText = ({ human_code_change: changed, history_complete: complete }: PullRequestActivity): string =>
  changed ? 'and changed its code' : complete ? 'and did not change its code' : 'and perhaps changed its code';
